// stoker load: drains a data set at full speed or at an emulated step, and says where the time went.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/json.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/dataset/page_cache.h"
#include "stoker/feed/bench_steps.h"
#include "stoker/feed/feed.h"
#include "stoker/loader/option_table.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file.h"

#include "files.h"
#include "interrupt.h"
#include "load_options.h"
#include "load_report.h"
#include "load_volumes.h"
#include "narrowing_flags.h"
#include "scan.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kStateSchema = "stoker.state/1";

std::string state_text(const loader::State& state, const std::string& address) {
  Json json = {{"schema", kStateSchema},
               {"stoker_version", kVersion},
               {"address", address},
               {"epoch", state.epoch},
               {"position", state.position},
               {"seed", state.seed},
               {"shuffle", shuffle_json(state.shuffle)},
               {"size", state.size},
               {"fingerprint", state.fingerprint}};
  for (const auto& [name, value] : state.settings) json["settings"][name] = value;
  return json.dump(2) + "\n";
}

loader::State read_state(const std::string& path) {
  const auto json = Json::parse_or_null(read_text(path));
  try {
    if (json.at("schema").get<std::string>() == kStateSchema) {
      loader::State state;
      state.epoch = json.at("epoch").get<std::uint64_t>();
      state.position = json.at("position").get<std::uint64_t>();
      state.seed = json.at("seed").get<std::uint64_t>();
      const auto& shuffle = json.at("shuffle");
      state.shuffle = shuffle.is_boolean() ? dataset::Shuffle(shuffle.get<bool>())
                                           : dataset::parse_shuffle(shuffle.get<std::string>());
      state.size = json.at("size").get<std::uint64_t>();
      state.fingerprint = json.at("fingerprint").get<std::uint64_t>();
      if (json["settings"].is_object()) {
        for (const auto& [name, value] : json["settings"].items())
          if (value.is_string()) state.settings.emplace_back(name, value.text());
      }
      return state;
    }
  } catch (const Error&) {
  }
  throw Error(ErrorKind::usage,
              fmt::format("cannot resume from `{}`: it is not a state written by `stoker load --state`", path),
              "name a file that does not exist yet, and it will be written");
}

// Whether a transform gives something else every epoch, by its words.
bool draws_each_epoch(const std::string& transform) {
  for (const char* word : {"rrc", "randomresizedcrop", "flip", "views", ".."}) {
    if (transform.find(word) != std::string::npos) return true;
  }
  return false;
}

// `ledger` is what `stoker plan --ledger` takes: seconds per sample of each stage, and what they belong to.
Json bench_json(const LoadReport& report, const feed::Benched& benched) {
  const feed::Ledger& ledger = benched.ledger;
  return {{"schema", "stoker.steps/1"},
          {"stoker_version", kVersion},
          {"address", report.address},
          {"flags", report.flags},
          {"shuffle", shuffle_json(report.options.shuffle)},
          {"steps", benched.steps},
          {"samples", benched.samples},
          {"seconds", benched.seconds},
          {"samples_per_s", benched.samples_per_s},
          {"ledger",
           {{"batch_size", report.options.batch_size},
            {"num_workers", ledger.num_workers},
            {"io_threads", ledger.io_threads},
            {"cores", report.cores},
            {"usable_cores", ledger.usable_cores},
            {"fetch_s", ledger.fetch_s},
            {"prep_s", ledger.prep_s},
            {"handoff_s", ledger.handoff_s},
            {"compute_s", ledger.compute_s},
            {"cpu_s", ledger.cpu_s},
            {"fetch_share", ledger.fetch_share},
            {"sample_bytes", ledger.sample_bytes},
            {"decoded_bytes", ledger.decoded_bytes},
            {"dataset_bytes", report.total_bytes},
            {"dataset_samples", report.size},
            {"storage", storage::name(report.options.storage)},
            {"cache", report.cache},
            {"file_per_sample", report.file_per_sample},
            {"decodes", report.decodes},
            {"decodes_jpeg", report.decodes_jpeg},
            {"random", draws_each_epoch(report.transform)}}}};
}

std::string bench_text(const feed::Benched& benched) {
  return fmt::format("{} samples/s over {} steps, {:.2f} s\n", format_rate(benched.samples_per_s),
                     format_count(benched.steps), benched.seconds);
}

std::string output_text(const loader::Loader& loader) {
  const std::uint64_t batch = loader.options().batch_size;
  const loader::KindFacts& kind = loader.kind();
  if (kind.is_encoded) return fmt::format("encoded bytes of {} samples", batch);
  std::string out;
  for (const transform::Output& output : kind.outputs) {
    std::string shape = std::to_string(batch);
    if (output.views > 1) shape += fmt::format(", {}", output.views);
    for (std::size_t i = 0; i < output.shape.size(); ++i) {
      const bool open_ended = output.varies && i + 1 == output.shape.size();
      shape += open_ended ? std::string(", longest") : fmt::format(", {}", output.shape[i]);
    }
    out += fmt::format("{}{}{} [{}]", out.empty() ? "" : " + ", kind.outputs.size() > 1 ? output.name + " " : "",
                       name(output.dtype), shape);
  }
  return out;
}

