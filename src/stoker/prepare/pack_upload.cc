#include "stoker/prepare/pack_upload.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/dataset/listing.h"
#include "stoker/os/fd.h"
#include "stoker/os/file.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/interruption.h"

namespace stoker::prepare {
namespace {

constexpr std::size_t kReadAtOnce = 4 << 20;

// What a pack may be made of: nothing else below its address is ever removed.
bool is_file_of_pack(std::string_view name) {
  return name == dataset::kPackJson || name == dataset::kPackIndex || name == dataset::kPackNames ||
         name == dataset::kPackColumns || name == dataset::kPackSeek || name.starts_with("data-");
}

class PackUpload {
 public:
  explicit PackUpload(const PackOptions& options) : options_(options), progress_(options.progress) {
    address_ = options.destination;
    while (address_.ends_with('/')) address_.pop_back();
    const auto [scheme, name] = storage::split_address(address_);
    store_ = storage::find_backend(scheme);
    folder_ = fmt::format("{}/", name);
    if (!ends_with_any_case(address_, ".pack")) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot make the pack `{}`: in a store its name "
                              "must end in .pack",
                              address_),
                  fmt::format("write `{}.pack`", address_));
    }
  }

  PackReport run() {
    look_at_store();
    const std::string work =
        options_.work_folder.empty() ? dataset::listing_folder(options_.cache_dir) : options_.work_folder;
    if (work.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot make the pack `{}`: there is no folder "
                              "to make it in first",
                              address_),
                  format_text("name one with {}", option("work_folder")));
    }
    local_ = fmt::format("{}/upload-{:016x}.pack", work, hash_text(address_));
    os::make_folders(work);
    PackOptions packing = options_;
    packing.destination = local_;
    packing.force = true;  // what lies there is our own
    PackReport report = make_pack(packing);
    report.destination = address_;
    report.was_there = has_pack_;
    if (options_.dry_run) return report;
    progress_.restart();
    const std::uint64_t bytes = upload();
    report.written_bytes = bytes;
    report.idle = false;
    report.seconds += progress_.seconds();
    remove_flat_folder(local_);
    return report;
  }

 private:
  void look_at_store() {
    try {
      store_->list(folder_, [&](const storage::Backend::Object& object) {
        const std::string_view name = object.name.substr(folder_.size());
        if (is_file_of_pack(name)) there_.emplace_back(name);
        return true;
      });
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::not_found) throw;
    }
    has_pack_ = std::find(there_.begin(), there_.end(), dataset::kPackJson) != there_.end();
    if (has_pack_ && !options_.force && !options_.dry_run) {
      throw Error(
          ErrorKind::usage, fmt::format("cannot write the pack `{}`: it is there already", address_),
          format_text("a pack in a store is not brought up to date: add {} to replace it, or choose another name",
                      option("force", "True")));
    }
  }

  // pack.json last, and that of an old pack goes first: at no time does one
  // name files of the other.
  std::uint64_t upload() {
    std::vector<std::string> names;
    std::uint64_t total = 0;
    for (const auto& entry : std::filesystem::directory_iterator(local_)) {
      names.push_back(entry.path().filename().string());
      total += entry.file_size();
    }
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      return std::pair(a == dataset::kPackJson, std::string_view(a)) <
             std::pair(b == dataset::kPackJson, std::string_view(b));
    });
    std::vector<std::string> written;
    try {
      if (has_pack_) store_->remove(folder_ + std::string(dataset::kPackJson));
      for (const std::string& name : names) {
        upload_file(name, total);
        written.push_back(name);
      }
    } catch (const Error& error) {
      for (auto name = written.rbegin(); name != written.rend(); ++name) try_remove(*name);
      throw Error(error.kind(), error.text(),
                  format_text("{}{}run the same command again: what was packed "
                              "is kept, and uploaded then",
                              error.hint_text(), error.hint().empty() ? "" : "; then "))
          .about(error.option());
    }
    for (const std::string& old : there_) {
      if (std::find(names.begin(), names.end(), old) == names.end()) try_remove(old);
    }
    return sent_bytes_;
  }

  void upload_file(const std::string& name, std::uint64_t total) {
    const std::string path = fmt::format("{}/{}", local_, name);
    const os::Fd fd = os::open_file(path, O_RDONLY);
    const std::unique_ptr<storage::ObjectWriter> writer = store_->create(folder_ + name);
    std::vector<std::byte> buffer(kReadAtOnce);
    for (std::uint64_t offset = 0;;) {
      if (!progress_("uploading", sent_bytes_ / 1'000'000, total / 1'000'000, sent_bytes_))
        throw Error(ErrorKind::unavailable, "interrupted");
      const std::size_t got = os::read_up_to(fd.get(), buffer, offset, path);
      writer->write(std::span(buffer).first(got));
      offset += got;
      sent_bytes_ += got;
      if (got < buffer.size()) break;
    }
    writer->finish();
  }

  void try_remove(const std::string& name) noexcept {
    const storage::InterruptionScope uninterrupted(nullptr);  // it may clean up after Ctrl-C
    try {
      store_->remove(folder_ + name);
    } catch (const Error&) {
      // Without pack.json nobody reads it, and the next run replaces it.
    }
  }

  const PackOptions& options_;
  ProgressTeller progress_;
  std::string address_, folder_, local_;
  const storage::Backend* store_ = nullptr;
  std::vector<std::string> there_;  // files of a pack that the store has
  bool has_pack_ = false;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace

PackReport make_pack_in_store(const PackOptions& options) {
  return PackUpload(options).run();
}

}  // namespace stoker::prepare
