// stoker plan: from measured rows to a sized run: days, memory, options, what-ifs.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/dataset/dataset.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file.h"
#include "stoker/os/memory.h"
#include "stoker/plan/answer.h"
#include "stoker/plan/answer_json.h"
#include "stoker/plan/case.h"
#include "stoker/plan/ledger.h"
#include "stoker/plan/wishes.h"
#include "stoker/tune/model_trace.h"
#include "stoker/tune/recorded_run.h"

#include "files.h"
#include "interrupt.h"
#include "plan_report.h"
#include "plan_trials.h"
#include "scan.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

double days(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count() / 86400;
}
double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::vector<double> node_counts(const Arguments& arguments) {
  constexpr std::string_view flag = "--nodes";
  std::vector<double> all;
  for (const std::string& text : arguments.all(flag)) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      const std::string word = text.substr(at, end - at);
      const bool is_word = word.find_first_not_of("0123456789.eE+-") != std::string::npos;
      const std::optional<double> number = is_word ? std::nullopt : tune::number_of(word);
      if (!number || !(*number >= 1) || *number > plan::kMostNodes || *number != std::floor(*number)) {
        throw Error(ErrorKind::usage,
                    fmt::format("`{}` takes whole numbers from 1 to {:.0f}, not `{}`", flag, plan::kMostNodes, word),
                    "write them like 1,8,64,1000");
      }
      all.push_back(*number);
      at = end + 1;
    }
  }
  return all;
}

// "28.4e6" or "28.4M".
double many(const Arguments& arguments, std::string_view flag) {
  std::string text = arguments.text(flag);
  double times = 1;
  if (!text.empty()) {
    const char unit = text.back();
    times = unit == 'k' || unit == 'K' ? 1e3 : unit == 'M' ? 1e6 : unit == 'G' || unit == 'B' ? 1e9 : 1;
    if (times > 1) text.pop_back();
  }
  const bool is_word = text.empty() || (text[0] >= 'A' && text[0] <= 'z');
  const std::optional<double> number = is_word ? std::nullopt : tune::number_of(text);
  if (!number) {
    throw Error(ErrorKind::usage, fmt::format("`{}` takes a number, not `{}`", flag, arguments.text(flag)),
                "write it like 28400000, 28.4e6 or 28.4M");
  }
  const double value = *number * times;
  if (!(value > 0) || value > 1e18)
    throw Error(ErrorKind::usage, fmt::format("`{}` is {}, which no job has", flag, arguments.text(flag)));
  return value;
}

double within(const Arguments& arguments, std::string_view flag, double least, double most) {
  const double value = arguments.number(flag);
  if (value >= least && value <= most) return value;
  throw Error(ErrorKind::usage, fmt::format("`{}` is {}, which no job has", flag, arguments.text(flag)));
}

double positive(const Arguments& arguments, std::string_view flag) {
  return within(arguments, flag, 1e-12, 1e18);
}

double price(const Arguments& arguments, std::string_view flag) {
  return within(arguments, flag, 0, 1e9);
}

double above_zero(const Arguments& arguments, std::string_view flag) {
  const auto bytes = static_cast<double>(arguments.bytes(flag));
  if (bytes > 0) return bytes;
  throw Error(ErrorKind::usage, fmt::format("`{}` is 0", flag), "leave it out if it is not known");
}

double budget_days(const Arguments& arguments) {
  const std::string text = arguments.text("--budget");
  if (text.find_first_not_of("0123456789.") == std::string::npos) {
    throw Error(ErrorKind::usage, fmt::format("--budget {} has no unit", text),
                fmt::format("--budget {}d means days, --budget {}h hours", text, text));
  }
  return days(arguments.duration("--budget"));
}

