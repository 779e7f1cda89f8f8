#include "stoker/prepare/pack_parts.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/file_lock.h"
#include "stoker/os/folder_entries.h"
#include "stoker/os/read_file.h"
#include "stoker/prepare/finish.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/pack_source.h"
#include "stoker/prepare/part_record.h"
#include "stoker/prepare/seek_record.h"
#include "stoker/prepare/shards_writer.h"
#include "stoker/prepare/source_times.h"
#include "stoker/storage/backend.h"

namespace stoker::prepare {
namespace {

constexpr std::string_view kPartLock = ".lock";
// Who works on the part: file systems without locks let two runs of one part begin.
constexpr std::string_view kPartOwner = ".owner";
constexpr std::string_view kJoining = ".joining";  // in the hidden folder: the parts whose shards are brought there
constexpr std::chrono::seconds kLookForOwner{2};

// The parts that lie beside a destination.
class PartsFolder {
 public:
  explicit PartsFolder(std::string destination) : destination_(std::move(destination)) {
    while (destination_.size() > 1 && destination_.ends_with('/')) destination_.pop_back();
    const std::size_t slash = destination_.rfind('/');
    above_ = slash == std::string::npos ? "" : destination_.substr(0, slash + 1);
    path_ = fmt::format("{}.{}.parts", above_, destination_.substr(slash + 1));  // npos + 1 is 0
  }

  const std::string& destination() const noexcept { return destination_; }
  const std::string& path() const noexcept { return path_; }
  std::string parent() const {
    return above_.empty() ? "." : above_.size() == 1 ? above_ : above_.substr(0, above_.size() - 1);
  }
  std::string of(const PartName& part) const { return fmt::format("{}/{}", path_, part.folder()); }

  std::vector<PartName> found() const {
    std::vector<PartName> parts;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
      PartName part;
      if (read_part_folder(entry.path().filename().string(), part)) parts.push_back(part);
    }
    std::ranges::sort(parts, {}, [](const PartName& part) { return std::pair(part.of, part.number); });
    return parts;
  }

 private:
  std::string destination_, above_, path_;
};

bool has_shards(const std::string& folder, const PartRecord& record) {
  return std::ranges::all_of(record.shards, [&](const dataset::PackShard& shard) {
    const os::FileFacts facts = os::facts_of(fmt::format("{}/{}", folder, shard.name));
    return facts.is_found() && facts.kind == os::FileKind::regular && facts.bytes == shard.bytes;
  });
}

std::uint64_t hash_listing(const PackSource& source) {
  const dataset::Dataset& data = *source.data;
  const dataset::Facts& facts = data.facts();
  std::uint64_t key = data.size();
  for (const std::string& name : facts.classes) key = mix(key, hash_text(name));
  for (const std::string& name : facts.columns) key = mix(key, hash_text(name));
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    key = mix(mix(key, data.id(i)), source.state.bytes[i]);
    key = mix(mix(key, static_cast<std::uint64_t>(source.state.mtime_ns[i])),
              dataset::label_bits(data.label(i), facts.label_kind));
    for (std::size_t c = 0; c < facts.columns.size(); ++c) key = mix(key, hash_text(data.column_text(c, i)));
  }
  return key;
}

// What both verbs begin with: the source as this run sees it, and the shards that follow from it.
struct Whole {
  Whole(const PackOptions& options, const Say& say) : source(options, say) {
    source.look(say);
    source.name_members();
    for (std::uint64_t i = 0; i < source.data->size(); ++i) loose.push_back({i, PackPlan::kNone});
    starts = source.shard_starts(loose, nullptr);
    listing = hash_listing(source);
  }

  PartRecord record(const PartName& part) const {
    PartRecord record;
    record.part = part;
    record.source = source.address;
    record.samples = source.data->size();
    record.listing = listing;
    record.settings = source.settings;
    record.shard_size = source.options.shard_size;
    record.seeks = source.seeks;
    record.looked_at_ns = source.looked_at_ns;
    std::uint64_t changed = 0;
    for (std::uint64_t i = first(part); i < end(part); ++i)
      changed = mix(changed, static_cast<std::uint64_t>(source.state.changed_ns[i]));
    record.changed = changed;
    return record;
  }