// With --cold drops the files of `dataset` from the page cache first, and says in `report` how long that took.
std::string describe_cache(const dataset::Dataset& dataset, const Arguments& arguments, const Face& face,
                           LoadReport& report) {
  if (arguments.has("--cold")) {
    Bar bar(face, "dropping from the page cache", dataset.size());
    const std::int64_t began = meter::now_ns();
    dataset::drop_from_page_cache(dataset, [&](std::uint64_t done) {
      bar.update(done, "files");
      return !interrupted();
    });
    report.drop_s = static_cast<double>(meter::now_ns() - began) * 1e-9;
    const double left = dataset::cached_share(dataset).value_or(0);
    if (left > 0.02) {
      report.notes.push_back(
          fmt::format("{:.0f} % of the sampled pages stayed in the page cache after --cold: another process has "
                      "them open, or the file system keeps them",
                      100 * left));
    }
    return "cold=data";
  }
  const std::optional<double> share = dataset::cached_share(dataset);
  if (share && *share >= 0.98) return "warm";
  if (share) {
    report.notes.push_back(
        fmt::format("{:.0f} % of the data was in the page cache at the start, so the first epoch is neither "
                    "cold nor warm: --cold starts from the disk",
                    100 * *share));
  }
  return "unknown";
}

// Why the figures may mislead, where no flag was given that says otherwise.
void add_warnings(LoadReport& report, const Arguments& arguments) {
  const feed::Fed& fed = report.fed;
  const std::uint64_t queued = report.options.prefetch_factor + 1;
  if (fed.steps > 0 && fed.steps < 4 * queued && !fed.interrupted) {
    report.notes.push_back(fmt::format("only {} steps: up to {} of them may have been ready beforehand; {}", fed.steps,
                                       queued - 1, "more say more: --epochs or --inflate"));
  }
  if (feed::is_crowded(fed_run(report))) {
    report.notes.push_back(
        fmt::format("preparing was the limit, yet only {:.2f} of {:.3g} cores were used: other programs may be taking "
                    "them, so repeat it on a quiet machine",
                    fed.cpu_s / fed.wall_s, report.cores));
  }
  constexpr double kOtherMatters = 0.2;  // of the running time
  if (const double other = fed.total.other_share(); fed.total.steps > 0 && other > kOtherMatters) {
    report.notes.push_back(fmt::format(
        "{:.0f} % of the time is other: the thread that takes the batches counted them, woke late or had no "
        "core; other programs on the cores, or very cheap batches, make it large",
        100 * other));
  }
  const bool is_read = report.options.storage == storage::Storage::buffered ||
                       (report.options.storage == storage::Storage::mmap && report.file_per_sample);
  if (report.cache == "warm" && is_read && fed.steps > 0) {
    report.notes.emplace_back("the data came from the page cache, not from the disk: --cold starts from the disk");
  }
  if (fed.epochs.size() > 1 && report.cache == "cold=data" && report.options.storage != storage::Storage::direct) {
    report.notes.emplace_back("only the first epoch is cold: the later ones find the data in the page cache");
  }
  if (!arguments.has("--batch-size") && report.options.batch_size == 1 && !report.workload && fed.steps > 0) {
    report.notes.emplace_back("batches of one sample, the default: --batch-size 64 is nearer to training");
  }
}

void require_bench_steps(const Arguments& arguments) {
  if (arguments.has("--bench-steps")) return;
  for (const char* flag : {"--warmup-steps", "--bench-time"}) {
    if (!arguments.has(flag)) continue;
    throw Error(ErrorKind::usage, fmt::format("`{}` has no effect without `--bench-steps`", flag),
                fmt::format("add --bench-steps 50, or leave {} out", flag));
  }
}

