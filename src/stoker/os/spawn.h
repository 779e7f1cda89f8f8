// Starts a program in a process of its own. For the files of os/ that look after such processes (child.h, isolated.h,
// worker_process.h, capture.h); others use those. Safe from any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace stoker::os {

struct Spawn {
  static constexpr int kNull = -1;

  // What the program finds at descriptor `target`: a copy of one of ours, or /dev/null. None of ours may be the target
  // of another.
  struct Descriptor {
    int target = 0;
    int ours = kNull;
  };

  std::map<std::string, std::string> environment = {};  // added to this process's own
  std::vector<Descriptor> descriptors = {};             // all others are as here, unless exec closes them
  std::vector<int> default_signals = {};                // the program does not ignore them, even if we do
  bool has_group = false;                               // a process group of its own: all of it can be ended together
  std::string hint = {};                                // of the Error, where the program cannot be started
};

// The first word is looked up in PATH. No signal is blocked in it. Throws Error.
pid_t spawn(const std::vector<std::string>& command, const Spawn& how);

}  // namespace stoker::os
