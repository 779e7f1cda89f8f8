#include "stoker/tune/wishes.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/dataset.h"
#include "stoker/loader/option_table.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/config_file.h"

namespace stoker::tune {
namespace {

constexpr std::array<std::string_view, 15> kPassed = {
    "where",      "transform", "color",       "dtype",   "seed",    "label",    "class_subset", "class_subset_seed",
    "class_list", "subset",    "subset_seed", "inflate", "step_ms", "workload", "storage"};
constexpr std::array<std::string_view, 9> kForFunctions = {
    "where", "seed", "class_subset", "class_subset_seed", "class_list", "subset", "subset_seed", "inflate", "step_ms"};
constexpr std::array<std::string_view, 2> kOfTheStep = {"step_ms", "workload"};  // not of the loader

template <std::size_t N>
bool has_name(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_identifier(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// Data alone, for our own loader.
void take_address(const TargetWishes& wishes, Target& target) {
  target.address = wishes.operands.empty() ? "" : wishes.operands[0];
  if (target.address.empty()) dataset::open("", {});  // throws, in the words of everybody who opens a data set
  if (target.address.ends_with(".py")) {
    throw Error(ErrorKind::usage, fmt::format("`{}` is a program, not data", target.address),
                fmt::format("name its function, {0}:build, or run it: -- python {0}", target.address));
  }
  if (wishes.operands.size() > 1) {
    throw Error(ErrorKind::usage, fmt::format("`{}` does not name a function of a module or file", target.address),
                "data alone is for our own loader; a function is written module:function or file.py:function");
  }
  for (const auto& [name, file] :
       {std::pair("template", wishes.template_file), std::pair("config", wishes.config_file)}) {
    if (!file.empty())
      throw Error(ErrorKind::usage, format_text("`{}` is for commands and functions", option(name))).about(name);
  }
}

void take_option(const std::string& name, const std::string& value, Target& target) {
  const bool is_for_functions = has_name(kForFunctions, name);
  if (target.is_ours()) {
    if (!has_name(kOfTheStep, name)) loader::check_value(loader::find_option(name), value);
    target.passed.insert(target.passed.end(), {flag_of(name), value});
  } else if (!target.function.empty() && is_for_functions) {
    target.settings[name] = value;
  } else {
    throw Error(ErrorKind::usage,
                format_text("`{}` is for our own loader{}, not for {}", option(name),
                            is_for_functions ? " and for functions" : "", target.text()),
                "leave it out, or give it to the job itself")
        .about(name);
  }
}

}  // namespace

std::span<const std::string_view> passed_options() noexcept {
  return kPassed;
}

Target make_target(const TargetWishes& wishes) {
  Target target;
  target.command = wishes.command;
  target.template_file = wishes.template_file;
  target.config_file = wishes.config_file;
  if (!target.command.empty() && !wishes.operands.empty()) {
    throw Error(ErrorKind::usage, fmt::format("`{}` and a command behind `--` are two targets", wishes.operands[0]),
                "give one of the two");
  }
  if (!wishes.operands.empty() && names_function(wishes.operands[0])) {
    target.function = wishes.operands[0];
    target.python = wishes.python;
    if (wishes.operands.size() > 1) target.address = wishes.operands[1];
  } else if (target.command.empty()) {
    take_address(wishes, target);
  }
  for (const auto& [name, value] : wishes.options) take_option(name, value, target);
  for (const std::string& text : wishes.with) {
    const std::size_t equals = text.find('=');
    if (target.function.empty() || equals == std::string::npos || equals == 0) {
      throw Error(
          ErrorKind::usage, format_text("`{}` does not say what a function is given", option("with", text)),
          format_text("write it like {}, and only for a target module:function", option("with", "img_size=224")));
    }
    target.settings[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return target;
}

Grid make_grid(const GridWishes& wishes, Target& target) {
  Grid grid;
  for (const std::string& text : wishes.knobs) add_knobs(grid, text);
  for (const std::string& file : wishes.files) add_grid_file(grid, os::read_text(file), file);
  // How samples are shuffled is a knob of one value; whether they are, a setting.
  if (!wishes.shuffle.empty()) grid.add("shuffle=" + wishes.shuffle);
  std::vector<std::string> config_knobs;
  for (const std::string& text : wishes.config_knobs) {
    if (!names_literal(text)) {
      config_knobs.push_back(text);
      continue;
    }
    if (target.command.empty()) {
      throw Error(ErrorKind::usage,
                  format_text("`{}` changes a Python file of a job, and there is no command", option("set", text)),
                  "give the job behind `--`");
    }
    grid.add(text);
    target.source_keys.push_back(grid.knobs().back().name);
  }
  if (!config_knobs.empty() && target.config_file.empty()) {
    throw Error(ErrorKind::usage, format_text("`{}` changes keys of a file, but there is none", option("set")),
                format_text("name it: {}", option("config", "train.yaml")));
  }
  for (const std::string& text : config_knobs) {
    grid.add(text);
    target.config_keys.push_back(grid.knobs().back().name);
  }
  if (!target.config_file.empty()) {
    const ConfigFile file(os::read_text(target.config_file), target.config_file);
    for (const std::string& key : target.config_keys) file.check(key);
  }
  if (grid.knobs().empty() && (!wishes.knobs.empty() || !wishes.files.empty())) {
    throw Error(
        ErrorKind::usage, "the grid is empty",
        format_text("write it like {} {}", option("grid", "batch_size=32,64"), option("grid", "num_workers=0,4,8")));
  }
  settle_grid(grid, target, wishes.has_workload);
  return grid;
}

bool names_literal(const std::string& text) {
  const std::string key = text.substr(0, text.find('='));
  const std::size_t colon = key.rfind(':');
  return colon != std::string::npos && std::string_view(key).substr(0, colon).ends_with(".py") &&
         is_identifier(std::string_view(key).substr(colon + 1));
}

bool names_function(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || !is_identifier(std::string_view(text).substr(colon + 1)) || os::exists(text))
    return false;
  std::string_view where = std::string_view(text).substr(0, colon);
  if (where.ends_with(".py")) return true;
  for (bool more = true; more;) {
    const std::size_t dot = where.find('.');
    more = dot != std::string_view::npos;
    if (!is_identifier(where.substr(0, dot))) return false;
    if (more) where.remove_prefix(dot + 1);
  }
  return true;
}

}  // namespace stoker::tune
