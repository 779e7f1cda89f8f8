// A grid in the words of `--grid`. For tests.
#pragma once

#include <initializer_list>

#include "stoker/tune/knobs.h"

namespace stoker::tune {

inline Grid grid(std::initializer_list<const char*> knobs) {
  Grid grid;
  for (const char* knob : knobs) grid.add(knob);
  return grid;
}

}  // namespace stoker::tune
