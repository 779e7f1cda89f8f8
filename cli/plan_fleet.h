// Many nodes and one store, as text for people: a table of times, one of requests, and what to change. Pure.
#pragma once

#include <string>

#include "stoker/plan/fleet.h"

#include "terminal.h"

namespace stoker::cli {

std::string fleet_text(const plan::Fleet& fleet, const Terminal& terminal);

}  // namespace stoker::cli
