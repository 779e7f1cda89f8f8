#include "stoker/tune/target.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/os/file.h"
#include "stoker/os/read_file.h"
#include "stoker/tune/config_file.h"
#include "stoker/tune/template.h"

namespace stoker::tune {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
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

std::vector<std::string> loader_command(const Target& target, const Point& point, const Json& config,
                                        const std::string& program) {
  std::vector<std::string> command = {program, "load", target.address, "--quiet"};
  command.insert(command.end(), target.passed.begin(), target.passed.end());
  bool shuffled = config.at("shuffle").get<bool>();
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

void add_knobs(Grid& grid, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {  // one word may hold several
    const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    if (end > at) grid.add(text.substr(at, end - at));
    at = end + 1;
  }
}

void add_loader_knobs(Grid& grid, int cores) {
  std::string workers = "num_workers=1";
  for (int count = 2; count <= 2 * cores; count *= 2) workers += fmt::format(",{}", count);
  grid.add(workers);
  grid.add("prefetch_factor=1,2,4");
  grid.add("batch_size=32,64,128");
}

void check_command_knobs(const Grid& grid, const Target& target) {
  std::set<std::string> used;
  const Point first = grid.point(0);
  const Point files = {{"config", ""}, {"template", ""}};
  for (const std::string& word : target.command) fill_in(word, first, files, used);
  for (const auto& [what, file] :
       {std::pair("config", target.config_file), std::pair("template", target.template_file)}) {
    if (file.empty() || used.contains(what)) continue;
    throw Error(ErrorKind::usage, fmt::format("nothing in the command takes the copy of `{}`", file),
                fmt::format("write `{{{}}}` where its path belongs", what));
  }
  if (!target.template_file.empty()) fill_in(os::read_text(target.template_file), first, {}, used);
  for (const Knob& knob : grid.knobs()) {
    if (used.contains(knob.name) || has(target.config_keys, knob.name)) continue;
    throw Error(ErrorKind::usage, fmt::format("nothing in the command takes `{}`", knob.name),
                fmt::format("write `{{{}}}` where its value belongs", knob.name));
  }
}

std::vector<std::string> notes_of_braces(const Target& target, const Grid& grid) {
  std::vector<std::string> notes;
  for (const std::string& word : target.command) {
    if (word.size() < 3 || word.front() != '{' || word.back() != '}') continue;
    const std::string name = word.substr(1, word.size() - 2);
    const bool is_name =
        std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    const bool is_knob =
        std::any_of(grid.knobs().begin(), grid.knobs().end(), [&](const Knob& knob) { return knob.name == name; });
    if (!is_name || is_knob || name == "config" || name == "template" || name == "trial") continue;
    notes.push_back(fmt::format(
        "`{}` matches no knob and is passed to the job unchanged; add `--grid {}=...` to tune it", word, name));
  }
  return notes;
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

Grid read_grid(const Json& config) {
  Grid grid;
  for (const auto& [knob, values] : config.at("grid").items()) {
    std::string text = knob + "=";
    for (const auto& value : values) text += (text.back() == '=' ? "" : ",") + value.get<std::string>();
    grid.add(text);
  }
  return grid;
}

StepsFrom steps_from(const Json& config, const Target& target) {
  const std::string word = config.at("steps_from").get<std::string>();
  if (word == "reports" || (word == "auto" && target.command.empty())) return StepsFrom::reports;
  if (word == "output" || (word == "auto" && config.at("rate_regex").is_string())) return StepsFrom::output;
  if (word == "hook" || word == "auto") return StepsFrom::hook;
  throw Error(ErrorKind::usage, fmt::format("`--steps-from` is auto, hook, output or reports, not `{}`", word));
}

std::vector<std::string> command_for(const Target& target, const Point& point, const std::string& folder,
                                     const Json& config, const std::string& program) {
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
  command =
      target.is_ours() ? loader_command(target, point, config, program) : function_command(target, of_function, files);
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

}  // namespace stoker::tune