  // The samples of a part: [first, end).
  std::uint64_t first(const PartName& part) const { return sample_of(part.begin(starts.size())); }
  std::uint64_t end(const PartName& part) const { return sample_of(part.end(starts.size())); }
  std::uint64_t sample_of(std::uint64_t shard) const { return shard < starts.size() ? starts[shard] : loose.size(); }

  PackSource source;
  std::vector<PackPlan::Loose> loose;
  std::vector<std::uint64_t> starts;
  std::uint64_t listing = 0;
};

// How a part differs from what these options make, the source apart; empty: it does not.
std::string other_options(const PartRecord& record, const PartRecord& wanted) {
  if (Json::parse_or_null(record.settings) != Json::parse_or_null(wanted.settings))
    return fmt::format("other settings: {}; these are {}", record.settings, wanted.settings);
  if (record.shard_size != wanted.shard_size)
    return fmt::format("a shard size of {} bytes, and this one is {} bytes", record.shard_size, wanted.shard_size);
  if (record.seeks != wanted.seeks) return record.seeks ? "a seek index" : "no seek index";
  return {};
}

// The parts were joined, and nothing changed since: what a run that comes late finds. None: there is no such pack.
std::optional<PackReport> joined_already(const PackOptions& options) {
  if (!os::can_reach(fmt::format("{}/{}", options.destination, dataset::kPackJson))) return std::nullopt;
  PackOptions look = options;
  look.part.reset();
  look.join = look.force = false;
  look.only_compare = true;
  PackReport report = make_pack(look);
  if (!report.idle) return std::nullopt;
  return report;
}

class PartPacking {
 public:
  explicit PartPacking(const PackOptions& options)
      : options_(options),
        part_(*options.part),
        parts_(options.destination),
        folder_(parts_.of(part_)),
        progress_(options.progress) {}

  PackReport run() {
    if (!options_.force && parts_.found().empty()) {
      if (auto joined = joined_already(options_)) {
        joined->part = part_;
        joined->parts_whole = part_.of;
        return std::move(*joined);
      }
    }
    check_destination();
    const Say tell = [this](std::string_view phase, std::uint64_t done, std::uint64_t total) {
      return progress_(phase, done, total, writer_ ? writer_->bytes() : 0);
    };
    whole_ = std::make_unique<Whole>(options_, tell);
    whole_->source.begin_report(parts_.destination(), report_);
    report_.part = part_;
    record_ = whole_->record(part_);
    os::make_folders(folder_);
    take_lock();
    const auto there = read_part(folder_);
    if (there && !options_.force) {
      if (const std::string other = other_options(*there, record_); !other.empty()) {
        throw Error(ErrorKind::usage, cannot(fmt::format("it is there, made with {}", other)),
                    format_text("give the same options, or add {} to make it again", option("force", "True")));
      }
    }
    if (there && there->key() == record_.key() && has_shards(folder_, *there)) {
      record_ = *there;
      report_.idle = true;
    } else {
      make();
    }
    fill_report();
    return std::move(report_);
  }

 private:
  std::string cannot(std::string_view why) const {
    return fmt::format("cannot make part {} of `{}`: {}", part_.text(), parts_.destination(), why);
  }

  // All that can be refused before the source is listed.
  void check_destination() const {
    const std::string& path = parts_.destination();
    if (const os::FileFacts above = os::facts_of(parts_.parent()); !above.is_found())
      throw system_error(above.error_number, "make a pack in", parts_.parent());
    std::error_code error;
    if (os::facts_of(path).is_found() && !(std::filesystem::is_empty(path, error) && !error) && !options_.force) {
      const bool is_pack = os::can_reach(fmt::format("{}/{}", path, dataset::kPackJson));
      throw Error(ErrorKind::usage, cannot(is_pack ? "the pack is there already" : "what has this name is not a pack"),
                  is_pack ? format_text("leave {} out to bring it up to date, or add {} to make it again",
                                        option("part"), option("force", "True"))
                          : Text("choose another name"));
    }
    for (const PartName& other : parts_.found()) {
      if (other.of == part_.of) continue;
      if (options_.force) {
        remove_flat_folder(parts_.of(other));
        continue;
      }
      throw Error(
          ErrorKind::usage, cannot(fmt::format("`{}` has part {}, which overlaps it", parts_.path(), other.text())),
          format_text("make all parts with the same N; or add {} to remove that part", option("force", "True")));
    }
  }