int load(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  require_bench_steps(arguments);
  LoadReport report;
  report.address = arguments.operand();
  const EmulatedStep emulated = emulated_step(arguments);
  report.workload = emulated.workload;
  report.step_ms = emulated.step_ms;
  loader::Request request = loader_request(arguments, report.workload);
  loader::LoaderOptions& wanted = request.loader;
  dataset::OpenOptions& opening = request.opening;
  const std::string errors_file = arguments.text("--save-errors"), state_file = arguments.text("--state");
  if (!errors_file.empty()) require_free(errors_file, arguments.has("--force"), "--save-errors");
  const std::string subset_file = arguments.text("--save-subset");
  if (!subset_file.empty()) require_free(subset_file, arguments.has("--force"), "--save-subset");
  std::optional<loader::State> resume;
  if (!state_file.empty() && exists(state_file)) resume = read_state(state_file);

  feed::FeedOptions feeding;
  feeding.interrupted = interrupted;
  feeding.step = std::chrono::nanoseconds(static_cast<std::int64_t>(report.step_ms * 1e6));
  if (arguments.has("--steps")) feeding.steps = arguments.count("--steps", 1);
  feeding.end_epoch = arguments.has("--epochs") ? arguments.count("--epochs", 1)
                      : feeding.steps > 0       ? std::numeric_limits<std::uint64_t>::max()
                                                : 1;
  // Blocks of --bench-steps follow one another over as many epochs as they take.
  const bool is_endless = feeding.end_epoch == std::numeric_limits<std::uint64_t>::max();
  if (!is_endless && !arguments.has("--bench-steps")) wanted.epochs = feeding.end_epoch;

  const std::uint64_t times = opening.inflate;
  if (!subset_file.empty()) opening.inflate = 1;
  const std::optional<dataset::VolumesOptions> volumes = volumes_request(arguments);
  dataset::DatasetPtr data =
      volumes ? open_patches(face, report.address, *volumes, opening) : scan(face, report.address, opening);
  if (!subset_file.empty()) {
    dataset::write_subset_json(*data, opening.subset_seed, subset_file);
    report.notes.push_back(fmt::format("wrote the {} samples used to `{}`", format_count(data->size()), subset_file));
    if (times > 1) data = dataset::inflate(data, times);
  }
  const dataset::Facts& facts = data->facts();
  report.kind = facts.kind;
  report.size = data->size();
  report.total_bytes = facts.total_bytes;
  report.classes = facts.classes.size();
  report.decodes_jpeg = data->size() > 0 && codec::is_scaled(data->media(0)) && wanted.decode != loader::Decode::none;
  report.decodes = data->size() > 0 && !codec::is_plain(data->media(0)) && wanted.decode != loader::Decode::none;
  report.file_per_sample = report.kind.starts_with("folder") || report.kind.starts_with("index.csv");
  report.cores = os::effective_cores().available;
  if (arguments.has("--transform")) report.transform = arguments.text("--transform");
  for (const loader::Option& option : loader::option_table()) {
    const std::string flag = flag_of(option.name);
    if (option.name == "epochs" || !arguments.has(flag) || option.name == "shuffle" || option.name == "batch_size" ||
        option.name == "num_workers")
      continue;
    report.flags.push_back(flag);
    if (option.type != loader::ValueType::on_off) report.flags.push_back(arguments.text(flag));
  }

  if (arguments.has("--cold")) loader::Loader(data, wanted);  // refuses wrong options before anything is dropped
  // Before the loader is built: the time to the first batch counts from there.
  report.cache = describe_cache(*data, arguments, face, report);
  loader::Loader loader(data, wanted);
  report.options = loader.options();
  report.output = output_text(loader);
  const feed::BenchSteps bench{.warmup_steps = arguments.count("--warmup-steps"),
                               .bench_steps = arguments.has("--bench-steps") ? arguments.count("--bench-steps", 1) : 0,
                               .least = arguments.duration("--bench-time"),
                               .step = feeding.step,
                               .interrupted = interrupted};
  // Before the first epoch, where the last step is known by then.
  if (bench.bench_steps > 0 ? bench.least.count() == 0 : feeding.steps > 0) {
    loader.expect_steps(bench.bench_steps > 0 ? bench.warmup_steps + bench.bench_steps : feeding.steps);
  }
  if (resume) {
    loader.load_state(*resume);
    report.notes.push_back(fmt::format("resumed from `{}`: epoch {}, after {} samples", state_file, resume->epoch,
                                       format_count(resume->position)));
  } else {
    loader.start_epoch(0);
  }
  report.first_epoch = loader.epoch();
  report.nothing_left =
      loader.epoch() >= feeding.end_epoch || (loader.epoch() + 1 == feeding.end_epoch && loader.steps() == 0);

  const auto save = [&] {
    report.errors = loader.errors();
    if (!errors_file.empty()) {
      const Json json = {{"schema", "stoker.errors/1"},
                         {"stoker_version", kVersion},
                         {"address", report.address},
                         {"errors", cli::to_json(report.errors)}};
      os::write_file(errors_file, json.dump(2) + "\n");
      report.errors_file = errors_file;
    }
    if (!state_file.empty()) {
      os::write_file(state_file, state_text(loader.state(), report.address));
      report.state_file = state_file;
    }
  };
  if (arguments.has("--bench-steps")) {
    const feed::Benched benched = feed::bench_steps(loader, bench);
    answer(face.json ? bench_json(report, benched).dump(2) + "\n" : bench_text(benched));
    return interrupted() ? interruption_code() : 0;
  }
  if (!report.nothing_left) {
    std::uint64_t total = feeding.steps;
    if (total == 0) total = loader.steps() * (feeding.end_epoch - loader.epoch());
    Bar bar(face, report.step_ms > 0 ? "feeding" : "loading", total * report.options.batch_size);
    feeding.progress = [&](const feed::Fed& so_far, double per_second) {
      bar.update(so_far.samples, "samples", per_second);
    };
    try {
      feed::feed(loader, feeding, report.fed);
    } catch (const Error& error) {
      bar.clear();
      save();
      if (report.errors_file.empty() || report.errors.empty()) throw;
      throw Error(error.kind(), error.text(),
                  format_text("{}{}the bad samples are in `{}`", error.hint_text(), error.hint().empty() ? "" : "; ",
                              errors_file))
          .about(error.option());
    }
  }
  save();
  report.explain = arguments.has("--explain");
  report.passes = loader.passes();
  report.plan = loader.kind().description;
  for (const Text& text : loader.notes()) {
    const std::string note = in_flags(text, arguments.verb());
    if (std::find(report.notes.begin(), report.notes.end(), note) == report.notes.end()) report.notes.push_back(note);
  }
  add_warnings(report, arguments);
  if (face.json) {
    answer(to_json(report).dump(2) + "\n");
  } else {
    answer(to_text(report, face.out));
  }
  return report.fed.interrupted ? interruption_code() : 0;
}

