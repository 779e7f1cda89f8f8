// A file of a pack that holds some bytes for each sample, recorded when it was packed: seek.bin, say. Readers may do
// without it. Immutable; safe from any thread.
//
// Layout: "STKSIDE1", count, count ends (each the byte behind a sample's part, counted from the first part), the parts.
// Numbers are 64 bit, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "stoker/os/mapping.h"

namespace stoker::dataset {

class SideFile {
 public:
  SideFile() noexcept = default;
  // Throws Error(corrupt) if it is not a side file of `count` samples.
  SideFile(const std::string& path, std::uint64_t count);

  // What was recorded of a sample; empty: nothing.
  std::span<const std::byte> of(std::uint64_t index) const noexcept;

 private:
  std::uint64_t end_of(std::uint64_t index) const noexcept;

  os::Mapping mapping_;
  std::uint64_t count_ = 0;
};

// Whole or not at all. Throws Error.
void write_side_file(const std::string& path, std::uint64_t count,
                     const std::function<std::span<const std::byte>(std::uint64_t index)>& part_of);

}  // namespace stoker::dataset
