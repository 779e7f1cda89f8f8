// The standard descriptors of this process, and the terminal that they may lead to. From any thread, unless noted.
#pragma once

namespace stoker::os {

inline constexpr int kStdin = 0, kStdout = 1, kStderr = 2;

bool is_terminal(int fd) noexcept;

struct TerminalSize {
  int rows = 0, columns = 0;  // 0: not known
  bool operator==(const TerminalSize&) const = default;
};
TerminalSize terminal_size(int fd) noexcept;  // as it is now

// This process runs in the foreground of the terminal `fd`.
bool is_in_foreground(int fd) noexcept;

// Opens /dev/null for each standard descriptor that the caller closed, so that no other file gets its number. Returns
// whether kStdout was closed. Call it before any thread starts.
bool open_standard_descriptors() noexcept;

}  // namespace stoker::os
