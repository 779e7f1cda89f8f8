// A whole file mapped for reading. Any thread may read the bytes.
// A file that another process truncates under the map makes touching the lost pages raise SIGBUS: callers that copy ask
// file_size() first, which leaves only the instant between the question and the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stoker::os {

enum class Advice : std::uint8_t { normal, random, sequential, will_need };

class Mapping {
 public:
  Mapping() noexcept = default;
  // Maps the first `bytes` of `fd`, which may be closed afterwards. 0 bytes map nothing. Throws Error.
  Mapping(int fd, std::size_t bytes, std::string_view name);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // The same without exceptions: a mapping, or an empty one and the error number.
  static Mapping try_map(int fd, std::size_t bytes, int& error_number) noexcept;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  void advise(Advice advice) const noexcept;
  // Faults every page in. False if that failed, as it does past the end of a truncated file (kernels from 5.14 know).
  bool populate() const noexcept;
  bool populate(std::size_t offset, std::size_t bytes) const noexcept;  // of this part

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The same for part of any mapping.
bool populate_pages(std::span<const std::byte> bytes) noexcept;
// Has the kernel begin to read them, without waiting.
void read_pages_soon(std::span<const std::byte> bytes) noexcept;
// How often this thread has touched a page that had to be read from the disk first.
std::int64_t page_faults_that_waited() noexcept;

}  // namespace stoker::os
