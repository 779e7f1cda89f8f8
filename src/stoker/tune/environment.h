// What a tuned rate depends on: libraries, device, CPU, memory; for config.json. What cannot be known is null. One
// thread.
#pragma once

#include <string>

#include "stoker/base/json.h"

namespace stoker::tune {

// What an interpreter has, without importing anything large. Throws Error where it cannot be run.
struct PythonFacts {
  Json torch, cuda, hip;  // versions or null
  std::string version;
  bool has_stoker = false;
};
PythonFacts look_at_python(const std::string& python);

// `python`: of the job; null: not known.
Json tuning_environment(const PythonFacts* python);

}  // namespace stoker::tune
