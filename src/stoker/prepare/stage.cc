// The order of things:
//   1. choose the samples (stage_choice.h), lock the folder, read its manifest;
//   2. compare: what is there and unchanged stays, what no run wrote is not touched;
//   3. fetch the rest (object_reader.h) and write it (stage_writer.h);
//   4. write index.csv where the source is one, remove what is not chosen any more if asked, rewrite the manifest.
// A kill at any time leaves whole files only, and a manifest that names each of them.
//
// A part is a copy of its own in `.copy.parts/2-of-4` beside `copy`, without the things that concern all of it. To
// join, the manifest notes the files of all parts, they are renamed into the destination, and the run then finds all
// there.
#include "stoker/prepare/stage.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/os/disk.h"
#include "stoker/os/entry.h"
#include "stoker/os/file.h"
#include "stoker/os/file_limit.h"
#include "stoker/os/folder_entries.h"
#include "stoker/os/read_file.h"
#include "stoker/prepare/object_reader.h"
#include "stoker/prepare/stage_choice.h"
#include "stoker/prepare/stage_folders.h"
#include "stoker/prepare/stage_index.h"
#include "stoker/prepare/stage_manifest.h"
#include "stoker/prepare/stage_pack.h"
#include "stoker/prepare/stage_writer.h"

namespace stoker::prepare {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kDiskBlock = 4096;               // a file takes whole blocks
constexpr std::string_view kMadeHere = "made by stage";  // the version of a file that the source does not have
constexpr std::uint64_t kMostInFlight = 256;             // requests in flight
constexpr std::uint64_t kOtherFiles = 32;                // descriptors that the rest of the process needs
constexpr double kTrialSeconds = 0.5, kLongestTrial = 2;

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// As the manifest has it: a relative path would mean another folder tomorrow.
std::string lasting_address(const std::string& address) {
  if (storage::store_of(address) != nullptr) return without_slashes(address);
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(storage::without_file_scheme(address), error);
  return error ? address : without_slashes(whole.string());
}

class Staging {
 public:
  explicit Staging(const StageOptions& options)
      : options_(options),
        whole_(without_slashes(options.destination)),
        folder_(options.part ? fmt::format("{}/{}", parts_of(whole_), options.part->folder()) : whole_),
        manifest_(folder_) {}

