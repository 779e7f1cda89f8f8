// The stage that held a trial up, as rows name it. Pure; from any thread.
#pragma once

#include <optional>
#include <string_view>

#include "stoker/meter/ledger.h"

namespace stoker::tune {

// "prep_bound" and its like. None: it is not known, or the word is not one of ours (others' tables have "io_bound").
std::optional<meter::Bound> parse_bound(std::string_view verdict) noexcept;

}  // namespace stoker::tune
