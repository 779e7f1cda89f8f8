// The list of a segment has one line, "PID FD", for each process that has it. All changes of it happen under its lock.
// A line counts while /proc/PID/fd/FD is a memfd of the segment's name: a process that ended, or whose number another
// one has now, fails that. Whoever attaches removes the lists in which no line counts any more.
#include "stoker/os/shared_segment.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stoker/base/units.h"
#include "stoker/os/cgroup.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/file_lock.h"
#include "stoker/os/fork.h"
#include "stoker/os/write_all.h"

namespace stoker::os {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{2};
constexpr std::uint64_t kHeadPage = 4096;
constexpr std::uint64_t kSegmentMagic = 0x53544B53484D3032;  // STKSHM02

struct SegmentHead {
  std::uint64_t magic, key, bytes;
};
static_assert(sizeof(SegmentHead) <= kHeadPage);

struct Holder {
  long pid = 0;
  int fd = -1;
};

// Process numbers mean something only within their namespace, and containers may share /dev/shm.
std::string list_prefix() {
  const FileFacts pids = facts_of("/proc/self/ns/pid");
  return fmt::format("stoker-ram-{}-{:x}-", ::geteuid(), pids.is_found() ? pids.inode : 0);
}

std::string segment_name(std::uint64_t key) {
  return fmt::format("stoker-ram-{:016x}", key);
}

std::vector<Holder> holders_in(const std::string& path) {
  std::vector<Holder> holders;
  std::istringstream lines(read_small_file(path).value_or(""));
  for (Holder holder; lines >> holder.pid >> holder.fd;) holders.push_back(holder);
  return holders;
}

int write_holders(const std::string& path, const std::vector<Holder>& holders) noexcept {
  std::string text;
  for (const Holder& holder : holders) text += fmt::format("{} {}\n", holder.pid, holder.fd);
  int error_number = 0;
  const Fd fd = try_open(AT_FDCWD, path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW, error_number);
  return fd ? write_all(fd.get(), std::as_bytes(std::span(text))) : error_number;
}

std::string descriptor_of(const Holder& holder) {
  return fmt::format("/proc/{}/fd/{}", holder.pid, holder.fd);
}

// Looks at the link first: to open what another descriptor is might have effects.
bool still_holds(const Holder& holder, const std::string& name) {
  std::error_code error;
  return std::filesystem::read_symlink(descriptor_of(holder), error) == fmt::format("/memfd:{} (deleted)", name);
}

FileLock lock_list(const std::string& path, std::chrono::milliseconds patience, int& error_number) noexcept {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    FileLock lock = FileLock::try_take(path, error_number);
    if (lock || error_number != EWOULDBLOCK || std::chrono::steady_clock::now() > until) return lock;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void remove_abandoned(const std::string& folder, const std::string& except) {
  std::error_code error;
  const std::string prefix = list_prefix();
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string(), path = entry->path().string();
    if (!file.starts_with(prefix) || path == except || facts_of(path).kind != FileKind::regular) continue;
    int error_number = 0;
    const FileLock lock = FileLock::try_take(path, error_number);
    if (!lock) continue;
    const std::string name = "stoker-ram-" + file.substr(prefix.size());
    const auto holders = holders_in(path);
    if (std::none_of(holders.begin(), holders.end(), [&](const Holder& holder) { return still_holds(holder, name); }))
      (void)::unlink(path.c_str());
  }
}

int allocate_range(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  int result = 0;
  do {
    result = ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

Fd make_memory(const std::string& name, std::uint64_t bytes, std::uint64_t head_bytes, int& error_number) noexcept {
  Fd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    error_number = errno;
    return {};
  }
  (void)::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  error_number = allocate_range(fd.get(), 0, head_bytes);
  if (error_number != 0) return {};
  return fd;
}

}  // namespace

std::string shared_folder() {
  for (const char* const folder : {"/dev/shm", "/tmp"}) {
    if (::access(folder, W_OK | X_OK) == 0) return folder;
  }
  return {};
}

std::unique_ptr<SharedSegment> SharedSegment::attach(const Wish& wish, std::string& why) {
  const auto refuse = [&](std::string cause) {
    why = std::move(cause);
    return nullptr;
  };
  const std::string folder = wish.folder.empty() ? shared_folder() : wish.folder;
  if (folder.empty()) return refuse("cannot write into /dev/shm or /tmp");
  const std::string name = segment_name(wish.key), path = fmt::format("{}/{}{:016x}", folder, list_prefix(), wish.key);
  remove_abandoned(folder, path);

  int error_number = 0;
  const FileLock lock = lock_list(path, wish.patience, error_number);
  if (!lock) {
    if (error_number == EWOULDBLOCK)
      return refuse(fmt::format("another process has kept `{}` locked for {} ms", path, wish.patience.count()));
    return refuse(fmt::format("cannot write into {}: {}", folder, std::strerror(error_number)));
  }
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || facts.st_uid != ::geteuid() || !S_ISREG(facts.st_mode))
    return refuse(fmt::format("`{}` is not a file of this user", path));

