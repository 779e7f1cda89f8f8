#include "stoker/tune/config_json.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/version.h"
#include "stoker/os/read_file.h"
#include "stoker/transform/ops.h"

namespace stoker::tune {
namespace {

constexpr std::string_view kConfigSchema = "stoker.tune.config/1";

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json setting_or_null(const Target& target, std::string_view name) {
  const auto found = target.settings.find(name);
  return found == target.settings.end() ? Json(nullptr) : value_of(found->second);
}

// The operations of our loader; none: it has no transform, or not one that is known.
transform::Ops ops_of(const Target& target) {
  const auto flag = std::find(target.passed.begin(), target.passed.end(), "--transform");
  if (flag == target.passed.end() || flag + 1 == target.passed.end()) return {};
  try {
    return transform::parse_ops(*(flag + 1));
  } catch (const Error&) {
    return {};  // the first trial refuses it
  }
}

Json side_of(std::uint32_t height, std::uint32_t width) {
  return width == 0 || width == height ? Json(height) : Json::array({height, width});
}

// The size of the images: what a function is given, or what the last operation of our loader makes.
Json image_size_of(const Target& target) {
  Json size = setting_or_null(target, "img_size");
  for (const transform::Op& op : ops_of(target)) {
    if (const auto* const crop = std::get_if<transform::RandomResizedCrop>(&op.what))
      size = side_of(crop->height, crop->width);
    if (const auto* const crop = std::get_if<transform::CenterCrop>(&op.what))
      size = side_of(crop->height, crop->width);
    if (const auto* const fixed = std::get_if<transform::Resize>(&op.what)) size = side_of(fixed->height, fixed->width);
  }
  return size;
}

Json window_of(const Target& target) {
  for (const transform::Op& op : ops_of(target)) {
    if (const auto* const window = std::get_if<transform::Window>(&op.what)) {
      return {{"level", Json::array({window->level_min, window->level_max})},
              {"width", Json::array({window->width_min, window->width_max})}};
    }
  }
  return setting_or_null(target, "window");
}

void add_target(const Target& target, Json& json) {
  json["source"] = text_or_null(target.address);
  json["index_csv"] = target.address.ends_with(".csv") ? Json(target.address) : Json(nullptr);
  json["function"] = text_or_null(target.function);
  json["python"] = text_or_null(target.python);
  json["settings"] = Json::object();
  for (const auto& [name, word] : target.settings) json["settings"][name] = word;
  json["command"] = target.command.empty() ? Json(nullptr) : Json(target.command);
  json["flags"] = target.passed;
  json["template"] = text_or_null(target.template_file);
  json["config"] = text_or_null(target.config_file);
  json["set"] = target.config_keys;
  if (!target.source_keys.empty()) json["set_source"] = target.source_keys;
  if (!target.loader_knobs.empty()) {
    json["loader"] = {{"file", target.loader.file}, {"line", target.loader.line}, {"name", target.loader.name}};
    json["loader"]["set"] = target.loader_knobs;
  }
}

Json environment_json(const Environment& environment) {
  Json json = {{"torch", environment.torch},
               {"cuda", environment.cuda},
               {"hip", environment.hip},
               {"driver", environment.driver},
               {"device_name", environment.device_name},
               {"cpu", environment.cpu},
               {"cores", environment.cores},
               {"memory_bytes", environment.memory_bytes},
               {"python", environment.python},
               {"stoker", environment.stoker}};
  if (environment.device_memory_bytes) json["device_memory_bytes"] = *environment.device_memory_bytes;
  return json;
}

// A word as the command line takes it, of any value.
std::string word_at(const Json& json, std::string_view key) {
  return value_text("", json[key]);
}

std::vector<std::string> words_of(const Json& list) {
  std::vector<std::string> words;
  if (!list.is_array()) return words;
  for (const Json& word : list) words.push_back(word.is_string() ? word.text() : word.dump());
  return words;
}

std::optional<std::uint64_t> count_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number >= 0 && number < 1.8e19 ? std::optional(static_cast<std::uint64_t>(number))
                                                                 : std::nullopt;
}

std::optional<std::string> text_of(const Json& value) {
  return value.is_string() ? std::optional(value.text()) : std::nullopt;
}

Target target_of(const Json& json) {
  Target target;
  target.address = word_at(json, "source");
  target.function = word_at(json, "function");
  target.python = word_at(json, "python");
  target.template_file = word_at(json, "template");
  target.config_file = word_at(json, "config");
  for (const auto& [name, value] : json["settings"].items()) target.settings[name] = value_text("", value);
  target.config_keys = words_of(json["set"]);
  target.source_keys = words_of(json["set_source"]);
  if (const Json& loader = json["loader"]; loader.is_object()) {
    target.loader = {
        .file = word_at(loader, "file"), .name = word_at(loader, "name"), .line = loader["line"].as<int>().value_or(0)};
    target.loader_knobs = words_of(loader["set"]);
  }
  target.command = words_of(json["command"]);
  target.passed = words_of(json["flags"]);
  // Earlier versions called it so.
  std::replace(target.passed.begin(), target.passed.end(), std::string("--color"), std::string("--image-color"));
  return target;
}

Environment environment_of(const Json& json) {
  return {.torch = text_of(json["torch"]),
          .cuda = text_of(json["cuda"]),
          .hip = text_of(json["hip"]),
          .driver = text_of(json["driver"]),
          .device_name = text_of(json["device_name"]),
          .cpu = text_of(json["cpu"]),
          .cores = number_at(json, {"cores"}),
          .memory_bytes = count_of(json["memory_bytes"]),
          .device_memory_bytes = count_of(json["device_memory_bytes"]),
          .python = text_of(json["python"]),
          .stoker = text_of(json["stoker"])};
}

}  // namespace

