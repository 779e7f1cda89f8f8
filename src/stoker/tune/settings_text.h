// Chosen knobs as a text that a job can read. Pure; from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/tune/knobs.h"

namespace stoker::tune {

enum class SettingsFormat : std::uint8_t {
  json,
  yaml,
  python,  // keyword arguments; a dict where knobs are dotted keys
};
// By the extension of the file: .json, .yaml, .yml, .py. Throws Error(usage).
SettingsFormat settings_format(std::string_view file);

// Knobs that are dotted keys of a file become what they are there.
std::string as_settings(const Point& point, SettingsFormat format);

}  // namespace stoker::tune
