#include "load_options.h"

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/feed/workload.h"

#include "terminal.h"

namespace stoker::cli {
namespace {

const loader::LoaderOptions kDefaults;

bool is_terminal_color(const std::string& word) {
  return word == "auto" || word == "always" || word == "never";
}

int count_or_auto(const Arguments& arguments, std::string_view flag) {
  if (arguments.text(flag) == "auto") return loader::kAuto;
  try {
    const std::uint64_t count = arguments.count(flag);
    if (count <= 1024) return static_cast<int>(count);
  } catch (const Error&) {
  }
  throw Error(ErrorKind::usage,
              fmt::format("`{}` takes auto or a number up to 1024, not `{}`", flag, arguments.text(flag)));
}

}  // namespace

std::string terminal_color(const Arguments& arguments) {
  std::string color = "auto";
  for (const std::string& word : arguments.all("--color")) {
    if (is_terminal_color(word)) color = word;
  }
  return color;
}

EmulatedStep emulated_step(const Arguments& arguments) {
  EmulatedStep step;
  if (arguments.has("--workload")) {
    if (arguments.has("--step-ms")) {
      throw Error(ErrorKind::usage, "`--step-ms` and `--workload` both set the step", "give one of the two");
    }
    step.workload = feed::find_workload(arguments.text("--workload"));
    step.step_ms = step.workload->step_ms;
  } else if (arguments.has("--step-ms")) {
    step.step_ms = arguments.number("--step-ms");
    if (!(step.step_ms >= 0 && step.step_ms <= 1e7)) {
      throw Error(ErrorKind::usage, "`--step-ms` is 0 up to 10000000 (milliseconds)");
    }
  }
  return step;
}

loader::LoaderOptions loader_options(const Arguments& arguments, const std::optional<feed::Workload>& workload) {
  loader::LoaderOptions options;
  if (arguments.has("--batch-size")) {
    options.batch_size = arguments.count("--batch-size", 1);
  } else if (workload) {
    options.batch_size = workload->batch_size;
  }
  if (const auto on = arguments.is_on("--shuffle")) {
    const std::string how = arguments.text("--shuffle");
    options.shuffle = !*on || how.empty() ? dataset::Shuffle(*on) : dataset::parse_shuffle(how);
  }
  if (arguments.has("--seed")) options.seed = arguments.count("--seed");
  if (arguments.has("--last-batch")) options.last_batch = loader::parse_last_batch(arguments.text("--last-batch"));
  if (arguments.has("--drop-last")) {
    if (arguments.has("--last-batch") && options.last_batch != dataset::LastBatch::drop) {
      throw Error(ErrorKind::usage,
                  fmt::format("`--drop-last` contradicts `--last-batch {}`", arguments.text("--last-batch")),
                  "give one of the two");
    }
    options.last_batch = dataset::LastBatch::drop;
  }
  if (arguments.has("--rank")) options.rank = arguments.count("--rank");
  if (arguments.has("--world-size")) options.world_size = arguments.count("--world-size", 1);
  if (arguments.has("--transform")) options.transform = transform::parse_ops(arguments.text("--transform"));
  for (const std::string& word : arguments.all("--color")) {
    if (!is_terminal_color(word)) options.color = loader::parse_color(word);
  }
  if (arguments.has("--seek-index")) options.seek_index = loader::parse_seek_index(arguments.text("--seek-index"));
  if (arguments.has("--decode")) options.decode = loader::parse_decode(arguments.text("--decode"));
  options.exif_orientation = arguments.has("--exif-orientation");
  if (arguments.has("--dtype")) {
    options.output.dtype = parse_dtype(arguments.text("--dtype"));
    if (!options.output.dtype) {
      throw Error(ErrorKind::usage, fmt::format("there is no dtype `{}`", arguments.text("--dtype")),
                  "the dtypes of batches are: uint8, uint16 for 16-bit pictures, float16, bfloat16, float32, and int16 "
                  "for sounds");
    }
  }
  if (arguments.has("--layout")) options.output.layout = loader::parse_layout(arguments.text("--layout"));
  options.num_workers = count_or_auto(arguments, "--num-workers");
  options.io_threads = count_or_auto(arguments, "--io-threads");
  if (arguments.has("--prefetch-factor")) options.prefetch_factor = arguments.count("--prefetch-factor", 1);
  if (arguments.has("--memory-limit")) options.memory_limit = arguments.bytes("--memory-limit");
  if (arguments.has("--storage")) options.storage = storage::parse_storage(arguments.text("--storage"));
  if (arguments.text("--io-depth") != "auto") options.io_depth = arguments.count("--io-depth", 1);
  if (arguments.text("--io-batch") != "auto") options.io_batch = arguments.count("--io-batch", 1);
  if (arguments.text("--read-ahead") != "auto") options.read_ahead = arguments.bytes("--read-ahead");
  if (arguments.has("--on-error")) options.on_error = loader::parse_on_error(arguments.text("--on-error"));
  if (arguments.has("--max-errors")) options.max_errors = arguments.number("--max-errors");
  if (arguments.has("--timeout")) options.timeout = arguments.duration("--timeout");
  return options;
}

dataset::OpenOptions open_options(const Arguments& arguments, storage::Storage storage) {
  dataset::OpenOptions options;
  options.label = arguments.text("--label");
  options.storage = storage;
  if (arguments.has("--subset")) options.subset = arguments.count("--subset", 1);
  options.subset_seed = arguments.count("--subset-seed");
  if (arguments.has("--class-subset")) options.class_subset = arguments.count("--class-subset", 1);
  options.class_subset_seed = arguments.count("--class-subset-seed");
  options.inflate = arguments.count("--inflate", 1);
  return options;
}

Section batch_flags() {
  return {
      "batches",
      {{"--batch-size", "N", std::to_string(kDefaults.batch_size),
        "samples per batch and rank; --workload brings its own", true},
       {"--shuffle", "", "no",
        "a new order every epoch, from --seed; =blocks mixes blocks of neighbours, for disks that like to read in "
        "order; =blocks:N:M keeps N together and mixes M",
        true, true, 0, "HOW"},
       {"--seed", "N", std::to_string(kDefaults.seed), "of the order and of the random transforms"},
       {"--transform", "TEXT", "", "per sample, such as rrc:224,flip,normalize:imagenet; the list is below", true},
       {"--dtype", "NAME", "",
        "of the batch: uint8, (16-bit pictures) uint16, float16, bfloat16, float32 or (sounds) int16; without: what "
        "the transform gives"},
       {"--layout", "NAME", "NCHW", "NCHW, NHWC or channels_last"},
       {"--color", "NAME", "rgb",
        "pictures as rgb, gray or keep; auto, always and never speak of the terminal instead"},
       {"--seek-index", "USE", std::string(name(kDefaults.seek_index)),
        "places inside JPEG files that make later crops cheaper: auto (kept and saved), memory (not saved), off"},
       {"--decode", "HOW", std::string(name(kDefaults.decode)), "exact, fast (approximate) or none (encoded bytes)"},
       {"--exif-orientation", "", "", "turn pictures as their Exif says before anything else"},
       {"--drop-last", "", "", "leave out a short last batch; the same as --last-batch drop"},
       {"--last-batch", "HOW", "keep", "keep it short, drop it or pad it"},
       {"--rank", "N", std::to_string(kDefaults.rank), "which of the --world-size equal parts"},
       {"--world-size", "N", std::to_string(kDefaults.world_size), "number of ranks that share each epoch"}}};
}

Section sample_flags() {
  return {"which samples",
          {{"--label", "COLUMN", "", "of an index.csv; without: `label` where there is one"},
           {"--subset", "N", "", "only N samples, chosen by --subset-seed"},
           {"--subset-seed", "N", "42", "of --subset"},
           {"--class-subset", "N", "", "only N classes, chosen by --class-subset-seed"},
           {"--class-subset-seed", "N", "42", "of --class-subset"},
           {"--inflate", "N", "1", "repeat the data set N times without copying it"}}};
}

Section resource_flags() {
  return {
      "resources",
      {{"--num-workers", "N", "auto", "threads that decode; auto: the cores that this process may use", true},
       {"--prefetch-factor", "N", std::to_string(kDefaults.prefetch_factor), "ready batches beyond the one in use"},
       {"--memory-limit", "SIZE", "25 % of RAM, 8GB at most",
        "bound on memory, as 4GB; hard, over all that the loader holds", true},
       {"--storage", "HOW", std::string(storage::name(kDefaults.storage)), "buffered, direct, mmap, ram or auto", true},
       {"--io-depth", "N", "auto", "requests in flight per I/O thread"},
       {"--io-batch", "N", "auto", "requests per submission"},
       {"--read-ahead", "SIZE", "auto", "bytes fetched beyond the ready batches"},
       {"--io-threads", "N", "auto", "threads that read"}}};
}

std::vector<Flag> trouble_flags() {
  return {
      {"--on-error", "HOW", std::string(name(kDefaults.on_error)), "a bad sample: raise, skip, replace or zero", true},
      {"--max-errors", "N", "0", "more in an epoch end the run; below 1: a share of the data set; 0: no limit"},
      {"--timeout", "TIME", "5m", "without any progress: an error that names the sample; 0: never"}};
}

std::vector<Flag> step_flags() {
  return {{"--step-ms", "MS", "0", "emulated step of the accelerator; 0 is full speed", true},
          {"--workload", "NAME", "", "emulated accelerator, such as resnet50-h100; the list is below", true}};
}

std::string loader_help() {
  std::string out = "transforms (--transform, separated by commas):\n" + transform::ops_help();
  if (out.back() != '\n') out += '\n';
  out += "\nworkloads (--workload; batch size and step of MLPerf Storage):\n";
  std::vector<std::vector<std::string>> rows = {{"name", "batch size", "step", "AU at least"}};
  for (const feed::Workload& workload : feed::workloads()) {
    rows.push_back({std::string(workload.name), std::to_string(workload.batch_size),
                    fmt::format("{:.2f} ms", workload.step_ms), fmt::format("{:.0f} %", 100 * workload.au_min)});
  }
  out += table(rows, "  ");
  return out;
}

}  // namespace stoker::cli