Json to_json(const RunConfig& config) {
  Json json = {{"schema", kConfigSchema}, {"stoker_version", kVersion}};
  add_target(config.target, json);
  const dataset::Narrowing& narrowing = config.narrowing;
  json["subset_size"] = narrowing.subset != 0 ? Json(narrowing.subset) : Json(nullptr);
  json["subset_seed"] = narrowing.subset != 0 ? Json(narrowing.subset_seed) : Json(nullptr);
  for (const Json classes = narrowing.to_json(); const auto& [key, value] : classes.items()) {
    if (key.starts_with("class")) json[key] = value;
  }
  json["inflation_factor"] = config.inflation_factor;
  json["img_size"] = image_size_of(config.target);
  json["window"] = window_of(config.target);
  // A command shuffles or not, which nobody knows here.
  json["shuffle"] = config.target.command.empty() ? Json(config.shuffle.value_or(false)) : Json(nullptr);
  json["search"] = config.search;
  json["steps_from"] = config.steps_from;
  json["rate_regex"] = text_or_null(config.rate_regex);
  if (!config.log_pattern.empty()) json["log_pattern"] = config.log_pattern;
  json["effective_batch"] = text_or_null(config.effective_batch);
  json["warmup_steps"] = config.warmup_steps;
  json["bench_steps"] = config.bench_steps;
  if (!config.bench_time.empty()) json["bench_time"] = config.bench_time;
  json["grid"] = Json::object();
  for (const Knob& knob : config.knobs) json["grid"][knob.name] = knob.values;
  if (config.environment) json["environment"] = environment_json(*config.environment);
  json["data"] =
      config.data ? Json{{"samples", config.data->samples}, {"fingerprint", config.data->fingerprint}} : Json(nullptr);
  return json;
}

RunConfig parse_config(const Json& json) {
  RunConfig config;
  config.schema = text_at(json, "schema");
  config.target = target_of(json);
  for (const auto& [name, values] : json["grid"].items()) {
    Knob knob{.name = name, .values = {}};
    if (!values.is_array()) knob.values.push_back(value_text("", values));
    if (values.is_array())
      for (const Json& value : values) knob.values.push_back(value_text("", value));
    config.knobs.push_back(std::move(knob));
  }
  config.index_csv = word_at(json, "index_csv");
  config.narrowing = dataset::Narrowing::from_json(json);
  config.narrowing.subset = count_of(json["subset_size"]).value_or(0);
  config.inflation_factor = count_of(json["inflation_factor"]);
  config.shuffle = json["shuffle"].as<bool>();
  config.search = word_at(json, "search");
  if (json.contains("steps_from")) config.steps_from = word_at(json, "steps_from");
  config.rate_regex = word_at(json, "rate_regex");
  config.log_pattern = word_at(json, "log_pattern");
  config.effective_batch = word_at(json, "effective_batch");
  config.warmup_steps = count_of(json["warmup_steps"]);
  config.bench_steps = count_of(json["bench_steps"]);
  config.bench_time = word_at(json, "bench_time");
  if (json["environment"].is_object()) config.environment = environment_of(json["environment"]);
  if (json["data"].is_object()) {
    config.data = DataFacts{.samples = count_of(json["data"]["samples"]).value_or(0),
                            .fingerprint = text_at(json["data"], "fingerprint")};
  }
  config.facts = facts_of(json, {"schema", "stoker_version", "grid", "environment", "flags", "command"});
  config.environment_facts = facts_of(json["environment"]);
  return config;
}

RunConfig read_config(const std::string& folder) {
  const std::string file = folder + "/config.json";
  if (!os::exists(file)) {
    throw Error(ErrorKind::not_found, fmt::format("cannot resume `{}`: it has no config.json", folder),
                "give the folder that an earlier `stoker tune` named");
  }
  const Json json = Json::parse_or_null(os::read_text(file));
  if (text_at(json, "schema") != kConfigSchema || !json.contains("grid")) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot resume `{}`: its config.json is not one of `stoker tune`", folder));
  }
  return parse_config(json);
}

Json value_of(const std::string& word) {
  if (word == "True") return true;
  if (word == "False") return false;
  if (word == "None" || word == "none") return nullptr;
  const Json value = Json::try_parse(word).value_or(word);
  return value.is_array() || value.is_object() ? Json(word) : value;
}

}  // namespace stoker::tune
