// What runtimes, loaders and kernels write when a trial fails, and what it means: a table of words found in public
// reports. classify.h weighs it against the other evidence. Pure; from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/tune/row.h"

namespace stoker::tune {

struct TextMatch {
  Status status = Status::user_error;
  std::string kind = {};  // of worker_died: "SIGSEGV", where the text names a signal; else empty
  std::string line = {};  // the decisive one, trimmed
  std::string_view remedy;
};

// The most telling line of `text`; none: no words that we know. "exited unexpectedly" counts for less than a fault that
// stands beside it, a fault for less than memory that ran out.
std::optional<TextMatch> match_failure(std::string_view text);

// "capped", "unexplained", "shared", "fragmented" or empty, by the figures in an allocator's message.
std::string_view kind_of_oom(std::string_view text);

std::string_view remedy_of(Status status, std::string_view kind = {}) noexcept;  // of memory that ran out; else empty

// The last line that says something: of a Python traceback the exception. Trimmed to 300 bytes.
std::string last_line(std::string_view text);
std::string one_line(std::string_view text);  // white space collapsed, at most 300 bytes

}  // namespace stoker::tune
