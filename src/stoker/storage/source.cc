#include "stoker/storage/source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/os/fd.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/mapping.h"
#include "stoker/os/memory.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/direct_source.h"

namespace stoker::storage {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"buffered", "direct", "mmap", "ram", "auto"};

// Opening a pipe would wait for a writer: open without waiting, look at what it is, then wait as usual.
os::Fd open_regular(const std::string& path, std::uint64_t& size) {
  os::Fd fd = os::open_file(path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  size = os::file_size(fd.get(), path);
  (void)::fcntl(fd.get(), F_SETFL, O_RDONLY);
  return fd;
}

class BufferedSource final : public Source {
 public:
  explicit BufferedSource(std::string path) : path_(std::move(path)), fd_(open_regular(path_, size_)) {}

  std::string_view name() const noexcept override { return path_; }
  std::uint64_t size_bytes() const noexcept override { return size_; }
  int descriptor() const noexcept override { return fd_.get(); }

  void read(std::span<const Read> reads) const override {
    for (const Read& read : reads) check_range(path_, size_, read);
    for (const Read& read : reads) os::read_exactly(fd_.get(), read.into, read.offset, path_);
  }

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  os::Fd fd_;
};

class MmapSource final : public Source {
 public:
  enum class Descriptor : std::uint8_t { kept, closed };

  MmapSource(std::string path, Descriptor descriptor)
      : path_(std::move(path)), fd_(open_regular(path_, size_)), mapping_(fd_.get(), size_, path_) {
    if (descriptor == Descriptor::kept) return;
    opened_ = os::facts_of(fd_.get());
    fd_.reset();
  }

  std::string_view name() const noexcept override { return path_; }
  std::uint64_t size_bytes() const noexcept override { return size_; }
  int descriptor() const noexcept override { return fd_.get(); }
  std::span<const std::byte> view() const noexcept override { return mapping_.bytes(); }
  std::uint64_t size_now() const noexcept override {
    const os::FileFacts facts = fd_ ? os::facts_of(fd_.get()) : os::facts_of(path_);
    if (!facts.is_found()) return size_;
    // Another file took the name: the mapped one has none any more, and keeps its size.
    if (!fd_ && (facts.device != opened_.device || facts.inode != opened_.inode)) return size_;
    return facts.bytes;
  }

  void read(std::span<const Read> reads) const override {
    for (const Read& read : reads) check_range(path_, size_, read);
    const std::uint64_t now = size_now();  // pages past the end would raise SIGBUS
    for (const Read& read : reads) {
      if (read.offset + read.into.size() > now) {
        throw Error(ErrorKind::corrupt,
                    fmt::format("cannot read `{}` at byte {}: the file had {} bytes when it was opened and has {} now",
                                path_, read.offset, size_, now),
                    "do not change files while they are read: open it again");
      }
      if (!read.into.empty()) std::memcpy(read.into.data(), mapping_.bytes().data() + read.offset, read.into.size());
    }
  }

 private:
  std::string path_;
  std::uint64_t size_ = 0;
  os::Fd fd_;
  os::Mapping mapping_;
  os::FileFacts opened_;  // where the descriptor is closed
};

class MemorySource final : public Source {
 public:
  MemorySource(std::string_view name, std::span<const std::byte> bytes) : name_(name), bytes_(bytes) {}

  std::string_view name() const noexcept override { return name_; }
  std::uint64_t size_bytes() const noexcept override { return bytes_.size(); }
  std::span<const std::byte> view() const noexcept override { return bytes_; }

  void read(std::span<const Read> reads) const override {
    for (const Read& read : reads) check_range(name_, bytes_.size(), read);
    for (const Read& read : reads) {
      if (!read.into.empty()) std::memcpy(read.into.data(), bytes_.data() + read.offset, read.into.size());
    }
  }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

}  // namespace

bool is_cut_short(const Source& source) noexcept {
  return !source.view().empty() && source.size_now() < source.size_bytes();
}

std::string_view name(Storage storage) noexcept {
  return kNames[static_cast<std::size_t>(storage)];
}

Storage parse_storage(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found != kNames.end()) return static_cast<Storage>(found - kNames.begin());
  const std::string near = nearest(text, kNames.data(), kNames.size());
  throw Error(ErrorKind::usage,
              fmt::format("cannot use the storage `{}`: it is not one of buffered, direct, mmap, ram, auto", text),
              near.empty() ? std::string() : fmt::format("did you mean `{}`?", near));
}

Storage settle(Storage wanted, std::uint64_t bytes) {
  if (wanted != Storage::automatic) return wanted;
  return bytes > os::memory_limit().bytes / 10 * 6 ? Storage::direct : Storage::buffered;
}

std::unique_ptr<Source> open_source(std::string_view address, Storage storage) {
  const auto [scheme, name] = split_address(address);
  if (const Backend* const backend = scheme.empty() ? nullptr : find_backend(scheme))
    return backend->open(name, storage);
  const std::string path(address);
  switch (storage) {
    case Storage::direct:
    case Storage::ram:
      if (std::unique_ptr<Source> source = open_direct_source(path)) return source;
      break;
    case Storage::mmap:
      return std::make_unique<MmapSource>(path, MmapSource::Descriptor::kept);
    case Storage::buffered:
    case Storage::automatic:
      break;
  }
  return std::make_unique<BufferedSource>(path);
}

std::unique_ptr<Source> open_mapped_file(std::string_view path) {
  return std::make_unique<MmapSource>(std::string(path), MmapSource::Descriptor::closed);
}

std::unique_ptr<Source> memory_source(std::string_view name, std::span<const std::byte> bytes) {
  return std::make_unique<MemorySource>(name, bytes);
}

std::vector<std::byte> read_file(std::string_view path, std::uint64_t limit_bytes) {
  return os::read_file(path, limit_bytes);
}

std::vector<std::byte> read_address(std::string_view address, std::uint64_t limit_bytes) {
  const auto [scheme, name] = split_address(address);
  const Backend* const backend = store_of(address);
  if (backend == nullptr) return read_file(find_backend(scheme) == nullptr ? address : name, limit_bytes);
  const std::unique_ptr<Source> source = backend->open(name, Storage::buffered);
  if (source->size_bytes() > limit_bytes) {
    throw Error(ErrorKind::unavailable,
                fmt::format("cannot read `{}`: it is larger than {}", address, format_bytes(limit_bytes)));
  }
  std::vector<std::byte> bytes(source->size_bytes());
  const Read read{0, bytes};
  source->read({&read, 1});
  return bytes;
}

}  // namespace stoker::storage
