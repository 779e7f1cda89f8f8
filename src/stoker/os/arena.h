// Page-aligned memory that is mapped once, backed by huge pages where the kernel gives them, and reused.
// First touch is what costs (11 us a 4 KiB page on a machine whose host takes freed memory back), so touch() does it
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace stoker::os {

class SharedRegion;

class Arena {
 public:
  Arena() noexcept = default;
  // Rounds up to whole pages (whole 2 MiB pages from 2 MiB on). Throws Error(unavailable).
  explicit Arena(std::size_t bytes);
  // The same as a range of `shared`, which other processes may map; null: memory of this process alone.
  Arena(std::size_t bytes, std::shared_ptr<SharedRegion> shared);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // Bytes that an Arena of `bytes` will really take.
  static std::size_t rounded(std::size_t bytes) noexcept;
  // The largest that an Arena can be without taking more than `bytes`.
  static std::size_t within(std::size_t bytes) noexcept;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::span<std::byte> bytes() const noexcept { return {data_, size_}; }
  bool is_shared() const noexcept { return shared_ != nullptr; }
  std::uint64_t shared_offset() const noexcept { return offset_; }  // of the range

  void touch() noexcept;  // faults every page in, for writing
  // Faults the pages of a range in without touching them: other threads may write there meanwhile. Does nothing on a
  // kernel that cannot (before Linux 5.14).
  void populate(std::size_t offset, std::size_t bytes) noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<SharedRegion> shared_;
  std::uint64_t offset_ = 0;
};

}  // namespace stoker::os
