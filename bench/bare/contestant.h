// What the bare loops have in common with the contestants of bench/peers: say "ready", wait for a line, work, print one
// line of JSON.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <sys/resource.h>

namespace bare {

inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The peak since exec; getrusage would count what the parent had.
inline std::size_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmHWM:" && status >> word) return std::strtoull(word.c_str(), nullptr, 10) * 1024;
  }
  return 0;
}

inline void wait_for_go() {
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
}

class Stopwatch {
 public:
  void print(std::size_t items) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    std::printf("{\"items\": %zu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"memory_bytes\": %zu, \"versions\": {}}\n",
                items, seconds, cpu_seconds() - cpu_before_, peak_memory_bytes());
  }

 private:
  double cpu_before_ = cpu_seconds();
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace bare
