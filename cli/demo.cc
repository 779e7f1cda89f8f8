// stoker demo: makes a small data set, feeds an emulated accelerator three times, shows where the time goes.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/measure/counters.h"
#include "stoker/os/cpu.h"

#include "demo_data.h"
#include "feed.h"
#include "interrupt.h"
#include "load_report.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

constexpr std::uint64_t kBatch = 32;
constexpr std::string_view kTransform = "rrc:224,flip";
constexpr std::chrono::milliseconds kCalibration{1200}, kRun{3000}, kSoundRun{600};

// A folder that is removed when the demo ends, however it ends, unless it is to be kept.
class WorkFolder {
 public:
  explicit WorkFolder(const Arguments& arguments) : keep_(arguments.has("--dir") || arguments.has("--keep")) {
    if (arguments.has("--dir")) {
      path_ = arguments.text("--dir");
      return;
    }
    const char* const base = std::getenv("TMPDIR");
    path_ = fmt::format("{}/stoker-demo-XXXXXX", base && *base ? base : "/tmp");
    if (!::mkdtemp(path_.data())) throw system_error(errno, "make the folder", path_);
  }
  ~WorkFolder() {
    std::error_code ignored;
    if (!keep_) std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return path_; }
  bool keeps() const { return keep_; }

 private:
  std::string path_;
  bool keep_;
};

struct DemoRun {
  std::string title;
  double step_ms = 0;
  int workers = 0;
  Fed fed;
};

dataset::DatasetPtr open(const std::string& folder) {
  dataset::OpenOptions options;
  options.use_cache = false;
  options.inflate = 100'000;  // the clock ends the run, not the data
  return dataset::open(folder, options);
}

Fed feed_for(const dataset::DatasetPtr& data, const loader::LoaderOptions& options, double step_ms,
             std::chrono::nanoseconds time, const Face& face, const std::string& label) {
  loader::Loader loader(data, options);
  loader.start_epoch(0);
  Bar bar(face, label);
  FeedOptions feeding;
  feeding.step = std::chrono::nanoseconds(std::llround(step_ms * 1e6));
  feeding.time = time;
  feeding.end_epoch = std::numeric_limits<std::uint64_t>::max();
  feeding.progress = [&](const Fed& so_far, double rate) { bar.update(so_far.samples, "samples", rate); };
  Fed fed;
  feed(loader, feeding, fed);
  return fed;
}

loader::LoaderOptions picture_options(int workers) {
  loader::LoaderOptions options;
  options.batch_size = kBatch;
  options.shuffle = true;
  options.seed = 42;
  options.transform = transform::parse_ops(kTransform);
  options.num_workers = workers;
  return options;
}

// The workers were the limit and yet far from all their cores: the host may be busy (not measured).
bool is_crowded(const DemoRun& run) {
  const Span& total = run.fed.total;
  return total.share(total.wait.prep_ns) > 0.2 && run.fed.wall_s > 0 &&
         run.fed.cpu_s / run.fed.wall_s < 0.75 * run.workers;
}

std::string run_text(const DemoRun& run, int number, const Terminal& terminal) {
  const Span& total = run.fed.total;
  const std::vector<Part> parts = time_parts(total);
  std::string out = fmt::format("{}\n", terminal.paint(Paint::bold, fmt::format("{}. {}", number, run.title)));
  out += fmt::format("   {}  AU {:3.0f} %  {} pictures/s\n", stacked_bar(terminal, parts, 44), 100 * total.au(),
                     format_rate(total.samples_per_s()));
  out += fmt::format("   {}\n", legend(terminal, parts));
  out += fmt::format("   {}\n", verdict_line(total));
  if (is_crowded(run)) {
    out += fmt::format("   note: {:.1f} of {} cores were used; other programs may be taking the rest\n",
                       run.fed.cpu_s / run.fed.wall_s, run.workers);
  }
  return out + "\n";
}

nlohmann::ordered_json to_json(const DemoRun& run) {
  const Span& total = run.fed.total;
  const measure::Verdict verdict = measure::judge(static_cast<std::int64_t>(total.compute_s * 1e9), total.wait);
  return {{"title", run.title},
          {"workers", run.workers},
          {"step_ms", run.step_ms},
          {"steps", total.steps},
          {"samples_per_s", total.samples_per_s()},
          {"au", total.au()},
          {"fetch_share", total.share(total.wait.fetch_ns)},
          {"prep_share", total.share(total.wait.prep_ns)},
          {"handoff_share", total.share(total.wait.handoff_ns)},
          {"cores_used", run.fed.wall_s > 0 ? run.fed.cpu_s / run.fed.wall_s : 0},
          {"crowded", is_crowded(run)},
          {"bound", measure::name(verdict.bound)}};
}

