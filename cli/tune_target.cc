#include "tune_target.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/dataset/dataset.h"
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
  tune::settle_grid(grid, target, arguments.has("--workload"));
  return grid;
}

}  // namespace stoker::cli
