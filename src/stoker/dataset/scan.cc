#include "stoker/dataset/scan.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/crew.h"
#include "stoker/os/fd.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/folder_reader.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kGone = ~std::uint64_t{0};  // size of a file that went away between listing and stat
constexpr std::size_t kFilesPerTask = 1024;         // files stat'ed per task, when a folder is shared out
constexpr std::size_t kTellEvery = 256;
constexpr std::size_t kMaxExtensions = 8;  // named per folder
constexpr std::size_t kEntryBuffer = 128 * 1024;

Stamp stamp_of(const os::FileFacts& facts) {
  return {facts.device, facts.inode, facts.modified_ns, facts.changed_ns};
}

std::int64_t system_now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The machine lacks something, which any folder would meet: no policy hides it.
bool is_of_the_machine(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
}

Error with_remedy(const Error& error) {
  if (!error.hint().empty()) return error;
  return Error(error.kind(), error.text(),
               format_text("make it readable; or {} goes on without it", option("on_error", "skip")))
      .about("on_error");
}

// Eight bytes of `name` from `skip` on, so that comparing numbers compares text.
std::uint64_t sort_key(std::string_view name, std::size_t skip) {
  unsigned char bytes[8] = {};
  name.remove_prefix(std::min(skip, name.size()));
  std::memcpy(bytes, name.data(), std::min<std::size_t>(8, name.size()));
  std::uint64_t key;
  std::memcpy(&key, bytes, 8);
  return std::endian::native == std::endian::little ? __builtin_bswap64(key) : key;
}

// Names in one folder tend to begin alike: the common beginning is skipped, and the next 8 bytes decide most
// comparisons.
void sort_files(ScannedFolder& folder) {
  std::vector<ScannedFile>& files = folder.files;
  std::erase_if(files, [](const ScannedFile& file) { return file.bytes == kGone; });
  if (files.size() < 2) return;
  const std::string_view first = folder.name_of(files[0]);
  std::size_t common = first.size();
  for (const ScannedFile& file : files) {
    const std::string_view name = folder.name_of(file).substr(0, common);
    common = static_cast<std::size_t>(std::mismatch(name.begin(), name.end(), first.begin()).first - name.begin());
  }
  struct Keyed {
    std::uint64_t key;
    ScannedFile file;
  };
  std::vector<Keyed> keyed(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) keyed[i] = {sort_key(folder.name_of(files[i]), common), files[i]};
  std::sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return a.key != b.key ? a.key < b.key : folder.name_of(a.file) < folder.name_of(b.file);
  });
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = keyed[i].file;
}

class Scan {
 public:
  Scan(int root, const std::string& address, const OpenOptions& options)
      : root_(root), address_(address), options_(options), crew_(options.threads, options.progress) {}

  std::unique_ptr<ScannedFolder> run(std::unique_ptr<ScannedFolder> known) {
    auto folder = std::make_unique<ScannedFolder>();
    enter(*folder, std::move(known));
    crew_.run();
    return folder;
  }

 private:
  void enter(ScannedFolder& folder, std::unique_ptr<ScannedFolder> known) {
    // std::function must be copyable; the listing travels as a shared_ptr.
    crew_.add([this, &folder, shared = std::make_shared<std::unique_ptr<ScannedFolder>>(std::move(known))] {
      read(folder, std::move(*shared));
    });
  }

  std::string shown(const ScannedFolder& folder) const {
    if (folder.path.empty()) return address_;
    return address_ + (address_.ends_with('/') ? "" : "/") + folder.path.substr(0, folder.path.size() - 1);
  }

  static bool repeats_an_ancestor(const ScannedFolder& folder) {
    for (const ScannedFolder* above = folder.parent; above != nullptr; above = above->parent) {
      if (above->stamp.device == folder.stamp.device && above->stamp.inode == folder.stamp.inode) return true;
    }
    return false;
  }

