#include "stoker/base/result.h"

namespace stoker {

std::string_view name(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::truncated:
      return "truncated";
    case Code::corrupt:
      return "corrupt";
    case Code::unsupported:
      return "unsupported";
    case Code::too_large:
      return "too_large";
    case Code::no_memory:
      return "no_memory";
    case Code::mismatch:
      return "mismatch";
    case Code::io:
      return "io";
  }
  return "corrupt";
}

}  // namespace stoker