  // Where the file system has no locks, the owner file is what tells two runs apart.
  void take_lock() {
    int error_number = 0;
    lock_ = os::FileLock::try_take(fmt::format("{}/{}", folder_, kPartLock), error_number);
    if (!lock_ && error_number == EWOULDBLOCK)
      throw Error(ErrorKind::unavailable, cannot("another program is making it"), "wait until it has ended");
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    owner_ = fmt::format("{:016x}\n", mix(static_cast<std::uint64_t>(now), reinterpret_cast<std::uintptr_t>(this)));
    os::write_file(fmt::format("{}/{}", folder_, kPartOwner), owner_);
  }

  void require_ownership() {
    looked_for_owner_ = std::chrono::steady_clock::now();
    if (os::read_text(fmt::format("{}/{}", folder_, kPartOwner)) == owner_) return;
    throw Error(ErrorKind::unavailable, cannot("another program began to make it, too"),
                "let one program make each part");
  }

  void make() {
    const std::uint64_t first = whole_->first(part_), end = whole_->end(part_);
    const std::vector<PackPlan::Loose> loose(whole_->loose.begin() + static_cast<std::ptrdiff_t>(first),
                                             whole_->loose.begin() + static_cast<std::ptrdiff_t>(end));
    std::vector<std::uint64_t> starts;
    const std::uint64_t shards = whole_->starts.size();
    for (std::uint64_t s = part_.begin(shards); s < part_.end(shards); ++s) starts.push_back(whole_->starts[s] - first);
    const std::string lack =
        lack_of_room(folder_, whole_->source.expected_bytes(loose) + 64 * kKiB, folder_bytes(folder_));
    if (!lack.empty()) throw Error(ErrorKind::unavailable, cannot(lack), "free some space, or choose another disk");
    (void)os::remove_entry(fmt::format("{}/{}", folder_, kPartJson));
    const auto keep_going = [&] {
      if (std::chrono::steady_clock::now() - looked_for_owner_ >= kLookForOwner) require_ownership();
      return progress_("packing", writer_->cursor(), loose.size(), writer_->bytes());
    };
    progress_.restart();
    try {
      if (read_journal(folder_, record_.key()).empty()) empty_folder();
      ShardsOptions shard_options = whole_->source.shards_options(folder_, record_.key());
      shard_options.first_number = part_.begin(shards);
      writer_ = std::make_unique<ShardsWriter>(shard_options);
      report_.resumed = writer_->cursor();
      if (!loose.empty()) whole_->source.write(loose, nullptr, starts, *writer_, keep_going);
      (void)progress_("packing", loose.size(), loose.size(), writer_->bytes());
      require_ownership();
    } catch (const Error& error) {
      try {
        if (writer_) writer_->checkpoint();
      } catch (const Error&) {
        // The first error is the one to tell.
      }
      throw_resumable(error);
    }
    if (whole_->source.seeks) writer_->spill()->sync();
    record_.rows = writer_->rows().size();
    record_.shards = writer_->shards();
    record_.skipped = writer_->skipped();
    write_part(folder_, record_);
    report_.written_bytes = writer_->bytes();
    report_.added = loose.size();
  }

