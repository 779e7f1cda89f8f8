// The one exception type of Stoker: thrown when a run cannot go on. Bad single samples are values, not exceptions.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace stoker {

enum class ErrorKind : std::uint8_t {
  usage,        // the caller asked for something impossible; nothing was tried
  not_found,    // a file, folder, column or name does not exist
  permission,   // it exists, but we may not
  corrupt,      // the bytes are not what they claim to be
  unavailable,  // out of memory, descriptors, disk or time; trying again later may work
  unsupported,  // valid, but not something Stoker reads
  internal,     // a bug in Stoker
};

std::string_view name(ErrorKind kind) noexcept;

class Error : public std::exception {
 public:
  // `message` is one sentence naming operation, subject and cause; `hint` is the remedy, or empty. Both become
  // one_line: names of files in them may hold anything.
  Error(ErrorKind kind, const std::string& message, const std::string& hint = {});

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string hint_;
};

// "cannot <operation> `<subject>`: <strerror>", with the kind that fits `error_number`.
Error system_error(int error_number, std::string_view operation, std::string_view subject);

// The candidate nearest to `word` by edit distance, or empty if none is near. For "did you mean".
std::string nearest(std::string_view word, const std::string_view* candidates, std::size_t count);

}  // namespace stoker