  StageReport run() {
    if (options_.part && options_.join) throw Error(ErrorKind::usage, "cannot make a part and join the parts at once");
    choice_ = choose_samples(options_, [&](std::uint64_t seen) { return say("scanning", seen, 0, 0, 0); });
    report_.source = options_.source;
    report_.destination = whole_;
    report_.part = options_.part;
    report_.dry_run = options_.dry_run;
    report_.source_kind = choice_.parts.front().data->facts().kind;
    // What narrows a split concerns that one alone; the splits have lines of their own.
    if (!options_.splits.empty())
      report_.source_kind.resize(std::min(report_.source_kind.find(','), report_.source_kind.size()));
    report_.classes_of_source = choice_.classes_of_source;
    report_.classes = choice_.parts.front().data->facts().classes;
    report_.notes.assign(choice_.notes.begin(), choice_.notes.end());
    require_files();
    require_folder();
    if (!options_.dry_run) lock();
    if (options_.part) read_joined();
    const std::vector<PartName> parts = options_.join ? bring_parts() : std::vector<PartName>{};
    compare();
    if (options_.join) require_all();
    if (!options_.part) {
      look_for_leftovers();
      look_for_empty_folders();
    }
    refuse_conflicts();
    require_room();
    if (options_.dry_run) {
      try_some();
      return std::move(report_);
    }
    const Clock::time_point began = Clock::now();
    copy();
    for (const PartName& part : parts) {
      std::error_code ignored;
      fs::remove_all(part_folder(part), ignored);
    }
    if (options_.join) (void)os::remove_empty_folder(parts_of(whole_));
    std::sort(report_.bad.begin(), report_.bad.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    report_.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return std::move(report_);
  }

 private:
  struct Item {
    std::size_t part = 0;
    std::uint64_t index = 0, bytes = 0;
    std::int64_t modified_ns = 0;  // of a local file, before it was read: a later change shows in the next run
  };

  bool say(std::string_view phase, std::uint64_t files, std::uint64_t of_files, std::uint64_t bytes,
           std::uint64_t of_bytes) {
    if (!options_.progress) return true;
    const Clock::time_point now = Clock::now();
    if (phase == phase_ && now - told_ < std::chrono::milliseconds(100)) return true;
    told_ = now;
    phase_ = phase;
    return options_.progress({phase, files, of_files, bytes, of_bytes});
  }

  static std::string version_of(const Item& item, const storage::Location& where) {
    if (where.is_file()) return fmt::format("changed {}", item.modified_ns);
    return where.version == nullptr ? "" : where.version;
  }
  static std::string parts_of(const std::string& destination) {
    const std::size_t slash = destination.rfind('/');
    return fmt::format("{}.{}.parts", destination.substr(0, slash + 1),
                       destination.substr(slash + 1));  // npos + 1 is 0
  }
  std::string part_folder(const PartName& part) const { return fmt::format("{}/{}", parts_of(whole_), part.folder()); }

  // What lies in the destination already is not fetched again by a part.
  void read_joined() {
    joined_ = StageManifest(whole_);
    if (joined_->was_there() && joined_->source() != lasting_address(options_.source)) joined_.reset();
  }
  bool is_joined(const std::string& path, const Item& item, const std::string& version) {
    if (!joined_ || version.empty()) return false;
    const StageManifest::Known* const known = joined_->find(path);
    return known != nullptr && known->now.version == version && known->now.bytes == item.bytes &&
           known->now.is(os::look_up(fmt::format("{}/{}", whole_, path)));
  }

  // The parts that lie there: all of one number, and none missing.
  std::vector<PartName> all_parts() const {
    std::vector<PartName> parts;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parts_of(whole_), error)) {
      PartName part;
      if (read_part_folder(entry.path().filename().string(), part)) parts.push_back(part);
    }
    std::sort(parts.begin(), parts.end(),
              [](const PartName& a, const PartName& b) { return a.of != b.of ? a.of < b.of : a.number < b.number; });
    if (parts.empty()) return parts;
    if (parts.front().of != parts.back().of) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot join the parts of `{}`: there are parts {} and {}", whole_, parts.front().text(),
                              parts.back().text()),
                  fmt::format("remove `{}` or `{}`", part_folder(parts.front()), part_folder(parts.back())));
    }
    for (std::uint64_t number = 1; number <= parts.front().of; ++number) {
      if (number <= parts.size() && parts[number - 1].number == number) continue;
      const PartName missing{number, parts.front().of};
      throw Error(
          ErrorKind::usage, fmt::format("cannot join the parts of `{}`: part {} is missing", whole_, missing.text()),
          format_text("make it with {}, or look whether its machine shares this disk", option("part", missing.text())));
    }
    return parts;
  }

  // Notes the files of all parts in the manifest, then gives them their places. A kill in between is made good by the
  // next --join: what has its place is noted.
  std::vector<PartName> bring_parts() {
    const std::vector<PartName> parts = all_parts();
    const std::string source = lasting_address(options_.source);
    const Json settings = settings_of(options_);
    std::vector<os::Fd> locks;
    std::vector<std::pair<std::string, std::string>> moves;
    const bool was_there = manifest_.was_there();
    for (const PartName& part : parts) {
      const std::string folder = part_folder(part);
      locks.push_back(os::lock_folder(folder));
      if (!locks.back())
        throw Error(ErrorKind::unavailable,
                    fmt::format("cannot join the parts of `{}`: part {} is being made", whole_, part.text()),
                    "wait until it has ended");
      StageManifest made(folder);
      if (made.source() != source || made.settings() != settings) {
        throw Error(
            ErrorKind::usage,
            fmt::format("cannot join the parts of `{}`: part {} is of {}", whole_, part.text(),
                        made.source() != source ? fmt::format("another source, `{}`", made.source())
                                                : std::string("another choice of samples")),
            format_text("remove the folder `{}`, then make it again with {}", folder, option("part", part.text())));
      }
      if (locks.size() == 1) manifest_.begin(source, was_there ? manifest_.settings() : settings);
      for (const auto& [path, known] : made.files()) {
        const std::string from = fmt::format("{}/{}", folder, path), to = fmt::format("{}/{}", whole_, path);
        if (!known.wrote(os::look_up(from))) continue;  // in its place already, or changed by somebody
        const StageManifest::Known* const here = manifest_.find(path);
        if (const os::Entry entry = os::look_up(to);
            entry.kind != os::Entry::Kind::missing && !options_.force && (here == nullptr || !here->wrote(entry))) {
          throw Error(
              ErrorKind::usage,
              fmt::format("cannot join the parts of `{}`: `{}` is there, and stage did not write it", whole_, path),
              format_text("move it away, or add {} to replace it", option("force", "True")));
        }
        manifest_.add(path, known.now);
        moves.emplace_back(from, to);
      }
    }
    if (parts.empty()) return parts;
    manifest_.flush();
    os::sync_file_system(directory_.get(), whole_);
    for (const auto& [from, to] : moves) {
      refuse_links(to.substr(whole_.size() + 1));
      os::make_folders(to.substr(0, to.rfind('/')));
      if (const int error_number = os::rename_entry(from, to); error_number != 0)
        throw system_error(error_number, "write", to);
    }
    is_there_ = true;
    return parts;
  }

  // Joining fetches nothing.
  void require_all() {
    if (items_.empty()) return;
    const std::string first = path_of(items_.front());
    if (options_.on_error == loader::OnError::skip) {
      for (const Item& item : items_) {
        drop(item);
        bad(path_of(item), "no part has copied it");
      }
      items_.clear();
      report_.fetched_bytes = 0;
      return;
    }
    throw Error(ErrorKind::usage,
                fmt::format("cannot join the parts of `{}`: {} {} in none of them, such as `{}`", whole_,
                            format_count(items_.size()), items_.size() == 1 ? "file is" : "files are", first),
                "run the parts again: each fetches what it lacks");
  }

  const dataset::Dataset& data_of(const Item& item) const { return *choice_.parts[item.part].data; }
  std::string path_of(const Item& item) const { return choice_.parts[item.part].path(item.index); }

  // A copy in a folder is made of files: samples inside larger ones have no name of their own.
  void require_files() const {
    for (const StagePart& part : choice_.parts) {
      if (part.data->sources().empty()) continue;
      throw Error(ErrorKind::usage,
                  fmt::format("cannot copy `{}` into a folder: its samples lie inside larger files ({})",
                              part.data->facts().address, part.data->facts().kind),
                  fmt::format("copy it into a pack: `stoker stage {} {}.pack`", options_.source, folder_));
    }
  }

  void require_folder() {
    const std::string source = lasting_address(options_.source);
    if ((lasting_address(folder_) + "/").starts_with(source + "/"))
      throw Error(ErrorKind::usage, fmt::format("cannot copy `{}` into itself", options_.source));
    const os::Entry here = os::look_up(folder_);
    if (here.kind == os::Entry::Kind::missing) return;
    if (here.kind != os::Entry::Kind::folder) {
      throw Error(ErrorKind::usage, fmt::format("cannot copy to `{}`: it is not a folder", folder_),
                  "choose another name");
    }
    is_there_ = true;
    if (options_.force) return;
    if (!manifest_.was_there()) {
      if (std::error_code error; fs::is_empty(folder_, error) || error) return;
      throw Error(
          ErrorKind::usage,
          fmt::format("cannot copy to `{}`: the folder holds files that stage did not write", folder_),
          format_text("choose another folder, or add {} to copy into this one and replace files of the same names",
                      option("force", "True")));
    }
    if (manifest_.source() != source) {
      throw Error(
          ErrorKind::usage,
          fmt::format("cannot copy to `{}`: it holds a copy of another source, `{}`", folder_, manifest_.source()),
          format_text("choose another folder, or add {} to copy into this one", option("force", "True")));
    }
  }

  void lock() {
    os::make_folders(folder_);
    directory_ = os::lock_folder(folder_);
    if (!directory_) {
      throw Error(ErrorKind::unavailable,
                  fmt::format("cannot copy to `{}`: another program is copying to this folder", folder_),
                  "wait until it has ended");
    }
    manifest_ = StageManifest(folder_);
  }

  void bad(std::string name, std::string cause) {
    if (options_.on_error == loader::OnError::raise) {
      throw Error(ErrorKind::corrupt, fmt::format("cannot copy `{}`: {}", name, cause),
                  format_text("use {} to leave bad objects out", option("on_error", "skip")))
          .about("on_error");
    }
    report_.bad.push_back({std::move(name), std::move(cause)});
  }

  void compare() {
    std::uint64_t total = 0, seen = 0;
    for (const StagePart& part : choice_.parts) total += part.data->size();
    for (std::size_t p = 0; p < choice_.parts.size(); ++p) {
      const StagePart& part = choice_.parts[p];
      report_.splits.push_back({part.folder, 0, 0});
      std::unordered_set<std::uint64_t> paths;  // rows of an index.csv may name one file twice
      for (std::uint64_t i = 0; i < part.data->size(); ++i) {
        const std::uint64_t number = seen++;
        if (!say("comparing", number, total, 0, 0)) throw Error(ErrorKind::unavailable, "interrupted");
        const std::string path = part.path(i);
        if (part.is_index() && !paths.insert(hash_text(path)).second) continue;
        if (options_.part && (number < options_.part->begin(total) || number >= options_.part->end(total))) continue;
        compare_one({p, i}, path);
      }
      if (part.is_index() && !options_.part) compare_made(part.index_path());
    }
    if (choice_.parts.size() == 1 && choice_.parts.front().folder.empty()) report_.splits.clear();
  }

  void compare_one(Item item, const std::string& path) {
    char text[storage::kLocationText];
    const storage::Location where = data_of(item).locate(item.index, text);
    item.bytes = where.bytes;
    if (!StageWriter::is_plain(path)) return bad(path, "its name is not a path below the folder of the copy");
    if (is_own_file(item, path)) return bad(path, "stage writes a file of its own under this name");
    if (where.is_file() && where.name != nullptr) {
      const os::Entry file = os::look_up(where.directory, where.name);
      if (file.kind != os::Entry::Kind::file)
        return bad(path, file.error_number != 0 ? std::strerror(file.error_number) : "there is no such file");
      item.bytes = file.bytes;
      item.modified_ns = file.modified_ns;
    }
    const std::string version = version_of(item, where);
    StageReport::Split& split = report_.splits[item.part];
    ++split.files, ++report_.files;
    split.bytes += item.bytes, report_.bytes += item.bytes;
    if (is_joined(path, item, version)) {
      ++report_.kept;
      return;
    }
    const os::Entry here = is_there_ ? os::look_up(fmt::format("{}/{}", folder_, path)) : os::Entry{};
    StageManifest::Known* const known = manifest_.find(path);
    if (known != nullptr) known->is_wanted = true;
    if (here.kind == os::Entry::Kind::folder) {
      drop(item);
      return bad(path, "a folder of the copy has this name");
    }
    if (here.kind != os::Entry::Kind::missing && (known == nullptr || !known->wrote(here))) {
      ++(known == nullptr ? foreign_ : changed_here_);
      if (first_conflict_.empty()) first_conflict_ = path;
    } else if (known != nullptr && known->now.is(here) && !version.empty() && known->now.version == version &&
               known->now.bytes == item.bytes) {
      ++report_.kept;
      return;
    }
    refuse_links(path);
    items_.push_back(item);
    report_.fetched_bytes += item.bytes;
  }

  bool is_own_file(const Item& item, const std::string& path) const {
    const StagePart& part = choice_.parts[item.part];
    return path == dataset::kStageManifest || StageWriter::is_part(path) ||
           (part.is_index() && path == part.index_path());
  }

  // A folder of the copy that is a link leads out of it: what lies there is not the copy's to replace.
  void refuse_links(const std::string& path) {
    for (std::size_t slash = path.find('/'); is_there_ && slash != std::string::npos;
         slash = path.find('/', slash + 1)) {
      const std::string folder = path.substr(0, slash);
      if (!looked_at_.insert(folder).second) continue;
      const std::string whole = fmt::format("{}/{}", folder_, folder);
      if (std::error_code error; !fs::is_symlink(whole, error)) continue;
      throw Error(ErrorKind::usage,
                  fmt::format("cannot copy to `{}`: `{}` is a symbolic link, and its files would be written elsewhere",
                              folder_, whole),
                  "remove the link, or choose another folder");
    }
  }

  // A file that is made from the choice, and not fetched.
  void compare_made(const std::string& path) {
    const os::Entry here = is_there_ ? os::look_up(fmt::format("{}/{}", folder_, path)) : os::Entry{};
    StageManifest::Known* const known = manifest_.find(path);
    if (known != nullptr) known->is_wanted = true;
    if (here.kind == os::Entry::Kind::missing || (known != nullptr && known->wrote(here))) return;
    ++(known == nullptr ? foreign_ : changed_here_);
    if (first_conflict_.empty()) first_conflict_ = path;
  }

  void drop(const Item& item) {  // it turned out to be bad
    StageReport::Split& split = report_.splits[item.part];
    --split.files, --report_.files;
    split.bytes -= item.bytes, report_.bytes -= item.bytes;
  }

  void refuse_conflicts() const {
    if (options_.force || foreign_ + changed_here_ == 0) return;
    const std::uint64_t count = foreign_ + changed_here_;
    throw Error(ErrorKind::usage,
                fmt::format("cannot copy to `{}`: {} {} there {}, such as `{}`", folder_, format_count(count),
                            count == 1 ? "file" : "files",
                            changed_here_ == count ? (count == 1 ? "was changed since it was copied"
                                                                 : "were changed since they were copied")
                                                   : "would be replaced that stage did not write",
                            first_conflict_),
                format_text("choose another folder, or add {} to replace them", option("force", "True")));
  }

  // Files of earlier runs that are not chosen now. Those that somebody changed are not ours any more.
  void look_for_leftovers() {
    for (const auto& [path, known] : manifest_.files()) {
      if (!known.is_wanted && known.wrote(os::look_up(fmt::format("{}/{}", folder_, path)))) leftovers_.push_back(path);
    }
    std::sort(leftovers_.begin(), leftovers_.end());
    if (leftovers_.empty() || options_.prune) return;
    const std::string count =
        fmt::format("{} {}", format_count(leftovers_.size()), leftovers_.size() == 1 ? "file" : "files");
    if (manifest_.settings() == settings_of(options_)) {
      report_.notes.push_back(
          format_text("{} of the copy, such as `{}`, no longer in the source: kept; {} removes what is not chosen",
                      count, leftovers_.front(), option("prune")));
      return;
    }
    throw Error(
        ErrorKind::usage,
        fmt::format("cannot copy to `{}`: {} of an earlier choice, such as `{}`, would stay beside the new ones",
                    folder_, count, leftovers_.front()),
        format_text("choose another folder, or add {} to remove them", option("prune", "True")));
  }

  // Folders of an earlier choice without any file. They would count as classes, and change the labels.
  void look_for_empty_folders() {
    if (!manifest_.was_there()) return;
    empty_folders_ = find_empty_folders(folder_, choice_.parts);
    if (empty_folders_.empty() || options_.prune) return;
    if (manifest_.settings() == settings_of(options_)) {
      report_.notes.push_back(format_text(
          "{} without files, such as `{}`, no longer in the source: kept; {} removes what is not chosen",
          empty_folders_.size() == 1 ? std::string("a folder of the copy")
                                     : fmt::format("{} folders of the copy", format_count(empty_folders_.size())),
          empty_folders_.front(), option("prune")));
      empty_folders_.clear();
      return;
    }
    throw Error(
        ErrorKind::usage,
        fmt::format("cannot copy to `{}`: {} of an earlier choice, such as `{}`, would count as {}", folder_,
                    empty_folders_.size() == 1 ? "an empty folder"
                                               : fmt::format("{} empty folders", format_count(empty_folders_.size())),
                    empty_folders_.front(), empty_folders_.size() == 1 ? "a class" : "classes"),
        format_text("choose another folder, or add {} to remove them", option("prune", "True")));
  }

  // A class without samples is a class all the same: without its folder, the classes behind it get other labels.
  void make_class_folders() {
    for (const StagePart& part : choice_.parts) {
      for (const std::string& folder : part.class_folders()) {
        const std::string whole = fmt::format("{}/{}", folder_, folder);
        if (os::look_up(whole).kind == os::Entry::Kind::folder) continue;
        report_.idle = false;
        try {
          os::make_folders(whole);
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::unavailable) throw;
          bad(folder, error.message());
        }
      }
    }
  }
  bool lacks_class_folders() const {
    for (const StagePart& part : choice_.parts) {
      for (const std::string& folder : part.class_folders()) {
        if (os::look_up(fmt::format("{}/{}", folder_, folder)).kind != os::Entry::Kind::folder) return true;
      }
    }
    return false;
  }

  void require_room() {
    std::uint64_t needed = 0;
    for (const Item& item : items_) needed += round_up(item.bytes, kDiskBlock);
    std::string folder = folder_;
    while (os::look_up(folder).kind == os::Entry::Kind::missing) {
      const std::size_t slash = folder.rfind('/');
      folder = slash == std::string::npos ? "." : slash == 0 ? "/" : folder.substr(0, slash);
    }
    const std::optional<std::uint64_t> room = os::free_bytes(folder);
    if (!room || needed <= *room) return;
    const std::string text = fmt::format("cannot copy to `{}`: {} are to be fetched, and its disk has {} left", folder_,
                                         format_bytes(needed), format_bytes(*room));
    if (!options_.dry_run)
      throw Error(ErrorKind::unavailable, text, "free some space, choose another disk, or copy fewer classes");
    report_.notes.push_back(text);
  }

  std::vector<const storage::Backend*> backends() const {
    std::vector<const storage::Backend*> all;
    for (const StagePart& part : choice_.parts) {
      for (const storage::Backend* const backend : part.data->backends()) {
        if (std::find(all.begin(), all.end(), backend) == all.end()) all.push_back(backend);
      }
    }
    return all;
  }

  // Every request in flight may hold a descriptor. So may every large file that is being written, of which there is one
  // for each request at most.
  static std::size_t depth() {
    const std::uint64_t files = os::open_file_limit();
    return files == os::kNoFileLimit
               ? kMostInFlight
               : std::clamp<std::uint64_t>((files - std::min(files, kOtherFiles)) / 2, 1, kMostInFlight);
  }
  ReaderOptions reader_options() const {
    return {.memory_bytes = options_.memory_limit, .depth = depth(), .max_rate = options_.max_rate};
  }
  std::uint64_t requests_of(std::span<const Item> items) const {
    if (backends().empty()) return 0;
    std::uint64_t requests = 0;
    for (const Item& item : items) requests += requests_for(item.bytes);
    return requests;
  }
  std::vector<ReadItem> to_read(std::span<const Item> items) const {
    std::vector<ReadItem> reads;
    reads.reserve(items.size());
    for (const Item& item : items) reads.push_back({&data_of(item), item.index, item.bytes});
    return reads;
  }

  void copy() {
    const Json settings = settings_of(options_);
    const bool same_choice = manifest_.was_there() && manifest_.settings() == settings;
    const bool has_index = !options_.part && std::any_of(choice_.parts.begin(), choice_.parts.end(),
                                                         [](const StagePart& part) { return part.is_index(); });
    const bool has_leftovers = !leftovers_.empty() || !empty_folders_.empty();
    const bool is_complete =
        items_.empty() && !(has_leftovers && options_.prune) && (options_.part || !lacks_class_folders());
    report_.idle = is_complete && report_.bad.empty();
    if (is_complete && same_choice && !has_index) return;
    manifest_.begin(lasting_address(options_.source), settings);
    report_.requests = requests_of(items_);
    const std::uint64_t total_bytes = std::exchange(report_.fetched_bytes, 0);
    StageWriter writer(folder_, directory_.get(), manifest_,
                       [&](std::size_t item, const std::string& cause) { refuse(items_[item], cause); });
    try {
      const ReadHandlers handlers{
          .take =
              [&](std::size_t i, std::uint64_t offset, std::span<const std::byte> bytes, bool is_last) {
                const Item& item = items_[i];
                writer.write(i, target_of(item), offset, bytes, is_last);
                report_.fetched_bytes += bytes.size();
                report_.fetched += is_last;
              },
          .fail =
              [&](std::size_t i, const storage::Failure& why) {
                writer.abandon(i);
                drop(items_[i]);
                bad(path_of(items_[i]), why.text);
              },
          .keep_going =
              [&] { return say("copying", report_.fetched, items_.size(), report_.fetched_bytes, total_bytes); }};
      const bool is_done = read_objects(to_read(items_), backends(), reader_options(), handlers);
      writer.settle();
      if (!is_done) throw Error(ErrorKind::unavailable, "interrupted");
      if (!options_.part) {
        make_class_folders();
        write_indexes();
        prune();
      }
      manifest_.finish();
      os::sync_file_system(directory_.get(), folder_);
    } catch (const Error& error) {
      writer.rescue();  // the first error is the one to tell
      throw Error(error.kind(), error.text(),
                  format_text("{}{}run the same command again: it goes on where it stopped", error.hint_text(),
                              error.hint().empty() ? "" : "; then "))
          .about(error.option());
    }
  }

  // A file that was fetched and cannot have its name.
  void refuse(const Item& item, const std::string& cause) {
    --report_.fetched;
    drop(item);
    bad(path_of(item), cause);
  }

  StageWriter::Target target_of(const Item& item) const {
    char text[storage::kLocationText];
    return {path_of(item), version_of(item, data_of(item).locate(item.index, text)), item.bytes};
  }

  // Of parts that come from an index.csv: one of their own, with the rows that were chosen.
  void write_indexes() {
    std::unordered_set<std::string> bad_names;
    for (const StageReport::Bad& one : report_.bad) bad_names.insert(one.name);
    for (const StagePart& part : choice_.parts) {
      if (!part.is_index()) continue;
      const std::string name = part.index_path(), path = fmt::format("{}/{}", folder_, name);
      const StageIndex index = make_index(part, bad_names);
      if (index.empty_classes > 0) {
        report_.notes.push_back(
            fmt::format("{}: {} of {} classes have no sample here, so labels are written as numbers", name,
                        format_count(index.empty_classes), format_count(part.data->facts().classes.size())));
      }
      if (os::exists(path) && os::read_text(path, std::uint64_t{1} << 40) == index.text) continue;
      report_.idle = false;
      os::make_folders(path.substr(0, path.rfind('/')));
      os::write_file(path, index.text);
      manifest_.add(name, {index.text.size(), std::string(kMadeHere), os::look_up(path).modified_ns});
    }
  }

  void prune() {
    if (!options_.prune) return;
    std::unordered_set<std::string> classes;
    for (const StagePart& part : choice_.parts) {
      for (const std::string& folder : part.class_folders()) classes.insert(fmt::format("{}/{}", folder_, folder));
    }
    for (const std::string& path : leftovers_) {
      const std::string whole = fmt::format("{}/{}", folder_, path);
      if (const int error_number = os::remove_file(whole); error_number != 0 && error_number != ENOENT)
        throw system_error(error_number, "remove", whole);
      manifest_.remove(path);
      ++report_.pruned;
      // Folders that are empty now go too; any other stays.
      std::error_code error;
      for (fs::path folder = fs::path(whole).parent_path(); folder != fs::path(folder_);
           folder = folder.parent_path()) {
        if (classes.contains(folder.string()) || !fs::is_empty(folder, error) || error || !fs::remove(folder, error))
          break;
      }
    }
    for (const std::string& path : empty_folders_) {
      std::error_code error;
      const std::string whole = fmt::format("{}/{}", folder_, path);
      if (holds_no_file(whole)) fs::remove_all(whole, error);
    }
  }

  // Reads a few objects for real, keeps none, and draws the line from there.
  void try_some() {
    report_.fetched = items_.size();
    report_.requests = requests_of(items_);
    report_.idle = items_.empty();
    double seconds = 0;
    std::uint64_t bytes = 0;
    for (const std::uint64_t wanted : {64, 1024, 16384}) {
      const std::uint64_t total = items_.size(), count = std::min<std::uint64_t>(wanted, total);
      if (count == 0) break;
      std::vector<Item> some;
      for (std::uint64_t i = 0; i < count; ++i) some.push_back(items_[i * total / count]);
      std::uint64_t whole = 0;
      bytes = 0;
      const Clock::time_point began = Clock::now();
      const ReadHandlers handlers{.take =
                                      [&](std::size_t, std::uint64_t, std::span<const std::byte> piece, bool is_last) {
                                        bytes += piece.size();
                                        whole += is_last;
                                      },
                                  .fail = [](std::size_t, const storage::Failure&) {},
                                  .keep_going =
                                      [&] {
                                        seconds = std::chrono::duration<double>(Clock::now() - began).count();
                                        if (!say("measuring", whole, count, 0, 0))
                                          throw Error(ErrorKind::unavailable, "interrupted");
                                        return seconds < kLongestTrial ||
                                               whole == 0;  // a slow store is measured by few objects
                                      }};
      (void)read_objects(to_read(some), backends(), reader_options(), handlers);
      seconds = std::chrono::duration<double>(Clock::now() - began).count();
      report_.measured_files = whole;
      if (count == total || seconds > kTrialSeconds) break;
    }
    if (report_.measured_files == 0) return;
    const double share = bytes == 0 ? static_cast<double>(items_.size()) / static_cast<double>(report_.measured_files)
                                    : static_cast<double>(report_.fetched_bytes) / static_cast<double>(bytes);
    report_.seconds = seconds * share;
    if (options_.max_rate > 0) {
      report_.seconds = std::max(report_.seconds,
                                 static_cast<double>(report_.fetched_bytes) / static_cast<double>(options_.max_rate));
    }
  }

  const StageOptions& options_;
  std::string whole_, folder_;  // the destination; where this run writes: the destination or the part
  StageManifest manifest_;
  std::optional<StageManifest> joined_;  // of the destination, while a part is made
  StageChoice choice_;
  StageReport report_;
  os::Fd directory_;
  bool is_there_ = false;
  std::vector<Item> items_;  // to be fetched
  std::uint64_t foreign_ = 0, changed_here_ = 0;
  std::string first_conflict_;
  std::vector<std::string> leftovers_;         // sorted
  std::vector<std::string> empty_folders_;     // of earlier choices; sorted
  std::unordered_set<std::string> looked_at_;  // folders that are no links
  std::string_view phase_;                     // the last one that was told
  Clock::time_point told_{};
};

}  // namespace