int run_load(const Arguments& arguments) {
  try {
    return load(arguments);
  } catch (const Error& error) {
    if (arguments.has("--bench-steps")) feed::report_failure(in_flags(error.text(), arguments.verb()), error.option());
    throw;
  }
}

Section with(Section section, const std::vector<Flag>& more) {
  section.flags.insert(section.flags.end(), more.begin(), more.end());
  return section;
}

std::string more_load_help() {
  return loader_help() +
         "\nAU, the accelerator's utilisation: compute time / running time, without the\n"
         "first step. Waiting is split by what the next batch still lacked: fetch (its\n"
         "bytes had not arrived), prep (they had: it waited for a worker or was being\n"
         "decoded), hand-off (it was ready but not yet delivered). Other is the rest of\n"
         "the running time: the thread that takes the batches counted them, woke late\n"
         "from its step, or had no core.\n"
         "Ctrl-C stops at once and prints what was measured until then.\n";
}

}  // namespace

const Verb& load_verb() {
  static const Verb verb = {
      "load",
      "feed from a data set at full speed or at an emulated step: where does time go?",
      "ADDRESS",
      "a folder, index.csv, .npy, .pack, .tar or volumes.csv",
      {{"stoker load data/train --batch-size 64 --transform rrc:224,flip",
        "load images at full speed, cropped to 224 x 224"},
       {"stoker load data/train --workload resnet50-h100 --transform rrc:224", "could this machine feed an H100?"},
       {"stoker load data/train --batch-size 64 --step-ms 20 --epochs 3 --cold",
        "emulate a step of 20 ms, and read the first epoch from the disk"},
       {"stoker load data/train --steps 1000 --state run.json",
        "load 1,000 steps; the next call resumes where this one stopped"},
       {"stoker load volumes.csv --patch 72x136x136 --samples 2000 --normalize zscore",
        "load random 3-D patches of volumes"},
       {"stoker load data/train --on-error skip --save-errors bad.json", "skip bad files, and save the list of them"}},
      {batch_flags(),
       with(sample_flags(),
            {{"--save-subset", "FILE", "", "write seed, count, ids and paths of the samples used as JSON"},
             {"--explain", "", "",
              "say which operations ran together, in which order, what they need, and their share of the time"}}),
       volume_flags(),
       with({"how long",
             {{"--epochs", "N", "1", "how many; with --steps alone as many as that takes", true},
              {"--steps", "N", "", "stop after N steps", true},
              {"--bench-steps", "N", "",
               "measure N steps after --warmup-steps and print only their rate; epochs follow one another"},
              {"--bench-time", "TIME", "0.5s", "of --bench-steps: more of them, until so long was measured"},
              {"--warmup-steps", "N", "5", "of --bench-steps: steps before the clock starts"},
              {"--state", "FILE", "", "resume from FILE if it exists; where this run stopped is written to it"}}},
            step_flags()),
       with(resource_flags(),
            {{"--cold", "", "",
              "drop the files from the page cache first; needs no root; the report then says cold=data", true}}),
       with({"trouble", trouble_flags()}, {{"--save-errors", "FILE", "", "write the list of bad samples as JSON"},
                                           {"--force", "", "", "let --save-errors and --save-subset overwrite FILE"}}),
       common_flags()},
      more_load_help,
      run_load};
  return verb;
}

}  // namespace stoker::cli
