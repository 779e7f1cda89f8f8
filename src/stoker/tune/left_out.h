// Why a search left a point out: the trials that it concluded this from. Pure; from any thread.
#pragma once

#include <string>

#include "stoker/tune/search_space.h"

namespace stoker::tune {

// Names the trial that ran nearest to the point, with its rate, and the fastest one.
std::string why_left_out(const SearchSpace& space, const Point& point);

}  // namespace stoker::tune
