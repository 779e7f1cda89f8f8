#include "stoker/dataset/side_file.h"

#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/os/fd.h"
#include "stoker/os/file.h"

namespace stoker::dataset {
namespace {

constexpr std::string_view kMagic = "STKSIDE1";
constexpr std::uint64_t kHead = 16;

}  // namespace

SideFile::SideFile(const std::string& path, std::uint64_t count) : count_(count) {
  const os::Fd fd = os::open_file(path, O_RDONLY);
  const std::uint64_t size = os::file_size(fd.get(), path);
  mapping_ = os::Mapping(fd.get(), size, path);
  const auto broken = [&](std::string_view what) {
    return Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: {}", path, what));
  };
  std::uint64_t stated = 0;
  if (size < kHead || std::memcmp(mapping_.bytes().data(), kMagic.data(), kMagic.size()) != 0)
    throw broken("it has no head of a side file");
  std::memcpy(&stated, mapping_.bytes().data() + kMagic.size(), sizeof stated);
  if (stated != count) throw broken(fmt::format("it is for {} samples, the pack has {}", stated, count));
  if (count > (size - kHead) / 8) throw broken("it ends inside its list of ends");
  const std::uint64_t room = size - kHead - count * 8;
  std::uint64_t before = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t end = end_of(i);
    if (end < before || end > room) throw broken(fmt::format("the part of sample {} lies outside of it", i));
    before = end;
  }
}

std::uint64_t SideFile::end_of(std::uint64_t index) const noexcept {
  std::uint64_t end = 0;
  std::memcpy(&end, mapping_.bytes().data() + kHead + index * 8, sizeof end);
  return end;
}

std::span<const std::byte> SideFile::of(std::uint64_t index) const noexcept {
  if (index >= count_) return {};
  const std::uint64_t begin = index == 0 ? 0 : end_of(index - 1), end = end_of(index);
  const std::span<const std::byte> parts = mapping_.bytes().subspan(kHead + count_ * 8);
  if (begin > end || end > parts.size()) return {};  // rewritten since it was opened
  return parts.subspan(begin, end - begin);
}

void write_side_file(const std::string& path, std::uint64_t count,
                     const std::function<std::span<const std::byte>(std::uint64_t)>& part_of) {
  std::string bytes(kMagic);
  const auto number = [&](std::uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  number(count);
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count; ++i) number(end += part_of(i).size());
  bytes.reserve(bytes.size() + end);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::span<const std::byte> part = part_of(i);
    bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  os::write_file(path, bytes);
}

}  // namespace stoker::dataset
