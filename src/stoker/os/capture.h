// Runs a program to its end and keeps what it writes to its standard output. Blocks the calling thread; safe from any.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace stoker::os {

struct Captured {
  int code = 0;            // what a shell would give: 128 + signal after a signal
  bool timed_out = false;  // it was ended after `timeout`, with everything in its process group
  std::string output;      // at most `most_bytes`; what it writes beyond that is dropped
};

// `command[0]` is looked up in PATH. It reads nothing, shares our standard error, and is in a process group of its own.
// Throws Error, naming the program, if it cannot be started.
// While it runs, the calling thread calls `check` about every kCheckEvery. If `check` throws, capture() kills the
// process group and rethrows: a caller that asks for Ctrl-C there does not wait for the program.
inline constexpr std::chrono::milliseconds kCheckEvery{100};
Captured capture(const std::vector<std::string>& command, std::chrono::milliseconds timeout, std::size_t most_bytes,
                 const std::function<void()>& check = {});

}  // namespace stoker::os
