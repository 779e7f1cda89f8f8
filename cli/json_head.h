// How every answer in JSON begins.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/version.h"

namespace stoker::cli {

inline Json json_head(std::string_view verb) {
  return {{"schema", fmt::format("stoker.{}/1", verb)}, {"stoker_version", kVersion}};
}

}  // namespace stoker::cli
