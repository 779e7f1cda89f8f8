#include "tune_target.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"
#include "stoker/loader/option_table.h"
#include "stoker/os/cpu.h"
#include "stoker/tune/config_file.h"

#include "entry_point.h"
#include "files.h"
#include "load_options.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

// Flags of ours that every trial of our loader gets as they are; those that are also for functions are so marked.
struct Passed {
  std::string_view flag;
  bool is_for_functions = false;
};
constexpr Passed kPassedOn[] = {{"--transform"},
                                {"--image-color"},
                                {"--dtype"},
                                {"--seed", true},
                                {"--label"},
                                {"--class-subset", true},
                                {"--class-subset-seed", true},
                                {"--class-list", true},
                                {"--subset", true},
                                {"--subset-seed", true},
                                {"--inflate", true},
                                {"--step-ms", true},
                                {"--workload"},
                                {"--storage"}};

std::string knob_of(std::string_view flag) {
  std::string knob(flag.substr(2));
  std::replace(knob.begin(), knob.end(), '-', '_');
  return knob;
}

// Every value is read as `stoker load` will read it, before the first trial.
void check_loader_knobs(const tune::Grid& grid) {
  std::vector<std::string_view> names;
  for (const loader::Option& option : loader::option_table()) {
    if (option.is_knob) names.push_back(option.name);
  }
  for (const tune::Knob& knob : grid.knobs()) {
    if (std::find(names.begin(), names.end(), knob.name) != names.end()) {
      for (const std::string& value : knob.values) check_option(knob.name, value);
      continue;
    }
    const std::string near = nearest(knob.name, names.data(), names.size());
    throw Error(ErrorKind::usage, fmt::format("our loader has no knob `{}`", knob.name),
                near.empty() ? fmt::format("its knobs are {}", fmt::join(names, ", "))
                             : fmt::format("did you mean `{}`?", near));
  }
}

}  // namespace

tune::Target make_target(const Arguments& arguments) {
  tune::Target target;
  target.command = arguments.command();
  target.template_file = arguments.text("--template");
  target.config_file = arguments.text("--config");
  if (!target.command.empty() && !arguments.operands().empty()) {
    throw Error(ErrorKind::usage, fmt::format("`{}` and a command behind `--` are two targets", arguments.operand()),
                "give one of the two");
  }
  if (target.command.empty() && names_function(arguments.operand())) {
    target.function = arguments.operand();
    target.python = arguments.text("--python");
    if (arguments.operands().size() > 1) target.address = arguments.operand(1);
  } else if (target.command.empty()) {
    target.address = arguments.operand();
    if (target.address.empty()) dataset::open("", {});  // throws, in the words of every other verb
    if (target.address.ends_with(".py")) {
      throw Error(ErrorKind::usage, fmt::format("`{}` is a program, not data", target.address),
                  fmt::format("name its function, {0}:build, or run it: -- python {0}", target.address));
    }
    if (arguments.operands().size() > 1) {
      throw Error(ErrorKind::usage, fmt::format("`{}` is no function of a module or file", target.address),
                  "data alone is for our own loader; a function is written module:function or file.py:function");
    }
    for (const char* flag : {"--template", "--config"}) {
      if (arguments.has(flag))
        throw Error(ErrorKind::usage, fmt::format("`{}` is for commands and functions", flag), "");
    }
  }
  for (const auto& [flag, is_for_functions] : kPassedOn) {
    if (!arguments.has(flag)) continue;
    if (target.is_ours()) {
      if (flag != "--step-ms" && flag != "--workload")
        check_option(flag == "--image-color" ? "color" : knob_of(flag), arguments.text(flag));
      target.passed.insert(target.passed.end(), {std::string(flag), arguments.text(flag)});
    } else if (!target.function.empty() && is_for_functions) {
      target.settings[knob_of(flag)] = arguments.text(flag);
    } else {
      throw Error(ErrorKind::usage,
                  fmt::format("`{}` is for our own loader{}, not for {}", flag,
                              is_for_functions ? " and for functions" : "", target.text()),
                  "leave it out, or give it to the job itself");
    }
  }
  for (const std::string& text : arguments.all("--with")) {
    const std::size_t equals = text.find('=');
    if (target.function.empty() || equals == std::string::npos || equals == 0) {
      throw Error(ErrorKind::usage, fmt::format("`--with {}` does not say what a function is given", text),
                  "write it like --with img_size=224, and only for a target module:function");
    }
    target.settings[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return target;
}

tune::Grid make_grid(const Arguments& arguments, tune::Target& target) {
  tune::Grid grid;
  for (const std::string& text : arguments.all("--grid")) tune::add_knobs(grid, text);
  for (const std::string& file : arguments.all("--grid-file")) tune::add_grid_file(grid, read_text(file), file);
  // How samples are shuffled is a knob of one value; whether they are, a setting.
  if (arguments.is_on("--shuffle").value_or(false) && !arguments.text("--shuffle").empty())
    grid.add("shuffle=" + arguments.text("--shuffle"));
  if (arguments.has("--set") && target.config_file.empty()) {
    throw Error(ErrorKind::usage, "`--set` changes keys of a file, but there is none", "name it: --config train.yaml");
  }
  for (const std::string& text : arguments.all("--set")) {
    grid.add(text);
    target.config_keys.push_back(grid.knobs().back().name);
  }
  if (!target.config_file.empty()) {
    const tune::ConfigFile file(read_text(target.config_file), target.config_file);
    for (const std::string& key : target.config_keys) file.check(key);
  }
  if (grid.knobs().empty() && (arguments.has("--grid") || arguments.has("--grid-file"))) {
    throw Error(ErrorKind::usage, "the grid is empty",
                "write it like --grid batch_size=32,64 --grid num_workers=0,4,8");
  }
  if (target.is_ours()) {
    if (grid.knobs().empty()) tune::add_loader_knobs(grid, os::effective_cores().whole());
    check_loader_knobs(grid);
    const bool has_batch = std::any_of(grid.knobs().begin(), grid.knobs().end(),
                                       [](const tune::Knob& knob) { return knob.name == "batch_size"; });
    if (!has_batch && !arguments.has("--workload"))
      target.passed.insert(target.passed.end(), {"--batch-size", std::to_string(tune::kBatchSize)});
    return grid;
  }
  if (grid.knobs().empty()) {
    throw Error(ErrorKind::usage, "there is no knob to tune",
                "say which: --grid batch_size=32,64 --grid num_workers=0,4,8");
  }
  for (const tune::Knob& knob : grid.knobs()) {
    if (!target.settings.contains(knob.name)) continue;
    throw Error(ErrorKind::usage, fmt::format("`{}` is a knob and a setting at once", knob.name),
                "leave one of the two out");
  }
  if (!target.command.empty()) tune::check_command_knobs(grid, target);
  return grid;
}

}  // namespace stoker::cli
