#include "stoker/measure/launch.h"

#include "stoker/measure/hook.h"
#include "stoker/measure/record_file.h"
#include "stoker/meter/counters.h"
#include "stoker/os/child.h"
#include "stoker/os/temporary_folder.h"

namespace stoker::measure {

using namespace std::chrono_literals;

Launched launch(const LaunchOptions& options, Job& job) {
  const os::TemporaryFolder folder("stoker-measure-");
  const std::map<std::string, std::string> environment = install_hook(folder.path(), options.environment);

  os::SignalGate gate;
  const std::int64_t started = meter::now_ns();
  os::Child child(options.command, environment);
  RecordFolder lines(environment.at("STOKER_MEASURE_DIR"), true);
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
      if (!caught->reached_group) child.send(caught->signal);
    }
    const std::int64_t now = meter::now_ns();
    if (now - collected > 400'000'000) {
      collected = now;
      collect(false);
    }
    if (options.tick) options.tick(child.pid());
    if (!warned && options.no_loader && job.loaders().empty() && job.spans().is_empty() &&
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
  launched.seconds = static_cast<double>(meter::now_ns() - started) * 1e-9;
  launched.lost_segments = lines.lost_segments();
  return launched;
}

}  // namespace stoker::measure