int run_demo(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  const auto tell = [&](const std::string& text) {
    if (!face.json) answer(text);
  };
  const WorkFolder folder(arguments);
  const std::int64_t began = measure::now_ns();
  DemoData made;
  {
    Bar bar(face, "making a data set", kDemoFiles);
    made = make_demo_data(folder.path(), [&](std::uint64_t files) {
      bar.update(files, "files");
      return !interrupted();
    });
  }
  const double seconds = static_cast<double>(measure::now_ns() - began) * 1e-9;
  tell(fmt::format("{} {} JPEG pictures ({}) and {} WAV sounds ({}){}{}\n", made.was_there ? "found" : "made",
                   made.picture_count, format_bytes(made.picture_bytes), made.sound_count,
                   format_bytes(made.sound_bytes), made.was_there ? "" : fmt::format(" in {:.1f} s", seconds),
                   folder.keeps() ? fmt::format(",\nkept in `{}`", folder.path()) : ""));

  const int cores = os::effective_cores().whole();
  const dataset::DatasetPtr pictures = open(made.pictures);
  const Fed calibration =
      feed_for(pictures, picture_options(cores), 0, kCalibration, face, "how fast is this machine?");
  const double rate = calibration.total.samples_per_s();
  nlohmann::ordered_json json = {{"schema", "stoker.demo/1"},        {"stoker_version", kVersion},
                                 {"folder", folder.path()},          {"kept", folder.keeps()},
                                 {"pictures", made.picture_count},   {"sounds", made.sound_count},
                                 {"full_speed_samples_per_s", rate}, {"runs", nlohmann::ordered_json::array()}};
  if (calibration.interrupted || rate <= 0) return 130;
  tell(fmt::format("full speed on {} core{}: {} pictures/s, cropped to 224 x 224, batches of {}\n\n", cores,
                   cores == 1 ? "" : "s", format_rate(rate), kBatch));

  // One that eats a little more than every core can make, and one that eats 60 % of it.
  const double hungry_ms = 1e3 * kBatch / (1.15 * rate), calm_ms = 1e3 * kBatch / (0.60 * rate);
  const std::string all = cores == 1 ? "the one core" : fmt::format("all {} cores", cores);
  std::vector<DemoRun> runs = {
      {fmt::format("one worker, an accelerator that takes {:.1f} ms a step", hungry_ms), hungry_ms, 1, {}},
      {fmt::format("{}, the same accelerator", all), hungry_ms, cores, {}},
      {fmt::format("{}, an accelerator that takes {:.1f} ms a step", all, calm_ms), calm_ms, cores, {}}};
  int number = 0;
  for (DemoRun& run : runs) {
    run.fed =
        feed_for(pictures, picture_options(run.workers), run.step_ms, kRun, face, fmt::format("run {}", ++number));
    tell(run_text(run, number, face.out));
    json["runs"].push_back(to_json(run));
    if (run.fed.interrupted) return 130;
  }

  loader::LoaderOptions sound_options;
  sound_options.batch_size = 64;
  sound_options.transform = transform::parse_ops("pad:16000");
  const Fed sounds = feed_for(open(made.sounds), sound_options, 0, kSoundRun, face, "sounds");
  json["sounds_per_s"] = sounds.total.samples_per_s();
  tell(fmt::format("Sounds too: {} WAV files/s at full speed.\n\n", format_rate(sounds.total.samples_per_s())));
  if (sounds.interrupted) return 130;
  if (face.json) {
    answer(json.dump(2) + "\n");
    return 0;
  }
  const std::string place = folder.keeps() ? made.pictures : "FOLDER";
  std::string next = "What to type next:\n";
  if (!folder.keeps()) next += "  stoker demo --dir demo-data     # the same, and keeps the data to play with\n";
  next += fmt::format("  stoker inspect {}\n", place);
  next += fmt::format("  stoker load {} --batch-size 64 --transform {} \\\n    --step-ms 20\n", place, kTransform);
  answer(next);
  return 0;
}

}  // namespace

const Verb& demo_verb() {
  static const Verb verb = {"demo",
                            "make a small data set and feed an emulated accelerator from it, in 15 seconds",
                            "",
                            "",
                            {{"stoker demo", "see where the time goes in three runs"},
                             {"stoker demo --dir demo-data", "the same, and keep the data set in demo-data/"}},
                            {{"where",
                              {{"--dir", "DIR", "a temporary folder",
                                "make the data set in DIR and keep it; one made before is used again", true},
                               {"--keep", "", "", "keep the temporary folder too, and say where it is", true}}},
                             common_flags()},
                            nullptr,
                            run_demo};
  return verb;
}

}  // namespace stoker::cli
