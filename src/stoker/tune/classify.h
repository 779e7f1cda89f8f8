// Why a trial failed, by what is known, in the order of how much it can be trusted: our own kill; how it ended and what
// the cgroup counted; the exception it reported; what it wrote to stderr. Pure; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/base/text.h"
#include "stoker/os/ended.h"
#include "stoker/tune/row.h"

namespace stoker::tune {

enum class OurKill : std::uint8_t { none, deadline, heartbeat, memory };

struct Evidence {
  OurKill our_kill = OurKill::none;
  os::Ended ended = {};                // how the trial ended
  std::uint64_t cgroup_oom_kills = 0;  // how many more than before
  bool reported_done = false;          // it reported that it had finished
  std::string exception_type = {};     // "torch.OutOfMemoryError", where the child could tell; else empty
  std::string exception_text = {};
  std::string exception_option = {};  // of our loader, which the error concerns: "memory_limit"; else empty
  std::string exception_place = {};   // "train.py, line 3": of the user's own code
  bool at_import = false;             // raised while the job was imported: a user error, whatever the message says
  std::string stderr_tail = {};       // the last 64 KiB
  std::optional<std::uint64_t> device_free_bytes = {};  // at the last heartbeat
};

struct Failure {
  Status status = Status::user_error;
  // Of an OOM: "capped", "fragmented", "shared", "unexplained"; of worker_died: the signal; else empty.
  std::string kind = {};
  std::string cause = {};  // one line for people: the decisive words of what was seen
  Text remedy = {};        // what to try; may be empty
};

// None: it ended well.
std::optional<Failure> classify(const Evidence& evidence);

// From what others wrote into an `error` column.
Failure classify_text(std::string_view error);

}  // namespace stoker::tune