  void read(ScannedFolder& folder, std::unique_ptr<ScannedFolder> known) {
    const char* path = folder.path.empty() ? "." : folder.path.c_str();
    if (known && known->can_be_trusted) {
      const os::FileFacts facts = os::facts_of(root_, path);
      if (facts.is_found() && stamp_of(facts) == known->stamp) {
        take_over(folder, *known);
        return;
      }
    }
    int error_number = 0;
    auto fd = std::make_shared<os::Fd>(os::try_open(root_, path, O_RDONLY | O_DIRECTORY, error_number));
    if (error_number != 0) {
      if (folder.parent != nullptr && (error_number == ENOENT || error_number == ENOTDIR)) {
        folder.is_missing = true;
        return;
      }
      if (error_number == ELOOP) {  // more links in a row than the kernel follows
        folder.is_loop = true;
        return;
      }
      return cannot_read(folder, error_number);
    }
    const std::int64_t read_at = options_.now_ns ? options_.now_ns() : system_now_ns();
    const os::FileFacts facts = os::facts_of(fd->get());
    if (!facts.is_found()) throw system_error(facts.error_number, "look up", shown(folder));
    folder.stamp = stamp_of(facts);
    if (repeats_an_ancestor(folder)) {
      folder.is_loop = true;
      return;
    }
    folder.changes_show = changes_show(folder, fd->get());
    folder.can_be_trusted =
        folder.changes_show && std::max(folder.stamp.modified_ns, folder.stamp.changed_ns) < read_at - kRacyNs;
    list_entries(folder, fd->get());
    if (!folder.broken_links.empty() || !folder.special_files.empty() || folder.error_number != 0)
      folder.can_be_trusted = false;
    enter_folders(folder, known.get());
    look_up_sizes(folder, fd);
  }

  // A folder below the root is left empty, and marked: all of it, though part of it may have been read. It must not
  // depend on the moment what is there.
  void cannot_read(ScannedFolder& folder, int error_number) const {
    if (!options_.skip_losses || folder.parent == nullptr || is_of_the_machine(error_number))
      throw with_remedy(system_error(error_number, "read folder", shown(folder)));
    folder.error_number = error_number;
    folder.files.clear();
    folder.names.clear();
    folder.folders.clear();
  }

  void cannot_look_up(ScannedFolder& folder, std::string_view name, int error_number) {
    if (!options_.skip_losses || is_of_the_machine(error_number))
      throw with_remedy(system_error(error_number, "look up", shown(folder) + "/" + std::string(name)));
    const std::scoped_lock lock(unknown_files_);
    folder.error_number = error_number;
    folder.can_be_trusted = false;
    if (folder.unknown_files++ == 0 || name < folder.first_unknown_file) folder.first_unknown_file = name;
  }

  static bool changes_show(const ScannedFolder& folder, int fd) {
    if (folder.parent != nullptr && folder.parent->stamp.device == folder.stamp.device)
      return folder.parent->changes_show;
    const std::optional<std::uint64_t> file_system = os::file_system_of(fd);
    return file_system && shows_changes(*file_system);
  }

  void take_over(ScannedFolder& folder, ScannedFolder& known) {
    folder.stamp = known.stamp;
    if (repeats_an_ancestor(folder)) {
      folder.is_loop = true;
      return;
    }
    folder.can_be_trusted = true;
    folder.from_cache = true;
    folder.left_out = std::move(known.left_out);
    folder.names = std::move(known.names);
    folder.files = std::move(known.files);
    for (const auto& child : known.folders) add_folder(folder, child->name);
    enter_folders(folder, &known);
    crew_.count(folder.files.size());
  }

  void add_folder(ScannedFolder& folder, std::string_view name) {
    if (folder.path.size() + name.size() + 1 > kMaxPath) {
      ++folder.left_out.too_long;
      return;
    }
    auto child = std::make_unique<ScannedFolder>();
    child->parent = &folder;
    child->name = name;
    child->path = fmt::format("{}{}/", folder.path, name);
    folder.folders.push_back(std::move(child));
  }

  void enter_folders(ScannedFolder& folder, ScannedFolder* known) {
    const auto path_order = [](const auto& a, const auto& b) { return a->path < b->path; };
    std::sort(folder.folders.begin(), folder.folders.end(), path_order);
    std::size_t at = 0;  // in known->folders, which is sorted the same way
    for (const auto& child : folder.folders) {
      std::unique_ptr<ScannedFolder> before;
      if (known != nullptr) {
        while (at < known->folders.size() && known->folders[at] && known->folders[at]->path < child->path) ++at;
        if (at < known->folders.size() && known->folders[at]->path == child->path)
          before = std::move(known->folders[at++]);
      }
      enter(*child, std::move(before));
    }
  }

  void list_entries(ScannedFolder& folder, int fd) {
    static thread_local std::vector<std::byte> buffer;
    buffer.resize(kEntryBuffer);
    os::FolderReader reader(fd, buffer);
    for (os::FolderEntry entry; reader.next(entry);) add_entry(folder, fd, entry.name, entry.kind);
    const int error_number = reader.error_number();
    if (error_number == 0 || error_number == ENOENT) return;  // ENOENT: removed while open, nothing in it any more
    cannot_read(folder, error_number);
  }

