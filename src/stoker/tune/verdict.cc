#include "stoker/tune/verdict.h"

namespace stoker::tune {

std::optional<meter::Bound> parse_bound(std::string_view verdict) noexcept {
  for (const meter::Bound bound :
       {meter::Bound::compute, meter::Bound::fetch, meter::Bound::prep, meter::Bound::handoff}) {
    if (meter::name(bound) == verdict) return bound;
  }
  return std::nullopt;
}

}  // namespace stoker::tune
