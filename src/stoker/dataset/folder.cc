// A folder tree as a data set: classes are its sub-folders, as with torchvision's ImageFolder.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"
#include "stoker/dataset/files.h"
#include "stoker/dataset/kinds.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/scan.h"
#include "stoker/dataset/scan_objects.h"
#include "stoker/os/fd.h"
#include "stoker/os/file_facts.h"

namespace stoker::dataset {
namespace {

constexpr std::size_t kNamedPerNote = 3;

std::string plural(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}{}", format_count(count), word, count == 1 ? "" : "s");
}

// Names the first few of a list: "`a`, `b`, `c` and 4 more".
std::string named(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamedPerNote, names.size()); ++i) {
    text += fmt::format("{}`{}`", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kNamedPerNote) text += fmt::format(" and {} more", format_count(names.size() - kNamedPerNote));
  return text;
}

// What was seen in the whole tree besides samples.
struct Remarks {
  LeftOut left_out;
  std::uint64_t folders = 0;  // below the root
  std::uint64_t cached_files = 0;
  bool all_from_cache = true;
  bool holds_index = false;                                              // an index.csv at the root
  std::vector<std::string> broken_links, loops, missing, special_files;  // paths
  std::vector<Loss> losses;
  int error_number = 0;  // of the first loss

  std::string unknown_kinds() const {
    auto extensions = left_out.extensions;
    std::stable_sort(extensions.begin(), extensions.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (std::size_t i = 0; i < std::min(kNamedPerNote, extensions.size()); ++i) {
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", extensions[i].first, format_count(extensions[i].second));
    }
    return extensions.size() > kNamedPerNote ? text + ", ..." : text;
  }

  void collect(const ScannedFolder& folder) {
    if (folder.is_loop) return loops.push_back(folder.path.substr(0, folder.path.size() - 1));
    if (folder.is_missing) {
      all_from_cache = false;
      return missing.push_back(folder.path.substr(0, folder.path.size() - 1));
    }
    folders += folder.parent != nullptr;
    if (folder.error_number != 0) {
      if (losses.empty()) error_number = folder.error_number;
      losses.push_back(loss_of(folder));
    }
    if (folder.from_cache) cached_files += folder.files.size();
    all_from_cache = all_from_cache && folder.from_cache;
    left_out.hidden += folder.left_out.hidden;
    left_out.unknown += folder.left_out.unknown;
    left_out.too_long += folder.left_out.too_long;
    for (const auto& more : folder.left_out.extensions) {
      const auto known = std::find_if(left_out.extensions.begin(), left_out.extensions.end(),
                                      [&](const auto& pair) { return pair.first == more.first; });
      if (known != left_out.extensions.end()) {
        known->second += more.second;
      } else if (left_out.extensions.size() < 64) {
        left_out.extensions.push_back(more);
      }
    }
    for (const std::string& name : folder.broken_links) broken_links.push_back(folder.path + name);
    for (const std::string& name : folder.special_files) special_files.push_back(folder.path + name);
    for (const auto& child : folder.folders) collect(*child);
  }

  static Loss loss_of(const ScannedFolder& folder) {
    const std::string path = folder.path.empty() ? "." : folder.path.substr(0, folder.path.size() - 1);
    const char* const reason = std::strerror(folder.error_number);
    if (folder.is_unreadable()) return {path, fmt::format("the folder cannot be read: {}", reason)};
    return {path, fmt::format("{} cannot be looked up, `{}` the first: {}", plural(folder.unknown_files, "file"),
                              folder.first_unknown_file, reason)};
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (left_out.hidden > 0)
      notes.push_back(fmt::format("left out {} hidden {}", format_count(left_out.hidden),
                                  left_out.hidden == 1 ? "file or folder" : "files or folders"));
    if (left_out.unknown > 0) {
      notes.push_back(
          fmt::format("left out {} of unknown kind ({})", plural(left_out.unknown, "file"), unknown_kinds()));
    }
    if (!special_files.empty()) {
      notes.push_back(fmt::format("left out {} (pipes, sockets, devices): {}",
                                  plural(special_files.size(), "special file"), named(special_files)));
    }
    if (left_out.too_long > 0) {
      notes.push_back(fmt::format("left out {} longer than {} bytes", plural(left_out.too_long, "path"), kMaxPath));
    }
    if (holds_index)
      notes.push_back("its index.csv is not read; to take paths and labels from it, give the file itself");
    if (!loops.empty()) {
      notes.push_back(
          fmt::format("left out {} leading back to a folder above: {}", plural(loops.size(), "link"), named(loops)));
    }
    if (!broken_links.empty()) {
      notes.push_back(
          fmt::format("left out {} leading nowhere: {}", plural(broken_links.size(), "link"), named(broken_links)));
    }
    if (!missing.empty()) {
      notes.push_back(fmt::format("left out {} that went away during the scan: {}", plural(missing.size(), "folder"),
                                  named(missing)));
    }
    return notes;
  }
};

std::uint64_t count_files(const ScannedFolder& folder) {
  std::uint64_t count = folder.files.size();
  for (const auto& child : folder.folders) count += count_files(*child);
  return count;
}

void require_samples(const std::string& address, const ScannedFolder& tree, const Remarks& remarks) {
  if (count_files(tree) > 0) return;
  if (!remarks.losses.empty()) {
    throw Error(system_error(remarks.error_number, "read", address).kind(),
                fmt::format("cannot find samples in `{}`: {}", address, remarks.losses[0].message()));
  }
  std::string seen =
      remarks.folders == 0 && remarks.left_out.unknown == 0 && remarks.left_out.hidden == 0
          ? "it is empty"
          : fmt::format("it holds {}, {} hidden and {} of other kinds", plural(remarks.folders, "folder"),
                        format_count(remarks.left_out.hidden), plural(remarks.left_out.unknown, "file"));
  if (remarks.left_out.unknown > 0) seen += fmt::format(" ({})", remarks.unknown_kinds());
  throw Error(ErrorKind::not_found,
              fmt::format("cannot find samples in `{}`: looked for {}; {}", address, codec::extensions("and"), seen));
}

class FolderDataset final : public Dataset {
 public:
  FolderDataset(const std::string& address, os::Fd root) : root_(std::move(root)) {
    facts_.address = address;
    facts_.kind = "folder";
  }
  // The folder is an address of a store, with a slash at the end.
  FolderDataset(const std::string& address, const storage::Backend& backend, std::string_view folder)
      : backend_(&backend), address_(folder) {
    facts_.address = address;
    facts_.kind = "objects";
  }