  void empty_folder() const {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
      const std::string name = entry.path().filename().string();
      if (name != kPartLock && name != kPartOwner) (void)os::remove_entry(entry.path().string());
    }
  }

  void fill_report() {
    report_.count = record_.rows;
    report_.shards = record_.shards.size();
    for (const dataset::PackShard& shard : record_.shards) report_.bytes += shard.bytes;
    report_.skipped = record_.skipped;
    for (const PartName& part : parts_.found()) {
      const auto record = read_part(parts_.of(part));
      if (part.of == part_.of && record && record->listing == record_.listing &&
          other_options(*record, record_).empty())
        ++report_.parts_whole;
    }
    if (record_.shards.empty() && record_.skipped.empty()) {
      report_.notes.push_back(
          fmt::format("this part has no samples: the pack has {} shards for {} parts; a smaller shard size divides it "
                      "further",
                      whole_->starts.size(), part_.of));
    }
    report_.seconds = progress_.seconds();
  }

  const PackOptions& options_;
  const PartName part_;
  PartsFolder parts_;
  std::string folder_, owner_;
  ProgressTeller progress_;
  os::FileLock lock_;
  std::chrono::steady_clock::time_point looked_for_owner_ = std::chrono::steady_clock::now();
  std::unique_ptr<Whole> whole_;
  std::unique_ptr<ShardsWriter> writer_;
  PartRecord record_;
  PackReport report_;
};

class Joining {
 public:
  explicit Joining(const PackOptions& options)
      : options_(options), parts_(options.destination), progress_(options.progress) {}

  PackReport run() {
    if (parts_.found().empty()) {
      if (auto joined = joined_already(options_)) return std::move(*joined);
    }
    find_parts();
    PackFolder folder(options_.destination);
    const Say tell = [this](std::string_view phase, std::uint64_t done, std::uint64_t total) {
      return progress_(phase, done, total, 0);
    };
    whole_ = std::make_unique<Whole>(options_, tell);
    whole_->source.begin_report(parts_.destination(), report_);
    compare();
    join(folder);
    report_.seconds = progress_.seconds();
    return std::move(report_);
  }

 private:
  std::string cannot(std::string_view why) const {
    return fmt::format("cannot join the parts of `{}`: {}", parts_.destination(), why);
  }

  Text make_again(const PartName& part) const {
    return format_text("run the same command with {} in place of {}", option("part", part.text()), option("join"));
  }

  bool is_being_made(const PartName& part) const {
    int error_number = 0;
    (void)os::FileLock::try_take(fmt::format("{}/{}", parts_.of(part), kPartLock), error_number);
    return error_number == EWOULDBLOCK;
  }

  void find_parts() {
    const std::vector<PartName> found = parts_.found();
    if (found.empty()) {
      const bool is_pack = os::can_reach(fmt::format("{}/{}", parts_.destination(), dataset::kPackJson));
      throw Error(ErrorKind::not_found,
                  cannot(fmt::format("there are none in `{}`{}", parts_.path(),
                                     is_pack ? ", and the pack is of other files or options" : "")),
                  is_pack ? format_text("leave {} out to bring the pack up to date; or make the parts again, with {}",
                                        option("join"), option("force", "True"))
                          : format_text("make them first, such as {}", option("part", "1/4")));
    }
    const PartName& one = found.front();
    for (const PartName& other : found) {
      if (other.of == one.of) continue;
      throw Error(
          ErrorKind::usage,
          cannot(fmt::format("`{}` has part {} and part {}, which overlap", parts_.path(), one.text(), other.text())),
          fmt::format("remove the folder `{}` or `{}`", parts_.of(one), parts_.of(other)));
    }
    std::uint64_t missing = 0;
    PartName first_missing;
    for (std::uint64_t number = 1; number <= one.of; ++number) {
      const PartName part{number, one.of};
      auto record = read_part(parts_.of(part));
      if (record && record->part == part) {
        records_.push_back(std::move(*record));
      } else if (missing++ == 0) {
        first_missing = part;
      }
    }
    if (missing == 0) return;
    const bool is_begun = std::ranges::find(found, first_missing) != found.end();
    const std::string_view state = !is_begun                      ? "is missing"
                                   : is_being_made(first_missing) ? "is still being made"
                                                                  : "is not finished";
    throw Error(
        ErrorKind::not_found,
        cannot(fmt::format(
            "part {} {}{}", first_missing.text(), state,
            missing > 1 ? fmt::format(", and {} more {} not whole", missing - 1, missing == 2 ? "is" : "are") : "")),
        make_again(first_missing));
  }