  void add_entry(ScannedFolder& folder, int fd, const char* c_name, os::FileKind kind) {
    const std::string_view name(c_name);
    if (is_hidden(name)) {
      folder.left_out.hidden += name != kStageManifest;
      return;
    }
    if (kind == os::FileKind::link || kind == os::FileKind::unknown) {
      const os::FileFacts facts = os::facts_of(fd, c_name);
      const int error_number = facts.error_number;
      if (error_number == ENOENT || error_number == ELOOP || error_number == ENOTDIR) {
        folder.broken_links.emplace_back(name);
        return;
      }
      if (error_number != 0) return cannot_look_up(folder, name, error_number);
      kind = facts.kind;
    }
    if (kind == os::FileKind::folder) {
      add_folder(folder, name);
    } else if (kind != os::FileKind::regular) {
      folder.special_files.emplace_back(name);
    } else if (const codec::Media media = codec::media_of_name(name); !media.is_known()) {
      count_unknown(folder.left_out, name);
    } else if (folder.path.size() + name.size() > kMaxPath) {
      ++folder.left_out.too_long;
    } else {
      if (folder.names.size() > std::numeric_limits<std::uint32_t>::max() - name.size() - 1) {
        throw Error(ErrorKind::unsupported,
                    fmt::format("cannot list `{}`: its names take more than 4 GiB", shown(folder)),
                    "spread the files over several folders");
      }
      folder.files.push_back({.bytes = 0,
                              .name_at = static_cast<std::uint32_t>(folder.names.size()),
                              .name_bytes = static_cast<std::uint16_t>(name.size()),
                              .media = media});
      folder.names.append(name).push_back('\0');
    }
  }

  void look_up_sizes(ScannedFolder& folder, const std::shared_ptr<os::Fd>& fd) {
    const std::size_t count = folder.files.size();
    if (count <= 2 * kFilesPerTask) {
      look_up_sizes(folder, fd->get(), 0, count);
      sort_files(folder);
      return;
    }
    auto left = std::make_shared<std::atomic<std::size_t>>((count + kFilesPerTask - 1) / kFilesPerTask);
    for (std::size_t begin = 0; begin < count; begin += kFilesPerTask) {
      crew_.add([this, &folder, fd, left, begin, end = std::min(count, begin + kFilesPerTask)] {
        look_up_sizes(folder, fd->get(), begin, end);
        if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) sort_files(folder);
      });
    }
  }

  void look_up_sizes(ScannedFolder& folder, int fd, std::size_t begin, std::size_t end) {
    std::size_t uncounted = 0;
    for (std::size_t i = begin; i < end; ++i) {
      ScannedFile& file = folder.files[i];
      const os::FileFacts facts = os::facts_of(fd, folder.names.c_str() + file.name_at);
      if (facts.is_found() && facts.kind == os::FileKind::regular) {
        file.bytes = facts.bytes;
      } else {
        file.bytes = kGone;
        if (!facts.is_found() && facts.error_number != ENOENT)
          cannot_look_up(folder, folder.name_of(file), facts.error_number);
      }
      if (++uncounted == kTellEvery) crew_.count(std::exchange(uncounted, 0));
    }
    crew_.count(uncounted);
  }

  const int root_;
  const std::string& address_;
  const OpenOptions& options_;
  Crew crew_;
  std::mutex unknown_files_;
};

}  // namespace

bool is_hidden(std::string_view name) noexcept {
  return name.starts_with('.') || name == "lost+found";
}

void count_unknown(LeftOut& left_out, std::string_view name) {
  ++left_out.unknown;
  const std::size_t dot = name.rfind('.');
  std::string extension(dot == std::string_view::npos || name.size() - dot > 16 ? "no extension" : name.substr(dot));
  if (extension.front() == '.') extension = to_lower(extension);
  for (auto& [known, count] : left_out.extensions) {
    if (known == extension) {
      ++count;
      return;
    }
  }
  if (left_out.extensions.size() < kMaxExtensions) left_out.extensions.emplace_back(std::move(extension), 1);
}

bool shows_changes(std::uint64_t file_system) noexcept {
  constexpr std::uint64_t kFuse = 0x65735546, kPlan9 = 0x01021997, kSmb = 0xFF534D42, kSmb2 = 0xFE534D42;
  return file_system != kFuse && file_system != kPlan9 && file_system != kSmb && file_system != kSmb2;
}

std::unique_ptr<ScannedFolder> scan(int root, const std::string& address, std::unique_ptr<ScannedFolder> known,
                                    const OpenOptions& options) {
  return Scan(root, address, options).run(std::move(known));
}

}  // namespace stoker::dataset