StageReport stage(const StageOptions& options) {
  if (options.on_error != loader::OnError::raise && options.on_error != loader::OnError::skip) {
    throw Error(ErrorKind::usage,
                format_text("cannot copy with {}: a bad object is an error (raise) or left out (skip)",
                            option("on_error", loader::name(options.on_error))))
        .about("on_error");
  }
  if (options.destination.empty()) throw Error(ErrorKind::usage, "cannot copy: the destination is empty");
  if (storage::store_of(options.destination) != nullptr) {
    throw Error(ErrorKind::usage, fmt::format("cannot copy to `{}`: a copy lies on a local disk", options.destination),
                "`stoker pack SOURCE s3://...` writes packs to a store");
  }
  const bool shares = options.part || options.join;
  if (shares && options.dry_run)
    throw Error(ErrorKind::usage, "a part and a join cannot be tried", "leave one of them out");
  if (options.part && options.prune)
    throw Error(ErrorKind::usage, format_text("a part removes nothing: {} goes with {}", option("prune", "True"),
                                              option("join", "True")));
  if (ends_with_any_case(without_slashes(options.destination), ".pack")) {
    if (shares)
      throw Error(ErrorKind::usage, format_text("cannot make `{}` in parts: it is a pack", options.destination),
                  fmt::format("`stoker pack {} {}` takes the same flags", options.source, options.destination));
    return stage_pack(options);
  }
  return Staging(options).run();
}

}  // namespace stoker::prepare
