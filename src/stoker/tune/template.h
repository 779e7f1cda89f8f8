// Knobs put into words: `{batch_size}` becomes its value. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "stoker/tune/knobs.h"

namespace stoker::tune {

// Every `{name}` that is a knob of the point, or in `more`, is replaced; other braces stay as they are. `used` collects
// the names that were found.
std::string fill_in(std::string_view text, const Point& point, const Point& more, std::set<std::string>& used);

}  // namespace stoker::tune
