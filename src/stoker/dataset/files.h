// Pieces shared by the data sets whose samples are files of their own: folder, index.csv, list.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/hash.h"
#include "stoker/dataset/dataset.h"

namespace stoker::dataset {

inline constexpr std::uint64_t kIdMask = ~std::uint64_t{0} >> 1;  // ids stay below 2^63

inline std::uint64_t id_of_path(std::string_view path) noexcept {
  return hash_text(path) & kIdMask;
}

// Copies `parts`, one after another and with a NUL, into `out`; 0 if they do not fit.
template <typename... Parts>
std::size_t join(std::span<char> out, Parts... parts) noexcept {
  const std::size_t length = (std::string_view(parts).size() + ...);
  if (length >= out.size()) return 0;
  char* at = out.data();
  ((at = static_cast<char*>(std::memcpy(at, std::string_view(parts).data(), std::string_view(parts).size())) +
         std::string_view(parts).size()),
   ...);
  *at = '\0';
  return length;
}

// The location of a file whose path, of `length` bytes, was written to `text`; 0: it was not.
inline storage::Location in_folder(int directory, std::span<const char> text, std::size_t length,
                                   std::uint64_t bytes) noexcept {
  return storage::Location::in_folder(directory, length == 0 ? nullptr : text.data(), bytes);
}

// Bytes that a container holds on the heap.
template <typename T>
std::uint64_t held_bytes(const std::vector<T>& values) noexcept {
  return values.capacity() * sizeof(T);
}
inline std::uint64_t held_bytes(const std::string& text) noexcept {
  return text.capacity();
}
inline std::uint64_t held_bytes(const std::vector<std::string>& texts) noexcept {
  std::uint64_t bytes = texts.capacity() * sizeof(std::string);
  for (const std::string& text : texts) bytes += held_bytes(text);
  return bytes;
}
inline std::uint64_t held_bytes(const Facts& facts) noexcept {
  return held_bytes(facts.classes) + held_bytes(facts.columns) + held_bytes(facts.notes);
}

// Grows sample by sample, in order, from names, sizes and labels; the same however the data set was scanned.
class Fingerprint {
 public:
  void add(std::string_view name, std::uint64_t bytes, const Label& label) noexcept {
    std::uint32_t real;
    std::memcpy(&real, &label.real, sizeof real);
    value_ =
        mix(value_ ^ hash_text(name, bytes), static_cast<std::uint64_t>(label.integer) ^ std::uint64_t{real} << 32);
    ++count_;
  }
  std::uint64_t value() const noexcept { return mix(value_, count_); }

 private:
  std::uint64_t value_ = 0, count_ = 0;
};

}  // namespace stoker::dataset
