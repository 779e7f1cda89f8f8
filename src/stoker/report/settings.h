// What was run and where, from config.json and subset.json: facts, and the commands that run it again. Pure.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/report/report.h"
#include "stoker/report/run_view.h"

namespace stoker::report {

// Title, context, configuration, environment, commands and links.
void describe(const RunView& view, Report& report);

// The number at this place of `json`, if there is one.
std::optional<double> number_at(const Json& json, std::initializer_list<const char*> path);
// A value of any kind as people write it: lists with commas, bytes by the name of the key. Empty for null.
std::string value_text(const std::string& key, const Json& value);
// The members of an object, but those named, as facts.
std::vector<Fact> facts_of(const Json& object, std::initializer_list<std::string_view> without = {});
// Words as one line of a shell.
std::string command_line(const std::vector<std::string>& words);

}  // namespace stoker::report