  // Takes the samples of the tree, and frees it on the way.
  void fill(ScannedFolder& tree) {
    const std::uint64_t at_top = tree.files.size();
    std::uint64_t below = 0;
    for (const auto& child : tree.folders) below += count_files(*child);
    // ImageFolder ignores files beside the class folders; where most files lie there, it is the folders that are stray.
    // A folder that cannot be read may hold the most: it must not make a folder of classes one without.
    const bool holds_unreadable = std::any_of(tree.folders.begin(), tree.folders.end(),
                                              [](const auto& child) { return child->error_number != 0; });
    const bool has_classes = below > 0 && (below >= at_top || holds_unreadable);
    if (has_classes) {
      name_classes(tree);
      if (at_top > 0) {
        facts_.notes.push_back(
            fmt::format("left out {} beside the class folders, as ImageFolder does", plural(at_top, "file")));
      }
    } else if (below > 0) {
      facts_.notes.push_back(
          fmt::format("most files lie beside the sub-folders ({} of {}): all are taken, without labels",
                      format_count(at_top), format_count(at_top + below)));
    }
    samples_.reserve(below + (has_classes ? 0 : at_top));
    Fingerprint fingerprint;
    if (has_classes) tree.files.clear();
    take(tree, has_classes, -1, fingerprint);
    facts_.fingerprint = fingerprint.value();
    names_.shrink_to_fit();
    paths_.shrink_to_fit();
    folders_.shrink_to_fit();
  }

  Facts& own_facts() noexcept { return facts_; }  // while it is being made