plan::JobWishes job_wishes(const Arguments& arguments) {
  plan::JobWishes wishes;
  const auto seconds_of = [&](std::string_view flag) {
    return arguments.has(flag) ? std::optional(seconds(arguments.duration(flag))) : std::nullopt;
  };
  if (arguments.has("--images")) wishes.images = many(arguments, "--images");
  if (arguments.has("--epochs")) wishes.epochs = positive(arguments, "--epochs");
  if (arguments.has("--budget")) wishes.budget_days = budget_days(arguments);
  if (arguments.has("--effective-batch")) wishes.effective_batch = arguments.number("--effective-batch", 1);
  if (arguments.has("--lr")) wishes.learning_rate = positive(arguments, "--lr");
  wishes.validation_s = seconds_of("--validation-time");
  wishes.checkpoint_s = seconds_of("--checkpoint-time");
  wishes.checkpoint_every_s = seconds_of("--checkpoint-every");
  if (arguments.has("--cold-rate")) wishes.cold_per_s = positive(arguments, "--cold-rate");
  wishes.needs_no_job = !arguments.has("--run") && !arguments.has("--case");
  for (const std::string_view flag : {"--dataset-samples", "--dataset-bytes"}) {
    if (!arguments.has(flag) || !arguments.has("--dataset")) continue;
    throw Error(ErrorKind::usage, fmt::format("`{}` and `--dataset` do not go together", flag),
                "leave one of them out: --dataset counts samples and bytes itself");
  }
  if (arguments.has("--dataset-samples")) wishes.epoch_images = many(arguments, "--dataset-samples");
  if (arguments.has("--dataset-bytes")) wishes.dataset_bytes = above_zero(arguments, "--dataset-bytes");
  return wishes;
}

void take_job(const Arguments& arguments, const Face& face, plan::PlanInput& input) {
  plan::JobWishes wishes = job_wishes(arguments);
  std::string address = arguments.text("--dataset");
  if (address.empty() && !wishes.epoch_images) {
    const std::vector<std::string> found = plan::data_to_look_at(wishes, input);
    const auto first = std::find_if(found.begin(), found.end(), [](const std::string& one) { return exists(one); });
    if (first != found.end()) address = *first;
  }
  if (!address.empty()) {
    const dataset::DatasetPtr data = scan(face, address);
    wishes.epoch_images = static_cast<double>(data->size());
    wishes.dataset_bytes = static_cast<double>(data->facts().total_bytes);
  }
  if (wishes.epochs && wishes.epoch_images && *wishes.epochs * *wishes.epoch_images > 1e18) {
    throw Error(ErrorKind::usage, fmt::format("{} epochs of {:.0f} samples are more than any job has",
                                              arguments.text("--epochs"), *wishes.epoch_images));
  }
  plan::add_wishes(wishes, input);
}

void take_prices(const Arguments& arguments, plan::PlanInput& input) {
  const bool has_limit = arguments.has("--cache-limit");
  if (!arguments.has("--price-per-1000-requests") && !arguments.has("--price-per-gb")) {
    if (has_limit && !arguments.has("--nodes")) {
      throw Error(ErrorKind::usage, "`--cache-limit` is for the costs of a store, and no price is given",
                  "add --price-per-1000-requests or --price-per-gb, or --nodes");
    }
    return;
  }
  plan::StorePrices prices;
  if (arguments.has("--price-per-1000-requests"))
    prices.per_1000_requests = price(arguments, "--price-per-1000-requests");
  if (arguments.has("--price-per-gb")) prices.per_gb = price(arguments, "--price-per-gb");
  if (has_limit) prices.cache_limit_bytes = static_cast<double>(arguments.bytes("--cache-limit"));
  input.prices = prices;
}

plan::FleetWishes fleet_wishes(const Arguments& arguments) {
  for (const std::string_view flag : {"--node-rate", "--nic-rate", "--store-rate", "--store-requests", "--prefixes"}) {
    if (!arguments.has(flag) || arguments.has("--nodes")) continue;
    throw Error(ErrorKind::usage, fmt::format("`{}` is for several nodes, and none are asked for", flag),
                "add --nodes 1,8,64,1000");
  }
  plan::FleetWishes wishes;
  if (arguments.has("--node-rate")) wishes.node_per_s = positive(arguments, "--node-rate");
  if (arguments.has("--nic-rate")) wishes.nic_bytes_per_s = above_zero(arguments, "--nic-rate");
  if (arguments.has("--cache-limit")) wishes.cache_bytes = static_cast<double>(arguments.bytes("--cache-limit"));
  if (arguments.has("--store-rate")) wishes.store.bytes_per_s = above_zero(arguments, "--store-rate");
  if (arguments.has("--store-requests")) wishes.store.requests_per_s = positive(arguments, "--store-requests");
  if (arguments.has("--prefixes")) wishes.store.prefixes = static_cast<double>(arguments.count("--prefixes", 1));
  return wishes;
}

std::map<std::string, std::string> knobs_in(const std::string& text) {
  std::map<std::string, std::string> knobs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size()), equals = text.find('=', at);
    if (equals == std::string::npos || equals >= end) {
      throw Error(ErrorKind::usage, fmt::format("`--current {}` has a part without `=`", text),
                  "write it like num_workers=1,batch_size=32");
    }
    knobs[text.substr(at, equals - at)] = text.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return knobs;
}

