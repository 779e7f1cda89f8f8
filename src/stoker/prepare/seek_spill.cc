// Each part: position (u64), length (u64), bytes; in the machine's byte order.
#include "stoker/prepare/seek_spill.h"

#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/os/fd.h"

namespace stoker::prepare {
namespace {

constexpr std::size_t kWriteAt = std::size_t{4} << 20;

struct PartHead {
  std::uint64_t position, length;
};

}  // namespace

SeekSpill::SeekSpill(const std::string& folder, std::uint64_t keep_bytes)
    : file_(fmt::format("{}/{}", folder, kSpill), keep_bytes), bytes_(keep_bytes) {}

void SeekSpill::append(std::uint64_t position, std::span<const std::byte> part) {
  if (part.empty()) return;
  const PartHead head{position, part.size()};
  waiting_.append(reinterpret_cast<const char*>(&head), sizeof head);
  waiting_.append(reinterpret_cast<const char*>(part.data()), part.size());
  bytes_ += sizeof head + part.size();
  if (waiting_.size() >= kWriteAt) write_out();
}

void SeekSpill::write_out() {
  file_.append(waiting_);
  waiting_.clear();
}

void SeekSpill::sync() {
  write_out();
  file_.sync();
}

SpilledParts::SpilledParts(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/{}", folder, kSpill);
    const os::Fd fd = os::open_file(path, O_RDONLY);
    mappings_.emplace_back(fd.get(), os::file_size(fd.get(), path), path);
    for (std::span<const std::byte> left = mappings_.back().bytes(); left.size() >= sizeof(PartHead);) {
      PartHead head;
      std::memcpy(&head, left.data(), sizeof head);
      left = left.subspan(sizeof head);
      if (head.length > left.size()) break;
      parts_[head.position] = left.first(head.length);
      left = left.subspan(head.length);
    }
  }
}

std::span<const std::byte> SpilledParts::of(std::uint64_t position) const noexcept {
  const auto found = parts_.find(position);
  return found == parts_.end() ? std::span<const std::byte>() : found->second;
}

}  // namespace stoker::prepare
