// Seek places of a pack's JPEG files in the order in which its samples are written, until the pack is finished: a file
// in the folder where it is made, which survives a kill up to what the journal knows. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "stoker/os/append_file.h"
#include "stoker/os/mapping.h"

namespace stoker::prepare {

inline constexpr std::string_view kSpill = ".seek";

class SeekSpill {
 public:
  SeekSpill(const std::string& folder, std::uint64_t keep_bytes);  // throws Error

  std::uint64_t bytes() const noexcept { return bytes_; }
  void append(std::uint64_t position, std::span<const std::byte> part);  // of a multiple of 4 bytes
  void sync();                                                           // on the disk when it returns

 private:
  void write_out();

  os::AppendFile file_;
  std::string waiting_;
  std::uint64_t bytes_ = 0;
};

// What spills hold, by position in the pack; parts begin at multiples of 4.
class SpilledParts {
 public:
  explicit SpilledParts(const std::vector<std::string>& folders);  // throws Error
  std::span<const std::byte> of(std::uint64_t position) const noexcept;

 private:
  std::vector<os::Mapping> mappings_;
  std::unordered_map<std::uint64_t, std::span<const std::byte>> parts_;
};

}  // namespace stoker::prepare