  void compare() const {
    for (const PartRecord& record : records_) {
      const std::string part = fmt::format("part {}", record.part.text());
      const auto refuse = [&](const std::string& why, const Text& hint) {
        throw Error(ErrorKind::usage, cannot(why), hint);
      };
      const Text same = format_text("give {} the options of the parts, or make that part again", option("join"));
      if (const std::string other = other_options(record, whole_->record(record.part)); !other.empty())
        refuse(fmt::format("{} was made with {}", part, other), same);
      if (record.listing != whole_->listing) {
        const std::uint64_t now = whole_->source.data->size();
        refuse(record.samples != now
                   ? fmt::format("{} was made from {} samples of `{}`, and the source has {} samples", part,
                                 format_count(record.samples), record.source, format_count(now))
                   : fmt::format("{} was made from other files than the source has now: `{}` is another folder, or "
                                 "files in it changed since",
                                 part, record.source),
               make_again(record.part));
      }
    }
  }

  // The shards get their second name in the hidden folder; where links cannot be made they move there.
  void bring(const std::string& from_folder, const std::string& to_folder, const PartRecord& record) const {
    for (const dataset::PackShard& shard : record.shards) {
      const std::string from = fmt::format("{}/{}", from_folder, shard.name);
      const std::string to = fmt::format("{}/{}", to_folder, shard.name);
      if (os::facts_of(from).is_found()) {
        (void)os::remove_entry(to);
        if (os::link_entry(from, to) != 0) {
          if (const int error_number = os::rename_entry(from, to); error_number != 0)
            throw system_error(error_number, "move", from);
        }
      }
      const os::FileFacts facts = os::facts_of(to);
      if (facts.is_found() && facts.bytes == shard.bytes) continue;
      throw Error(
          ErrorKind::corrupt,
          cannot(facts.is_found() ? fmt::format("the file `{}` of part {} has {} of {} bytes", shard.name,
                                                record.part.text(), facts.bytes, shard.bytes)
                                  : fmt::format("part {} has lost its file `{}`", record.part.text(), shard.name)),
          make_again(record.part));
    }
  }

  std::vector<JournalRow> rows_of(const PartRecord& record, std::uint64_t first_shard) const {
    std::vector<JournalRow> rows;
    for (JournalRecord& note : read_journal(parts_.of(record.part), record.key()))
      rows.insert(rows.end(), note.rows.begin(), note.rows.end());
    if (rows.size() != record.rows) {
      throw Error(ErrorKind::corrupt,
                  cannot(fmt::format("the journal of part {} is damaged: it has {} of {} samples", record.part.text(),
                                     format_count(rows.size()), format_count(record.rows))),
                  format_text("remove the folder `{}`, then {}", parts_.of(record.part), make_again(record.part)));
    }
    for (JournalRow& row : rows) row.row.shard += static_cast<std::uint32_t>(first_shard);
    return rows;
  }

