#include "tune_target.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/loader/option_table.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file.h"
#include "stoker/tune/config_file.h"
#include "stoker/tune/template.h"

#include "entry_point.h"
#include "files.h"
#include "load_options.h"
#include "own_verb.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using tune::Point;

// Flags of ours that every trial of our loader gets as they are; those that are also for functions are so marked.
struct Passed {
  std::string_view flag;
  bool is_for_functions = false;
};
constexpr Passed kPassedOn[] = {{"--transform"},         {"--image-color"},   {"--dtype"},
                                {"--seed", true},        {"--label"},         {"--subset", true},
                                {"--subset-seed", true}, {"--inflate", true}, {"--step-ms", true},
                                {"--workload"},          {"--storage"}};

std::string knob_of(std::string_view flag) {
  std::string knob(flag.substr(2));
  std::replace(knob.begin(), knob.end(), '-', '_');
  return knob;
}

void add_grid_words(tune::Grid& grid, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {  // one word may hold several
    const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    if (end > at) grid.add(text.substr(at, end - at));
    at = end + 1;
  }
}

void add_default_grid(tune::Grid& grid) {
  const int cores = os::effective_cores().whole();
  std::string workers = "num_workers=1";
  for (int count = 2; count <= 2 * cores; count *= 2) workers += fmt::format(",{}", count);
  grid.add(workers);
  grid.add("prefetch_factor=1,2,4");
  grid.add("batch_size=32,64,128");
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

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Every knob must get somewhere.
void check_command_knobs(const tune::Grid& grid, const Target& target) {
  std::set<std::string> used;
  const Point first = grid.point(0);
  const Point files = {{"config", ""}, {"template", ""}};
  for (const std::string& word : target.command) tune::fill_in(word, first, files, used);
  for (const auto& [what, file] :
       {std::pair("config", target.config_file), std::pair("template", target.template_file)}) {
    if (file.empty() || used.contains(what)) continue;
    throw Error(ErrorKind::usage, fmt::format("nothing in the command takes the copy of `{}`", file),
                fmt::format("write `{{{}}}` where its path belongs", what));
  }
  if (!target.template_file.empty()) tune::fill_in(read_text(target.template_file), first, {}, used);
  for (const tune::Knob& knob : grid.knobs()) {
    if (used.contains(knob.name) || has(target.config_keys, knob.name)) continue;
    throw Error(ErrorKind::usage, fmt::format("nothing in the command takes `{}`", knob.name),
                fmt::format("write `{{{}}}` where its value belongs", knob.name));
  }
}

// Copies of --config and --template for one trial; their paths by name.
Point write_copies(const Target& target, const Point& point, const std::string& folder) {
  Point paths;
  const auto place = [&](const std::string& file) {
    return folder + "/" + std::filesystem::path(file).filename().string();
  };
  std::set<std::string> used;
  if (!target.template_file.empty()) {
    paths["template"] = place(target.template_file);
    os::write_file(paths["template"], tune::fill_in(read_text(target.template_file), point, {}, used));
  }
  if (!target.config_file.empty()) {
    // The trial's own config.json has that name already.
    const std::string name = std::filesystem::path(target.config_file).filename().string();
    paths["config"] = name == "config.json" ? folder + "/job_config.json" : place(target.config_file);
    os::write_file(paths["config"],
                   tune::ConfigFile(read_text(target.config_file), target.config_file).with(point, target.config_keys));
  }
  return paths;
}

std::vector<std::string> loader_command(const Target& target, const Point& point, const Json& config) {
  std::vector<std::string> command = {own_program(), "load", target.address, "--quiet"};
  command.insert(command.end(), target.passed.begin(), target.passed.end());
  bool shuffled = config.at("shuffle").get<bool>();
  for (const auto& [knob, value] : point) {
    if (knob == "shuffle") {
      shuffled = false;
      const loader::Value how = loader::read_value(loader::find_option(knob), value);
      if (how == loader::Value(true)) command.push_back("--shuffle");
      if (std::holds_alternative<std::string>(how)) command.push_back("--shuffle=" + value);
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

std::string Target::text() const {
  if (is_ours()) return fmt::format("our loader on `{}`", address);
  if (!function.empty())
    return fmt::format("`{}`{}", function, address.empty() ? "" : fmt::format(" on `{}`", address));
  std::string out;
  for (const std::string& word : command) out += (out.empty() ? "" : " ") + word;
  return fmt::format("`{}`", out);
}

Target make_target(const Arguments& arguments) {
  Target target;
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

tune::Grid make_grid(const Arguments& arguments, Target& target) {
  tune::Grid grid;
  for (const std::string& text : arguments.all("--grid")) add_grid_words(grid, text);
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
    if (grid.knobs().empty()) add_default_grid(grid);
    check_loader_knobs(grid);
    const bool has_batch = std::any_of(grid.knobs().begin(), grid.knobs().end(),
                                       [](const tune::Knob& knob) { return knob.name == "batch_size"; });
    if (!has_batch && !arguments.has("--workload"))
      target.passed.insert(target.passed.end(), {"--batch-size", std::to_string(kBatchSize)});
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
  if (!target.command.empty()) check_command_knobs(grid, target);
  return grid;
}

void write_target(const Target& target, Json& config) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  const bool is_index = target.address.ends_with(".csv");
  config["source"] = or_null(target.address);
  config["index_csv"] = is_index ? Json(target.address) : Json(nullptr);
  config["function"] = or_null(target.function);
  config["python"] = or_null(target.python);
  config["settings"] = Json::object();
  for (const auto& [name, word] : target.settings) config["settings"][name] = word;
  config["command"] = target.command.empty() ? Json(nullptr) : Json(target.command);
  config["flags"] = target.passed;
  config["template"] = or_null(target.template_file);
  config["config"] = or_null(target.config_file);
  config["set"] = target.config_keys;
}

Target read_target(const Json& config) {
  Target target;
  const auto text = [&](const char* key) {
    const auto found = config.find(key);
    return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  target.address = text("source");
  target.function = text("function");
  target.python = text("python");
  target.template_file = text("template");
  target.config_file = text("config");
  if (config.contains("settings"))
    for (const auto& [name, value] : config.at("settings").items()) target.settings[name] = value.text();
  if (config.contains("set")) target.config_keys = config.at("set").get<std::vector<std::string>>();
  if (config.at("command").is_array()) target.command = config.at("command").get<std::vector<std::string>>();
  target.passed = config.at("flags").get<std::vector<std::string>>();
  // Earlier versions called it so.
  std::replace(target.passed.begin(), target.passed.end(), std::string("--color"), std::string("--image-color"));
  return target;
}

tune::Grid read_grid(const Json& config) {
  tune::Grid grid;
  for (const auto& [knob, values] : config.at("grid").items()) {
    std::string text = knob + "=";
    for (const auto& value : values) text += (text.back() == '=' ? "" : ",") + value.get<std::string>();
    grid.add(text);
  }
  return grid;
}

tune::StepsFrom steps_from(const Json& config, const Target& target) {
  const std::string word = config.at("steps_from").get<std::string>();
  if (word == "reports" || (word == "auto" && target.command.empty())) return tune::StepsFrom::reports;
  if (word == "output" || (word == "auto" && config.at("rate_regex").is_string())) return tune::StepsFrom::output;
  if (word == "hook" || word == "auto") return tune::StepsFrom::hook;
  throw Error(ErrorKind::usage, fmt::format("`--steps-from` is auto, hook, output or reports, not `{}`", word));
}

std::vector<std::string> command_for(const Target& target, const Point& point, const std::string& folder,
                                     const Json& config) {
  Point files = write_copies(target, point, folder);
  std::vector<std::string> command;
  if (!target.command.empty()) {
    std::set<std::string> used;
    files["trial"] = folder;
    for (const std::string& word : target.command) command.push_back(tune::fill_in(word, point, files, used));
    return command;
  }
  Point of_function = point;  // what lives in the file is read from there
  for (const std::string& key : target.config_keys) of_function.erase(key);
  command = target.is_ours() ? loader_command(target, point, config) : function_command(target, of_function, files);
  for (const char* knob : {"warmup_steps", "bench_steps"}) {
    command.push_back(flag_of(knob));
    command.push_back(std::to_string(config.at(knob).get<std::uint64_t>()));
  }
  if (config.contains("bench_time")) {
    const auto time = parse_duration(config.at("bench_time").get<std::string>());
    command.insert(command.end(), {"--bench-time", fmt::format("{:g}", std::chrono::duration<double>(time).count())});
  }
  return command;
}

Json value_of(const std::string& word) {
  if (word == "True") return true;
  if (word == "False") return false;
  if (word == "None" || word == "none") return nullptr;
  const Json value = Json::try_parse(word).value_or(word);
  return value.is_array() || value.is_object() ? Json(word) : value;
}

}  // namespace stoker::cli
