// JSON that others may have written, read for people: no shape is refused, and what is missing is empty. For readers of
// result files. Pure; from any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"

namespace stoker {

struct Fact {
  std::string name, value;
};

// The number at this path of objects, if there is one.
std::optional<double> number_at(const Json& json, std::initializer_list<const char*> path);
// The text at `key`; empty where there is none, or something else.
std::string text_at(const Json& object, std::string_view key);
// The strings of the array at `key`; anything else in it is left out.
std::vector<std::string> strings_at(const Json& object, std::string_view key);

// A value of any kind as people write it: lists with commas, bytes by the name of the key. Empty for null.
std::string value_text(std::string_view key, const Json& value);
// The members of an object, except those named, as facts.
std::vector<Fact> facts_of(const Json& object, std::initializer_list<std::string_view> without = {});

}  // namespace stoker
