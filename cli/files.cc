#include "files.h"

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::cli {

void require_free(const std::string& path, bool force, std::string_view flag) {
  if (force || !exists(path)) return;
  throw Error(ErrorKind::usage, fmt::format("`{}` would overwrite `{}`", flag, path),
              "choose another name, or add --force");
}

}  // namespace stoker::cli