  const Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return samples_.size(); }
  std::uint64_t id(std::uint64_t index) const noexcept override {
    char buffer[kMaxPath + 1];
    return id_of_path({buffer, path(index, buffer)});
  }
  storage::Location locate(std::uint64_t index, std::span<char> text) const noexcept override {
    const std::uint64_t bytes = samples_[index].bytes;
    if (backend_ == nullptr) return in_folder(root_.get(), text, path(index, text), bytes);
    const std::size_t length = text.empty() ? 0 : join(text, address_, folder_path(index), file_name(index));
    const std::uint64_t version = version_at_.empty() ? kNoVersion : version_at_[index];
    return storage::Location::whole_object(*backend_, length == 0 ? nullptr : text.data(),
                                           version == kNoVersion ? nullptr : versions_.c_str() + version, bytes);
  }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  Label label(std::uint64_t index) const noexcept override { return {folders_[samples_[index].folder].label, 0}; }
  codec::Media media(std::uint64_t index) const noexcept override { return samples_[index].media; }
  std::string name(std::uint64_t index) const override {
    std::string text(folder_path(index));
    return text.append(file_name(index));
  }
  double column(std::size_t, std::uint64_t) const noexcept override { return std::numeric_limits<double>::quiet_NaN(); }
  std::uint64_t memory_bytes() const noexcept override {
    return held_bytes(facts_) + held_bytes(paths_) + held_bytes(folders_) + held_bytes(names_) + held_bytes(samples_) +
           held_bytes(version_at_) + held_bytes(versions_);
  }

 private:
  struct Sample {
    std::uint64_t bytes;
    std::uint64_t name_at;
    std::uint32_t folder;
    std::uint16_t name_bytes;
    codec::Media media;
  };
  struct Folder {
    std::uint64_t path_at;
    std::uint32_t path_bytes;
    std::int32_t label;
  };

  std::size_t path(std::uint64_t index, std::span<char> out) const noexcept {
    return out.empty() ? 0 : join(out, folder_path(index), file_name(index));
  }
  static constexpr std::uint64_t kNoVersion = ~std::uint64_t{0};

  std::string_view folder_path(std::uint64_t index) const noexcept {
    const Folder& folder = folders_[samples_[index].folder];
    return std::string_view(paths_).substr(folder.path_at, folder.path_bytes);
  }
  std::string_view file_name(std::uint64_t index) const noexcept {
    return std::string_view(names_).substr(samples_[index].name_at, samples_[index].name_bytes);
  }

  void name_classes(const ScannedFolder& tree) {
    std::vector<std::string> empty;
    for (const auto& child : tree.folders) {
      if (child->is_loop || child->is_missing) continue;
      facts_.classes.push_back(child->name);
      if (count_files(*child) == 0 && child->error_number == 0) empty.push_back(child->name);
    }
    std::sort(facts_.classes.begin(), facts_.classes.end());
    facts_.label_kind = LabelKind::integer;
    if (!empty.empty()) {
      facts_.notes.push_back(fmt::format("{} without samples, counted as {} all the same: {}",
                                         plural(empty.size(), "class folder"),
                                         empty.size() == 1 ? "a class" : "classes", named(empty)));
    }
  }

  // Files and folders are both sorted by path; merging them keeps all samples sorted by path.
  void take(ScannedFolder& folder, bool children_are_classes, std::int32_t label, Fingerprint& fingerprint) {
    if (folders_.size() >= std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ErrorKind::unsupported, fmt::format("cannot list `{}`: more than 2^32 folders", facts_.address));
    }
    const auto number = static_cast<std::uint32_t>(folders_.size());
    folders_.push_back({paths_.size(), static_cast<std::uint32_t>(folder.path.size()), label});
    paths_ += folder.path;

