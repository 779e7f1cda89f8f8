#include "load_options.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/feed/workload.h"

#include "terminal.h"

namespace stoker::cli {
namespace {

using loader::Heading;
using loader::ValueType;

// What the option does, with the words that it takes behind the first clause.
std::string help_of(const loader::Option& option) {
  std::string help(option.meaning);
  if (option.type != ValueType::word) return help;
  const auto all_but_last = option.words.first(option.words.size() - 1);
  return help.insert(std::min(help.find(';'), help.size()),
                     fmt::format(": {} or {}", fmt::join(all_but_last, ", "), option.words.back()));
}

// How many epochs there are is said by each verb in its own way.
bool is_flag(const loader::Option& option) noexcept {
  return option.name != "epochs";
}

std::vector<Flag> flags_below(std::initializer_list<Heading> headings) {
  std::vector<Flag> flags;
  for (const loader::Option& option : loader::option_table()) {
    for (const Heading heading : headings) {
      if (option.heading == heading && is_flag(option)) flags.push_back(option_flag(option.name));
    }
  }
  return flags;
}

}  // namespace

Flag option_flag(std::string_view name) {
  const loader::Option& option = loader::find_option(name);
  Flag flag;
  flag.name = flag_of(option.name);
  flag.help = help_of(option);
  flag.brief = option.is_brief;
  if (option.type == ValueType::on_off) return flag;
  flag.fallback = loader::default_text(option);
  if (option.type == ValueType::shuffle) {  // alone it is a switch
    flag.negatable = true;
    flag.choice = option.placeholder;
  } else {
    flag.value = option.placeholder;
  }
  return flag;
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

loader::Request loader_request(const Arguments& arguments, const std::optional<feed::Workload>& workload) {
  std::vector<loader::Given> given;
  if (workload) given.push_back({"batch_size", workload->batch_size});
  for (const loader::Option& option : loader::option_table()) {
    if (!is_flag(option)) continue;
    const std::string flag = flag_of(option.name);
    const std::optional<bool> on = arguments.is_on(flag);
    if (!on) continue;
    given.push_back({std::string(option.name), *on ? loader::read_value(option, arguments.text(flag)) : false});
  }
  return loader::make_request(given);
}

Section batch_flags() {
  return {"batches", flags_below({Heading::order, Heading::output})};
}

Section sample_flags() {
  return {"which samples", flags_below({Heading::samples})};
}

Section resource_flags() {
  return {"resources", flags_below({Heading::resources})};
}

std::vector<Flag> trouble_flags() {
  return flags_below({Heading::bad_samples});
}

std::vector<Flag> step_flags() {
  return {{"--step-ms", "MS", "0", "emulated step of the accelerator; 0 is full speed", true},
          {"--workload", "NAME", "",
           "emulated accelerator, such as resnet50-h100; it brings its batch size; the list is below", true}};
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
