// Each part: position (u64), length (u64), bytes; in the machine's byte order.
#include "stoker/prepare/seek_spill.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "stoker/base/error.h"

namespace stoker::prepare {
namespace {

constexpr std::size_t kWriteAt = std::size_t{4} << 20;

struct Head {
  std::uint64_t position, length;
};

}  // namespace

SeekSpill::SeekSpill(const std::string& folder, std::uint64_t keep_bytes)
    : path_(fmt::format("{}/{}", folder, kSpill)), bytes_(keep_bytes) {
  fd_ = os::Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(keep_bytes)) != 0) throw system_error(errno, "write", path_);
}

void SeekSpill::append(std::uint64_t position, std::span<const std::byte> part) {
  if (part.empty()) return;
  const Head head{position, part.size()};
  waiting_.append(reinterpret_cast<const char*>(&head), sizeof head);
  waiting_.append(reinterpret_cast<const char*>(part.data()), part.size());
  bytes_ += sizeof head + part.size();
  if (waiting_.size() >= kWriteAt) write_out();
}

void SeekSpill::write_out() {
  for (std::string_view left = waiting_; !left.empty();) {
    const ssize_t written = ::write(fd_.get(), left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error(errno, "write", path_);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  waiting_.clear();
}

void SeekSpill::sync() {
  write_out();
  if (::fdatasync(fd_.get()) != 0) throw system_error(errno, "write to the disk", path_);
}

SpilledParts::SpilledParts(const std::string& folder) {
  const std::string path = fmt::format("{}/{}", folder, kSpill);
  const os::Fd fd = os::open_file(path, O_RDONLY);
  mapping_ = os::Mapping(fd.get(), os::file_size(fd.get(), path), path);
  for (std::span<const std::byte> left = mapping_.bytes(); left.size() >= sizeof(Head);) {
    Head head;
    std::memcpy(&head, left.data(), sizeof head);
    left = left.subspan(sizeof head);
    if (head.length > left.size()) break;
    parts_[head.position] = left.first(head.length);
    left = left.subspan(head.length);
  }
}

std::span<const std::byte> SpilledParts::of(std::uint64_t position) const noexcept {
  const auto found = parts_.find(position);
  return found == parts_.end() ? std::span<const std::byte>() : found->second;
}

}  // namespace stoker::prepare
