// Files as the verbs need them: names that are free, and texts.
#pragma once

#include <string>
#include <string_view>

#include "stoker/os/read_file.h"

namespace stoker::cli {

using os::exists;
using os::read_text;

// Refuses (Error, usage) a path that is there already, unless `force`; `flag` is named in the message.
void require_free(const std::string& path, bool force, std::string_view flag);

}  // namespace stoker::cli
