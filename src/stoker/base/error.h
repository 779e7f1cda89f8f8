// The one exception type of Stoker: thrown when a run cannot go on. Bad single samples are values, not exceptions.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "stoker/base/text.h"

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
  // `message` is one sentence naming operation, subject and cause; `hint` is the remedy, or empty. Options that they
  // name (base/format_text.h) are spelled by the face that shows the error.
  Error(ErrorKind kind, Text message, Text hint = {});

  // The same error, concerning an option: its name, such as "memory_limit".
  Error about(std::string_view option) const;
  // The same error; `cause` is what stands behind "cannot read `x`: " in its message.
  Error because(std::string cause) const;

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& option() const noexcept { return option_; }  // empty: it concerns none
  // As Python spells options. A face of its own, and who wraps an error in another, takes text() and hint_text().
  const std::string& message() const noexcept { return message_; }
  const std::string& hint() const noexcept { return hint_; }
  const std::string& cause() const noexcept { return cause_.empty() ? message_ : cause_; }
  const Text& text() const noexcept { return text_; }
  const Text& hint_text() const noexcept { return hint_text_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorKind kind_;
  Text text_, hint_text_;
  std::string message_, hint_, option_, cause_;
};

// "cannot <operation> `<subject>`: <strerror>", with the kind that fits `error_number`.
Error system_error(int error_number, std::string_view operation, std::string_view subject);

// The candidate nearest to `word` by edit distance, or empty if none is near. For "did you mean".
std::string nearest(std::string_view word, const std::string_view* candidates, std::size_t count);

}  // namespace stoker