void take_machine(const Arguments& arguments, plan::PlanInput& input) {
  const auto bytes_of = [&](std::string_view flag) {
    return arguments.has(flag) ? std::optional(static_cast<double>(arguments.bytes(flag))) : std::nullopt;
  };
  plan::MachineWishes wishes{.models = arguments.all("--model"),
                             .amp = arguments.has("--amp") ? arguments.text("--amp") : "",
                             .checkpointing = arguments.has("--checkpointing"),
                             .unified = arguments.has("--unified"),
                             .device_memory_bytes = bytes_of("--device-memory"),
                             .memory_limit_bytes = bytes_of("--memory-limit"),
                             .shm_bytes = bytes_of("--shm"),
                             .disk_bytes_per_s = bytes_of("--disk-rate")};
  if (arguments.has("--cores")) wishes.cores = arguments.number("--cores", 1);
  if (arguments.has("--current")) wishes.current = knobs_in(arguments.text("--current"));
  if (arguments.has("--ledger")) {
    const std::string file = arguments.text("--ledger");
    const Json ledger = Json::parse_or_null(read_text(file));
    for (plan::PlanRun& run : input.runs) {
      if (run.kind != plan::PlanSource::ledger) plan::read_ledger(ledger, file, run);
    }
  }
  if (arguments.has("--optimizer")) wishes.optimizer = arguments.text("--optimizer");
  for (const std::string& model : plan::models_to_trace(wishes, input)) {
    const bool recomputes = wishes.checkpointing || (!input.runs.empty() && input.runs[0].training.checkpointing);
    say(printable_lines(fmt::format("tracing {}\n", model)));
    wishes.traced[model] =
        plan::traced_of(tune::trace_model(arguments.text("--python"), {.model = model,
                                                                       .amp = arguments.text("--amp"),
                                                                       .optimizer = arguments.text("--optimizer"),
                                                                       .checkpointing = recomputes}));
  }
  plan::add_wishes(wishes, input);
}

plan::PlanInput read_input(const Arguments& arguments) {
  const std::vector<std::string> runs = arguments.all("--run");
  if (runs.empty() && !arguments.has("--case") && arguments.has("--ledger")) {
    plan::PlanInput input;
    input.runs.push_back(
        plan::run_of_ledger(Json::parse_or_null(read_text(arguments.text("--ledger"))), arguments.text("--ledger")));
    return input;
  }
  if (runs.empty() && !arguments.has("--case") && arguments.has("--nodes") && arguments.has("--node-rate")) {
    plan::PlanInput input;
    input.runs.push_back(plan::run_of_rate(positive(arguments, "--node-rate")));
    return input;
  }
  if (runs.empty() == !arguments.has("--case")) {
    throw Error(
        ErrorKind::usage,
        runs.empty() ? "cannot plan: there is nothing measured to plan from" : "`--run` and `--case` are two sources",
        runs.empty() ? "add --run RUNDIR (of `stoker tune`), --run results.csv, --case FILE, --ledger FILE, or "
                       "--node-rate N with --nodes"
                     : "give one of the two");
  }
  if (runs.empty()) return plan::parse_case(read_text(arguments.text("--case")), arguments.text("--case"));
  tune::ColumnMap columns;
  for (const std::string& text : arguments.all("--map")) tune::add_column(columns, text);
  plan::PlanInput input;
  for (const std::string& path : runs) input.runs.push_back(plan::run_of(tune::read_all(path, columns)));
  return input;
}

// A plan that we wrote before may be replaced: it can be made again.
bool is_our_plan(const std::string& file) {
  const auto json = Json::parse_or_null(read_text(file));
  return json.is_object() && json.value("schema", "") == "stoker.plan/1";
}

std::vector<std::string> files_of(const Arguments& arguments, const plan::PlanInput& input) {
  if (arguments.has("--out")) {
    const std::string file = arguments.text("--out");
    require_free(file, arguments.has("--force") || (exists(file) && is_our_plan(file)), "--out");
    return {file};
  }
  std::vector<std::string> files;
  for (const plan::PlanRun& run : input.runs) {
    if (run.kind != plan::PlanSource::run || !exists(run.source + "/config.json")) continue;
    const std::string file = (std::filesystem::path(run.source) / "plan.json").string();
    require_free(file, arguments.has("--force") || (exists(file) && is_our_plan(file)), "--out");
    files.push_back(file);
  }
  return files;
}

