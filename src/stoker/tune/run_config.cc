#include "stoker/tune/run_config.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/loader/option_table.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/config_file.h"
#include "stoker/tune/config_json.h"
#include "stoker/tune/template.h"

namespace stoker::tune {
namespace {

// Copies of --config and --template for one trial; their paths by name.
Point write_copies(const Target& target, const Point& point, const std::string& folder) {
  Point paths;
  const auto place = [&](const std::string& file) {
    return folder + "/" + std::filesystem::path(file).filename().string();
  };
  std::set<std::string> used;
  if (!target.template_file.empty()) {
    paths["template"] = place(target.template_file);
    os::write_file(paths["template"], fill_in(os::read_text(target.template_file), point, {}, used));
  }
  if (!target.config_file.empty()) {
    // The trial's own config.json has that name already.
    const std::string name = std::filesystem::path(target.config_file).filename().string();
    paths["config"] = name == "config.json" ? folder + "/job_config.json" : place(target.config_file);
    os::write_file(paths["config"],
                   ConfigFile(os::read_text(target.config_file), target.config_file).with(point, target.config_keys));
  }
  return paths;
}

bool is_word_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::vector<std::string> loader_command(const RunConfig& config, const Point& point, const std::string& program) {
  const Target& target = config.target;
  std::vector<std::string> command = {program, "load", target.address, "--quiet"};
  command.insert(command.end(), target.passed.begin(), target.passed.end());
  bool shuffled = config.shuffle.value_or(false);
  for (const auto& [knob, value] : point) {
    if (knob == "shuffle") {
      shuffled = false;
      if (is_word_of(value, {"true", "True", "yes"})) {
        command.push_back("--shuffle");
      } else if (!is_word_of(value, {"false", "False", "no", "off"})) {
        command.push_back("--shuffle=" + value);
      }
      continue;
    }
    if (loader::find_option(knob).type == loader::ValueType::on_off) {  // a switch: off is to leave it out
      if (is_word_of(value, {"true", "True", "yes"})) command.push_back(flag_of(knob));
      continue;
    }
    command.push_back(flag_of(knob));
    command.push_back(value);
  }
  if (shuffled) command.push_back("--shuffle");
  return command;
}

std::vector<std::string> function_command(const Target& target, const Point& point, const Point& files) {
  Json knobs = Json::object();
  if (!target.address.empty()) knobs["source"] = target.address;
  for (const auto& [name, word] : target.settings) knobs[name] = value_of(word);
  for (const auto& [name, word] : point) knobs[name] = value_of(word);
  for (const auto& [name, path] : files) knobs[name] = path;
  return {target.python, "-m", "stoker._trial", target.function, "--knobs", knobs.dump()};
}

}  // namespace

bool RunConfig::is_of_tune() const {
  return schema.starts_with("stoker.tune.config/");
}

Grid RunConfig::grid() const {
  Grid grid;
  for (const Knob& knob : knobs) grid.add(fmt::format("{}={}", knob.name, fmt::join(knob.values, ",")));
  return grid;
}

StepsFrom RunConfig::where_steps_are() const {
  if (steps_from == "reports" || (steps_from == "auto" && target.command.empty())) return StepsFrom::reports;
  if (steps_from == "output" || (steps_from == "auto" && !(rate_regex.empty() && log_pattern.empty())))
    return StepsFrom::output;
  if (steps_from == "hook" || steps_from == "auto") return StepsFrom::hook;
  throw Error(ErrorKind::usage,
              format_text("`{}` is auto, hook, output or reports, not `{}`", option("steps_from"), steps_from));
}

std::chrono::nanoseconds RunConfig::bench_duration() const {
  return bench_time.empty() ? std::chrono::nanoseconds(0) : parse_duration(bench_time);
}

std::vector<std::string> command_for(const RunConfig& config, const Point& point, const std::string& folder,
                                     const std::string& program) {
  const Target& target = config.target;
  Point files = write_copies(target, point, folder);
  std::vector<std::string> command;
  if (!target.command.empty()) {
    std::set<std::string> used;
    files["trial"] = folder;
    for (const std::string& word : target.command) command.push_back(fill_in(word, point, files, used));
    return command;
  }
  Point of_function = point;  // what lives in the file is read from there
  for (const std::string& key : target.config_keys) of_function.erase(key);
  command = target.is_ours() ? loader_command(config, point, program) : function_command(target, of_function, files);
  for (const auto& [knob, steps] :
       {std::pair("warmup_steps", config.warmup_steps), std::pair("bench_steps", config.bench_steps)}) {
    if (steps) command.insert(command.end(), {flag_of(knob), std::to_string(*steps)});
  }
  if (const auto time = config.bench_duration(); time.count() > 0)
    command.insert(command.end(), {"--bench-time", fmt::format("{:g}", std::chrono::duration<double>(time).count())});
  return command;
}

std::string unfinished_of(const RunConfig& config, std::size_t points) {
  if (config.search != "grid" || config.knobs.empty()) return "";
  std::uint64_t all = 1;
  for (const Knob& knob : config.knobs) all *= knob.values.size();
  return points < all ? fmt::format("{} of {} points have a row", points, all) : "";
}

}  // namespace stoker::tune