  void join(PackFolder& folder) {
    refuse_unfinished_rows(folder, options_.force);
    (void)progress_("writing the index", 0, 0, 0);
    folder.make_part();
    const std::string mark = fmt::format("{}/{}", folder.part(), kJoining);
    const std::string key = fmt::format("{:016x}\n", records_.front().key());
    if (!os::exists(mark) || os::read_text(mark) != key) {
      folder.empty_part();
      os::write_file(mark, key);
    }
    dataset::PackManifest pack = whole_->source.manifest();
    std::vector<JournalRow> rows;
    std::vector<std::string> folders;
    bool same_times = true;
    for (const PartRecord& record : records_) {
      folders.push_back(parts_.of(record.part));
      const std::vector<JournalRow> some = rows_of(record, pack.shards.size());
      bring(folders.back(), folder.part(), record);
      rows.insert(rows.end(), some.begin(), some.end());
      pack.shards.insert(pack.shards.end(), record.shards.begin(), record.shards.end());
      pack.skipped.insert(pack.skipped.end(), record.skipped.begin(), record.skipped.end());
      same_times = same_times && record.changed == whole_->record(record.part).changed;
      whole_->source.looked_at_ns = std::min(whole_->source.looked_at_ns, record.looked_at_ns);
    }
    if (rows.empty())
      throw Error(ErrorKind::corrupt, cannot("no sample could be packed"), "every one of them was skipped");
    sort_rows(rows);
    if (whole_->source.seeks) {
      report_.seek_files = write_pack_seek(folder.part(), folders, rows, KeptPlaces(nullptr, false, {}), pack);
      report_.seek_bytes = pack.files.back().bytes;
    }
    std::vector<std::uint64_t> positions;
    positions.reserve(rows.size());
    for (const JournalRow& row : rows) positions.push_back(row.position);
    const std::uint64_t content = content_key(rows);
    write_index(folder.part(), *whole_->source.data, std::move(rows), pack);
    take_name(folder, pack);
    // The change times are those that the parts saw: without them the next run compares the files by content.
    if (same_times) {
      if (std::string note = whole_->source.remember_times(parts_.destination(), content, positions); !note.empty())
        report_.notes.push_back(std::move(note));
    }
    for (const std::string& one : folders) remove_flat_folder(one);
    (void)os::remove_empty_folder(parts_.path());
    report_.count = pack.count;
    (report_.idle ? report_.kept : report_.added) = pack.count;
    report_.shards = pack.shards.size();
    report_.skipped = pack.skipped;
    if (pack.kind == dataset::PackKind::encoded) report_.content = pack.content;
    report_.bytes = folder_bytes(parts_.destination());
  }

  // A join that was killed behind its last step finds the pack that it made: then nothing is left but to tidy up.
  void take_name(PackFolder& folder, const dataset::PackManifest& pack) {
    const std::string& path = parts_.destination();
    const std::string json = fmt::format("{}/{}", path, dataset::kPackJson);
    std::error_code error;
    if (os::can_reach(json)) {
      report_.was_there = true;
      if (os::read_text(json, std::uint64_t{1} << 32) == dataset::to_json(pack)) {
        remove_flat_folder(folder.part());
        report_.idle = true;
        return;
      }
    }
    if (os::facts_of(path).is_found() && !(std::filesystem::is_empty(path, error) && !error) &&
        !(options_.force && report_.was_there)) {
      throw Error(
          ErrorKind::usage,
          cannot(report_.was_there ? "another pack has this name" : "what has this name is not a pack"),
          report_.was_there ? format_text("add {} to replace it", option("force", "True")) : Text("move it away"));
    }
    folder.commit(pack);
  }

  const PackOptions& options_;
  PartsFolder parts_;
  ProgressTeller progress_;
  std::unique_ptr<Whole> whole_;
  std::vector<PartRecord> records_;
  PackReport report_;
};

void refuse_together(const PackOptions& options) {
  const std::string_view word = options.join ? "join" : "part";
  const auto refuse = [&](std::string_view other, std::string_view value) {
    throw Error(ErrorKind::usage, format_text("{} and {} do not go together", option(word), option(other, value)),
                "leave one of them out")
        .about(word);
  };
  if (options.join && options.part) refuse("part", options.part->text());
  if (options.dry_run) refuse("dry_run", "True");
  if (storage::store_of(options.destination) != nullptr) {
    throw Error(ErrorKind::usage,
                format_text("cannot use {} with `{}`: parts lie in a folder that all machines share", option(word),
                            options.destination),
                "name a folder on a shared disk; copy the pack to the store when it is whole")
        .about(word);
  }
}

}  // namespace

PackReport make_pack_part(const PackOptions& options) {
  refuse_together(options);
  return PartPacking(options).run();
}

PackReport join_pack(const PackOptions& options) {
  refuse_together(options);
  return Joining(options).run();
}

}  // namespace stoker::prepare
