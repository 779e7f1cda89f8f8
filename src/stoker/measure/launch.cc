#include "stoker/measure/launch.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "stoker/base/error.h"
#include "stoker/measure/counters.h"
#include "stoker/measure/hook.h"
#include "stoker/measure/record_file.h"
#include "stoker/os/child.h"

namespace stoker::measure {
namespace {

using namespace std::chrono_literals;

class RunFolder {
 public:
  RunFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/stoker-measure-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw system_error(errno, "make a folder for records like", path_);
  }
  ~RunFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string python_path(const std::string& hook) {
  const char* before = std::getenv("PYTHONPATH");
  return before != nullptr && *before != '\0' ? hook + ":" + before : hook;
}

}  // namespace

Launched launch(const LaunchOptions& options, Job& job) {
  const RunFolder folder;
  const std::string hook = folder.path() + "/hook", records = folder.path() + "/records";
  std::filesystem::create_directories(hook);
  std::filesystem::create_directories(records);
  write_hook(hook);

  os::SignalGate gate;
  const std::int64_t started = now_ns();
  os::Child child(options.command, {{"STOKER_MEASURE_DIR", records}, {"PYTHONPATH", python_path(hook)}});
  RecordFolder lines(records, true);
  const auto collect = [&](bool all) {
    lines.poll([&](int pid, std::string_view line) { job.add(pid, line); });
    job.settle(all);
  };

  Launched launched;
  bool reported = false, warned = false;
  std::int64_t collected = 0, stopping = 0;
  std::optional<os::Ended> ended;
  while (!(ended = child.ended())) {
    const auto caught = gate.wait(100ms);
    if (caught && caught->signal != SIGCHLD) {
      if (caught->signal == SIGINT) launched.interrupted = true;
      if (!caught->from_terminal) child.send(caught->signal);
    }
    const std::int64_t now = now_ns();
    if (now - collected > 400'000'000) {
      collected = now;
      collect(false);
    }
    if (options.tick) options.tick(child.pid());
    if (!warned && options.no_loader && job.loaders().empty() &&
        now - started > std::chrono::nanoseconds(options.patience).count()) {
      warned = true;
      options.no_loader();
    }
    if (!reported && options.steps > 0 && job.steps() > options.steps) {  // one more: the last one's compute has ended
      reported = true;
      collect(true);
      if (options.after_steps) options.after_steps();
      if (options.stop) {
        launched.stopped = true;
        stopping = now;
        child.send(SIGTERM);
      }
    }
    if (stopping > 0 && now - stopping > 10'000'000'000) child.send(SIGKILL);
  }
  collect(false);
  collect(true);
  launched.code = launched.stopped ? 0 : ended->code;
  launched.signal = ended->signal;
  launched.seconds = static_cast<double>(now_ns() - started) * 1e-9;
  launched.lost_segments = lines.lost_segments();
  return launched;
}

}  // namespace stoker::measure