    std::string path = folder.path;
    std::size_t next = 0;
    for (const ScannedFile& file : folder.files) {
      const std::string_view name = folder.name_of(file);
      while (next < folder.folders.size() && comes_before(*folder.folders[next], name)) {
        enter(*folder.folders[next++], children_are_classes, label, fingerprint);
      }
      samples_.push_back({file.bytes, names_.size(), number, file.name_bytes, file.media});
      names_ += name;
      if (backend_ != nullptr) take_version(folder.version_of(file));
      facts_.total_bytes += file.bytes;
      facts_.largest_bytes = std::max(facts_.largest_bytes, file.bytes);
      path.resize(folder.path.size());
      path += name;
      fingerprint.add(path, file.bytes, {label, 0});
    }
    folder.files = {};
    folder.names = {};
    while (next < folder.folders.size()) enter(*folder.folders[next++], children_are_classes, label, fingerprint);
    folder.folders.clear();
  }

  void take_version(std::string_view version) {
    version_at_.push_back(version.empty() ? kNoVersion : versions_.size());
    if (!version.empty()) versions_.append(version).push_back('\0');
  }

  static bool comes_before(const ScannedFolder& folder, std::string_view file_name) {
    const int order = std::string_view(folder.name).compare(file_name.substr(0, folder.name.size()));
    if (order != 0) return order < 0;
    return file_name.size() > folder.name.size() && static_cast<unsigned char>(file_name[folder.name.size()]) > '/';
  }

  void enter(ScannedFolder& child, bool is_class, std::int32_t label, Fingerprint& fingerprint) {
    if (is_class) {
      const auto at = std::lower_bound(facts_.classes.begin(), facts_.classes.end(), child.name);
      label = static_cast<std::int32_t>(at - facts_.classes.begin());
    }
    take(child, false, label, fingerprint);
  }

  os::Fd root_;
  const storage::Backend* backend_ = nullptr;  // not null: its samples are objects, below address_
  std::string address_;
  std::string versions_;                   // of the objects, each with a NUL
  std::vector<std::uint64_t> version_at_;  // in versions_; kNoVersion: it has none. Empty: of files
  Facts facts_;
  std::string paths_;  // of the folders, each with a slash at the end
  std::vector<Folder> folders_;
  std::string names_;  // of the files
  std::vector<Sample> samples_;
};

}  // namespace

DatasetPtr open_objects(const std::string& address, const OpenOptions& options) {
  const auto [scheme, name] = storage::split_address(address);
  const std::string folder = name.ends_with('/') ? std::string(name) : fmt::format("{}/", name);
  const storage::Backend& backend = *storage::find_backend(scheme);
  std::vector<std::string> notes;
  const std::unique_ptr<ScannedFolder> tree = scan_objects(backend, folder, options, notes);
  Remarks remarks;
  remarks.collect(*tree);
  require_samples(address, *tree, remarks);
  auto dataset = std::make_shared<FolderDataset>(address, backend, folder);
  Facts& facts = dataset->own_facts();
  facts.notes = remarks.notes();
  facts.notes.insert(facts.notes.end(), notes.begin(), notes.end());
  for (std::string& note : backend.notes()) facts.notes.push_back(std::move(note));
  facts.seek_path = seek_path(options, fmt::format("{} {}", backend.identity(), folder));
  dataset->fill(*tree);
  return dataset;
}

DatasetPtr open_folder(const std::string& address, const OpenOptions& options) {
  os::Fd root = os::open_file(address, O_RDONLY | O_DIRECTORY);

  std::string cached_at;
  std::string real_path;
  std::unique_ptr<ScannedFolder> known;
  if (options.use_cache) {
    real_path = real_path_of(address);
    const std::string folder = listing_folder(options.cache_dir);
    if (!real_path.empty() && !folder.empty()) {
      cached_at = listing_path(folder, real_path);
      known = load_listing(cached_at, real_path);
    }
  }

  const std::unique_ptr<ScannedFolder> tree = scan(root.get(), address, std::move(known), options);
  Remarks remarks;
  remarks.collect(*tree);
  remarks.holds_index = os::facts_of(root.get(), "index.csv").is_found();
  require_samples(address, *tree, remarks);

  auto dataset = std::make_shared<FolderDataset>(address, std::move(root));
  Facts& facts = dataset->own_facts();
  facts.notes = remarks.notes();
  facts.losses = std::move(remarks.losses);
  facts.seek_path = seek_path(options, real_path);
  facts.sizes_may_be_stale = remarks.cached_files > 0;
  if (!cached_at.empty() && !tree->changes_show) {
    facts.notes.push_back(
        "the listing is not cached: folders of this file system do not always show that they changed");
  } else if (!cached_at.empty() && !remarks.all_from_cache) {
    try {
      save_listing(cached_at, to_listing(*tree, real_path));
    } catch (const Error& error) {
      facts.notes.push_back(fmt::format("the listing is not cached, the next start scans again: {}", error.message()));
    }
  }
  dataset->fill(*tree);
  return dataset;
}

}  // namespace stoker::dataset