void say_dry(const plan::PlanInput& input, const Arguments& arguments, const std::vector<std::string>& files) {
  std::string out;
  for (const plan::PlanRun& run : input.runs) {
    out += fmt::format("plans from {} rows of `{}`\n", run.rows.size(), run.source);
    if (arguments.has("--verify") && !run.address.empty()) out += fmt::format("runs our loader on `{}`\n", run.address);
  }
  for (const std::string& file : files) out += fmt::format("writes {}\n", file);
  answer(printable_lines(out));
}

int run_plan(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  const plan::PlanWishes wishes{
      .nodes = node_counts(arguments), .fleet = fleet_wishes(arguments), .what_ifs = arguments.all("--what-if")};
  plan::PlanInput input = read_input(arguments);
  const std::vector<std::string> files = files_of(arguments, input);
  take_job(arguments, face, input);
  take_machine(arguments, input);
  take_prices(arguments, input);
  if (!wishes.what_ifs.empty() && !arguments.has("--verify")) plan::require_stages(input);
  if (arguments.has("--dry-run")) {
    say_dry(input, arguments, files);
    return 0;
  }

  Bar bar(face, "measuring");
  std::uint64_t done = 0;
  const std::uint64_t bench_steps = arguments.count("--bench-steps", 4);
  const bool verifies = arguments.has("--verify");
  std::optional<PlanTrials> trials;
  if (verifies) trials.emplace(bench_steps, interrupted);
  const plan::VerifyOptions verifying{
      .bench_steps = bench_steps,
      .rounds = 2,
      .run = [&](const std::vector<std::string>& words) { return trials->run(words); },
      .pack = [&](const std::string& address, plan::Change change) { return trials->pack(address, change); },
      .begun = [&](const std::string&) { bar.update(++done, "runs"); },
      .interrupted = interrupted};
  if (verifies) {
    bool any = false;
    for (plan::PlanRun& one : input.runs) {
      if (one.address.empty()) continue;
      any = true;
      if (one.current.empty()) {
        plan::PlanRun settled = one;
        plan::settle_rows(settled, input.effective_batch);
        if (!settled.choice.chosen) continue;
        one.current = settled.configurations[*settled.choice.chosen].knobs;
      }
      if (!one.stages) plan::measure_ledger(one, verifying);
    }
    if (!any) {
      throw Error(ErrorKind::usage, "`--verify` runs our own loader, and no run here is of it",
                  "plan from a run of `stoker tune ADDRESS`");
    }
  }
  plan::PlanAnswer planned = plan::make_plan(std::move(input), wishes);
  if (verifies) {
    for (plan::PlannedRun& one : planned.runs) {
      if (!one.input.address.empty() && one.chosen) plan::verify(one, verifying);
    }
    plan::finish_plan(planned);
  }
  bar.clear();
  if (interrupted()) {
    say("interrupted\n");
    return interruption_code();
  }
  const SpellText spell = [&](const Text& text) { return in_flags(text, arguments.verb()); };
  const std::string json = plan::to_json(planned, spell).dump(2) + "\n";
  std::vector<std::string> written;
  if (planned.chosen_run) {
    for (const std::string& file : files) {
      os::write_file(file, json);
      written.push_back(file);
    }
  }
  answer(face.json ? json : to_text(planned, spell, face.out, written));
  return planned.is_no ? 1 : 0;
}

std::string more_plan_help() {
  return "what can be asked (--what-if):\n"
         "  num_workers=4  storage=buffered|direct|mmap|ram  pack=raw|encoded  local_copy\n"
         "  cache=10GB  prep=2 (times as fast)  step_ms=20  ranks=2  batch_size=128  cores=8\n";
}

}  // namespace

