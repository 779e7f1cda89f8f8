// A file mapped for reading and writing, shared with every process that maps it. What they may touch at the same time
// is theirs to agree on (lock_file.h). All of its blocks are allocated when it is made: a full disk is an error then,
// not a SIGBUS later. A file that somebody truncates under the map still raises SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stoker::os {

class SharedMapping {
 public:
  SharedMapping() noexcept = default;
  static SharedMapping make(const std::string& path, std::size_t bytes);  // a new file of zeros. Throws Error
  static SharedMapping open(const std::string& path);                     // all of it. Throws Error
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  explicit operator bool() const noexcept { return data_ != nullptr; }
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  bool is_in_place(const std::string& path) const noexcept;  // whether `path` still leads to this file

 private:
  SharedMapping(int fd, std::size_t bytes, const std::string& path);

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
};

}  // namespace stoker::os
