// What a tuned rate depends on: libraries, device, CPU, memory; for config.json. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace stoker::tune {

// What an interpreter has, without importing anything large. Throws Error where it cannot be run.
struct PythonFacts {
  std::optional<std::string> torch = {}, cuda = {}, hip = {};  // versions
  std::string version = {};
  bool has_stoker = false;
};
// `interrupted` is asked while it runs; true ends it with Error(unavailable).
PythonFacts look_at_python(const std::string& python, const std::function<bool()>& interrupted = {});

// None: not known.
struct Environment {
  std::optional<std::string> torch = {}, cuda = {}, hip = {}, driver = {}, device_name = {}, cpu = {};
  std::optional<double> cores = {};
  std::optional<std::uint64_t> memory_bytes = {};
  std::optional<std::uint64_t> device_memory_bytes = {};  // as others record it
  std::optional<std::string> python = {}, stoker = {};
};

// `python`: of the job; null: not known.
Environment look_at_environment(const PythonFacts* python);

}  // namespace stoker::tune