const Verb& plan_verb() {
  static const Verb verb = {
      "plan",
      "days, memory, options and what-ifs of the big run, from what was measured",
      "",
      "",
      {{"stoker plan --run runs/large --images 28.4e6 --budget 15d", "does the job fit into 15 days?"},
       {"stoker plan --run runs/giant --run runs/large --epochs 90 --dataset data/train", "compare two models"},
       {"stoker plan --run results.csv --map images_per_s=throughput --images 1e6", "plan from any table of rates"},
       {"stoker plan --nodes 1,8,64,1000 --node-rate 2500 --dataset-samples 1.28M --dataset-bytes 150GB --nic-rate 3GB",
        "how many nodes does one store feed?"}},
      {{"what was measured",
        {{"--run", "DIR", "", "a folder of `stoker tune`, or a results.csv; again for each run", true},
         {"--case", "FILE", "", "figures of others, described in JSON (docs/reference/plan.md)", true},
         {"--map", "OURS=THEIRS", "", "a results.csv's column for one of ours, such as images_per_s=throughput"},
         {"--ledger", "FILE", "", "what `stoker load --bench-steps N --json` or `stoker measure --json` printed"}}},
       {"the job",
        {{"--images", "N", "", "samples to train on, all epochs together, such as 28.4e6 or 28.4M", true},
         {"--epochs", "N", "", "with --dataset: how often", true},
         {"--dataset", "ADDRESS", "", "its samples are counted", true},
         {"--dataset-samples", "N", "", "without --dataset: samples of the data set, such as 1.28M"},
         {"--dataset-bytes", "SIZE", "", "without --dataset: its size, such as 150GB"},
         {"--budget", "TIME", "", "such as 15d; without it only the time is told", true},
         {"--effective-batch", "N", "", "choose only where batch_size times accumulate_steps is N"},
         {"--lr", "RATE", "", "the learning rate now: options that change the batch say which it would be then"},
         {"--validation-time", "TIME", "", "per epoch"},
         {"--checkpoint-time", "TIME", "", "of one checkpoint"},
         {"--checkpoint-every", "TIME", "1h", "of training"},
         {"--cold-rate", "N", "", "samples per second of epoch 0, from a cold disk or a far store"}}},
       {"model and machine",
        {{"--model", "TEXT", "",
          "such as vit:dim=1024,depth=24,heads=16,patch=14,img=224, dino:large,img=224,small_views=8 (student, "
          "teacher, "
          "all views), or one to trace: torchvision:resnet50,img=224; one, or one per run"},
         {"--optimizer", "NAME", "", "sgd (with momentum) or adam; without: adam for vit: and dino:, sgd for others"},
         {"--python", "PROGRAM", "python3", "traces models; it needs torch and the package stoker"},
         {"--amp", "NAME", "bf16", "activations in bf16, fp16 or none"},
         {"--checkpointing", "", "", "activations are recomputed, layer by layer"},
         {"--device-memory", "BYTES", "", "of the accelerator"},
         {"--memory-limit", "BYTES", "", "of the host; without: what the run's machine had"},
         {"--shm", "BYTES", "", "of /dev/shm"},
         {"--unified", "", "", "host and device share one memory"},
         {"--cores", "N", "", "of the machine, for what-ifs"},
         {"--current", "KNOB=V,...", "", "the settings as they are now; without: the chosen ones"}}},
       {"what if",
        {{"--what-if", "WHAT", "", "only that, such as num_workers=4; again for more", true},
         {"--disk-rate", "BYTES", "", "what the disk reads per second"},
         {"--verify", "", "", "run the what-ifs that can run here, and compare", true},
         {"--bench-steps", "N", "40", "of each run of --verify"}}},
       {"many nodes and one store",
        {{"--nodes", "N,N", "", "epochs, limits and costs of these numbers of nodes, such as 1,8,64,1000", true},
         {"--node-rate", "N", "", "samples per second of one node; without: what was measured"},
         {"--nic-rate", "BYTES", "", "what the network of a node brings per second; without: no limit"},
         {"--store-requests", "N", "5500", "GET requests per second that a prefix of the store takes"},
         {"--prefixes", "N", "1", "over which the objects are spread evenly"},
         {"--store-rate", "BYTES", "", "what the store gives all nodes per second; without: no limit"}}},
       {"costs of a store",
        {{"--price-per-1000-requests", "PRICE", "",
          "of GET requests, such as 0.0004; adds what epochs and the run cost"},
         {"--price-per-gb", "PRICE", "", "of bytes that leave the store, per 10^9, such as 0.09"},
         {"--cache-limit", "SIZE", "", "of the disk cache of each node; without: it holds the data set"}}},
       {"output",
        {{"--out", "FILE", "", "the plan as JSON; without: plan.json in each run's folder", true},
         {"--force", "", "", "overwrite a file that Stoker did not write"},
         {"--dry-run", "", "", "say what would be read, run and written"}}},
       common_flags()},
      more_plan_help,
      run_plan};
  return verb;
}

}  // namespace stoker::cli