  std::unique_ptr<SharedSegment> segment(new SharedSegment);
  std::vector<Holder> holders = holders_in(path);
  std::erase_if(holders, [&](const Holder& holder) { return !still_holds(holder, name); });
  for (const Holder& holder : holders) {
    Fd fd = try_open(AT_FDCWD, descriptor_of(holder).c_str(), O_RDWR, error_number);
    if (fd && segment->map(std::move(fd), wish.key, wish.bytes)) break;
  }
  if (segment->data_ == nullptr) {
    const auto give_up = [&](const char* what) {
      if (holders.empty()) (void)::unlink(path.c_str());
      return refuse(fmt::format("cannot {} {} of shared memory: {}", what, format_bytes(wish.bytes),
                                std::strerror(error_number)));
    };
    Fd fd = make_memory(name, kHeadPage + wish.bytes, kHeadPage + wish.head_bytes, error_number);
    if (!fd) return give_up("make");
    const SegmentHead head{kSegmentMagic, wish.key, wish.bytes};
    error_number = write_all_at(fd.get(), std::as_bytes(std::span(&head, 1)), 0);
    if (error_number != 0) return give_up("write into");
    if (!segment->map(std::move(fd), wish.key, wish.bytes)) {
      error_number = errno;
      return give_up("map");
    }
  }
  const Holder self{::getpid(), segment->fd_.get()};
  if (!still_holds(self, name)) return refuse(fmt::format("cannot look at `{}`", descriptor_of(self)));
  holders.push_back(self);
  error_number = write_holders(path, holders);
  if (error_number != 0) {
    (void)::unlink(path.c_str());  // it may be cut short
    return refuse(fmt::format("cannot write `{}`: {}", path, std::strerror(error_number)));
  }
  segment->path_ = path;
  segment->patience_ = wish.patience;
  return segment;
}

bool SharedSegment::map(Fd fd, std::uint64_t key, std::uint64_t bytes) noexcept {
  const std::uint64_t whole = kHeadPage + bytes;
  if (file_size(fd.get()) != static_cast<std::int64_t>(whole)) return false;
  void* const at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return false;
  const auto* const head = static_cast<const SegmentHead*>(at);
  if (head->magic != kSegmentMagic || head->key != key || head->bytes != bytes) {
    ::munmap(at, whole);
    return false;
  }
  fd_ = std::move(fd);
  generation_ = fork_generation();
  data_ = static_cast<std::byte*>(at) + kHeadPage;
  size_ = bytes;
  return true;
}

SharedSegment::~SharedSegment() {
  if (data_ == nullptr) return;
  ::munmap(data_ - kHeadPage, kHeadPage + size_);
  if (path_.empty() || generation_ != fork_generation()) return;
  const Holder self{::getpid(), fd_.get()};
  const std::string name = std::filesystem::path(path_).filename().string();
  int error_number = 0;
  const FileLock lock = lock_list(path_, patience_, error_number);
  fd_.reset();
  if (!lock) return;  // the next process that attaches tidies up
  std::vector<Holder> holders = holders_in(path_);
  const std::string memory = "stoker-ram-" + name.substr(name.rfind('-') + 1);
  std::erase_if(holders, [&](const Holder& holder) {
    return (holder.pid == self.pid && holder.fd == self.fd) || !still_holds(holder, memory);
  });
  if (holders.empty()) {
    (void)::unlink(path_.c_str());
  } else {
    (void)write_holders(path_, holders);
  }
}

bool SharedSegment::reserve(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  return bytes == 0 || allocate_range(fd_.get(), kHeadPage + offset, bytes) == 0;
}

}  // namespace stoker::os
