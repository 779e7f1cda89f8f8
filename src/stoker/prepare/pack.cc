// The order of things:
//   1. lock the destination, open the source, look at its files;
//   2. plan against the pack that is there (plan.h);
//   3. write the loose samples into new shards of the hidden folder, noting in the journal what is on the disk;
//   4. link the shards that stay; write index, names, columns and, last, pack.json;
//   5. the hidden folder takes the destination's name.
// A kill before 5 leaves the destination as it was, and the next run with the same plan goes on behind the last note.
#include "stoker/prepare/pack.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/prepare/compare.h"
#include "stoker/prepare/finish.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/pack_parts.h"
#include "stoker/prepare/pack_plan.h"
#include "stoker/prepare/pack_source.h"
#include "stoker/prepare/pack_upload.h"
#include "stoker/prepare/payloads.h"
#include "stoker/prepare/seek_record.h"
#include "stoker/prepare/shards_writer.h"
#include "stoker/prepare/source_times.h"
#include "stoker/storage/backend.h"

namespace stoker::prepare {
namespace {

using dataset::Packed;
using dataset::PackKind;

class Packing {
 public:
  explicit Packing(const PackOptions& options)
      : options_(options), folder_(options.destination), progress_(options.progress) {}

  PackReport run() {
    const Say tell = [this](std::string_view phase, std::uint64_t done, std::uint64_t total) {
      return say(phase, done, total);
    };
    source_.emplace(options_, tell);
    open_base();
    source_->look(tell);
    std::vector<std::uint64_t> in_base;
    if (base_) {
      in_base = find_in(*base_, *source_->data);
      if (!options_.trust_times) compare_doubtful(in_base);
    }
    const std::string& settings = source_->settings;
    plan_ = make_plan(*source_->data, source_->state, base_.get(), in_base, source_->content.kind, options_.shard_size,
                      mix(hash_text(source_->seeks ? settings + "seek" : settings), options_.shard_size));
    fill_report();
    if (plan_.is_idle() && base_ && !options_.dry_run && !lacks_seek()) {
      report_.idle = true;
      if (report_.compared > 0) remember_times(content_key(*base_), in_base);  // sample i is that of position i
      remove_flat_folder(folder_.part());  // of a run that was killed with its work done
      report_.count = base_->size();
      report_.shards = base_->manifest().shards.size();
      measure_pack();
      report_.seconds = progress_.seconds();
      return std::move(report_);
    }
    if (options_.only_compare) return std::move(report_);
    source_->name_members();
    require_room();
    if (options_.dry_run) {
      dry_run();
      return std::move(report_);
    }
    write();
    return std::move(report_);
  }

 private:
  bool say(std::string_view phase, std::uint64_t done, std::uint64_t total) {
    return progress_(phase, done, total, writer_ ? writer_->bytes() : 0);
  }

  // Files with the size and the modification time that they had may have another content all the same.
  void compare_doubtful(const std::vector<std::uint64_t>& in_base) {
    SourceState& state = source_->state;
    const std::vector<std::int64_t> times =
        load_times(times_path(options_.cache_dir, folder_.destination()), content_key(*base_), base_->size());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> doubtful;
    for (std::uint64_t i = 0; i < in_base.size(); ++i) {
      const std::uint64_t sample = in_base[i];
      if (sample == PackPlan::kNone) continue;
      const dataset::PackRow row = base_->row(sample);
      if (row.source_bytes != state.bytes[i] || row.source_mtime_ns != state.mtime_ns[i]) continue;
      if (!state.has_version.empty() && state.has_version[i]) continue;  // the same version is the same content
      const std::int64_t known = times.empty() ? kUnknownTime : times[sample];
      if (known == kUnknownTime || known != state.changed_ns[i]) doubtful.emplace_back(i, sample);
    }
    report_.compared = doubtful.size();
    const auto differing =
        find_differing(source_->data, base_, source_->content, doubtful, options_,
                       [&](std::uint64_t done, std::uint64_t total) { return say("comparing files", done, total); });
    if (differing.empty()) return;
    state.differs.resize(source_->data->size());
    for (const std::uint64_t position : differing) state.differs[position] = true;
  }

  void remember_times(std::uint64_t key, std::span<const std::uint64_t> positions) {
    if (std::string note = source_->remember_times(folder_.destination(), key, positions); !note.empty())
      report_.notes.push_back(std::move(note));
  }

  // The pack that is there, if it may be brought up to date.
  void open_base() {
    const std::string& path = folder_.destination();
    const os::FileFacts facts = os::facts_of(path);
    if (!facts.is_found()) return;
    const auto refuse = [&](std::string_view why, const Text& hint) {
      throw Error(ErrorKind::usage, fmt::format("cannot write the pack `{}`: {}", path, why), hint);
    };
    if (facts.kind != os::FileKind::folder) refuse("a file has this name", "choose another name");
    if (!os::can_reach(fmt::format("{}/{}", path, dataset::kPackJson))) {
      if (std::error_code error; std::filesystem::is_empty(path, error) && !error) return;
      refuse("a folder that is not a pack has this name", "choose another name");
    }
    report_.was_there = true;
    std::shared_ptr<const Packed> base;
    try {
      base = dataset::open_packed(path);
    } catch (const Error& error) {
      if (options_.force && error.kind() != ErrorKind::unsupported) return;
      throw Error(error.kind(), error.text(),
                  error.kind() == ErrorKind::unsupported ? error.hint_text()
                                                         : format_text("{} rebuilds it", option("force", "True")));
    }
    // What cannot be listed now would be taken out of the pack.
    if (!options_.force && !source_->data->facts().losses.empty()) {
      refuse(
          fmt::format("a part of its source is lost: {}", source_->data->facts().losses.front().message()),
          format_text("repair the source; or add {} to rebuild the pack without that part", option("force", "True")));
    }
    const dataset::PackManifest& pack = base->manifest();
    const Content& content = source_->content;
    const bool same_source = pack.source == source_->address;
    const bool same_settings = Json::parse_or_null(pack.settings) == Json::parse_or_null(source_->settings);
    if (!options_.force) {
      if (!same_source) {
        refuse(pack.source.empty() ? "its pack.json names no source: a program wrote it, or pack.json was made again"
                                   : fmt::format("it was made from another source, `{}`", pack.source),
               format_text("choose another name, or add {}", option("force", "True")));
      }
      if (!same_settings) {
        refuse(fmt::format("it was made with other settings: {}; these are {}", pack.settings, source_->settings),
               format_text("choose another name, or add {} to rebuild it", option("force", "True")));
      }
    }
    const bool same_rows =
        content.kind == PackKind::encoded || (pack.dtype == content.dtype && pack.shape == content.shape);
    if (same_settings && same_rows) base_ = std::move(base);
    if (same_settings && !same_rows && !options_.force) {
      refuse("the samples now have another shape than those in it",
             format_text("add {} to rebuild it", option("force", "True")));
    }
  }

  void fill_report() {
    source_->begin_report(folder_.destination(), report_);
    report_.added = plan_.added, report_.changed = plan_.changed, report_.removed = plan_.removed;
    report_.kept = plan_.unchanged, report_.relabelled = plan_.relabelled;
  }

  void require_room() {
    const std::uint64_t needed = source_->expected_bytes(plan_.loose) + 160 * source_->data->size() + 64 * kKiB;
    report_.bytes = needed;
    for (const std::uint32_t s : plan_.kept_shards) report_.bytes += base_->manifest().shards[s].bytes;
    const std::string lack =
        lack_of_room(folder_.parent(), needed, folder_.has_part() ? folder_bytes(folder_.part()) : 0);
    if (lack.empty()) return;
    const std::string text = fmt::format("cannot make the pack `{}`: {}", folder_.destination(), lack);
    if (options_.dry_run) {
      report_.notes.push_back(text);
      return;
    }
    throw Error(ErrorKind::unavailable, text, "free some space, or choose another disk");
  }

  ShardsOptions shards_options() const {
    ShardsOptions shards = source_->shards_options(folder_.part(), plan_.key);
    shards.first_shard = plan_.kept_shards.size();
    shards.first_number = plan_.next_number;
    return shards;
  }

  void write() {
    progress_.restart();
    refuse_unfinished_rows(folder_, options_.force);
    const std::uint64_t total = plan_.loose.size();
    const auto keep_going = [&] { return say("packing", writer_->cursor(), total); };
    try {
      folder_.make_part();
      if (read_journal(folder_.part(), plan_.key).empty()) folder_.empty_part();
      writer_ = std::make_unique<ShardsWriter>(shards_options());
      report_.resumed = writer_->cursor();
      source_->write(plan_.loose, base_, source_->shard_starts(plan_.loose, base_.get()), *writer_, keep_going);
      finish();
    } catch (const Error& error) {
      try {
        if (writer_) writer_->checkpoint();
      } catch (const Error&) {
        // The first error is the one to tell.
      }
      throw_resumable(error);
    }
  }

  void finish() {
    (void)say("writing the index", plan_.loose.size(), plan_.loose.size());
    dataset::PackManifest pack = source_->manifest();
    const std::vector<dataset::PackSkipped>& skipped = writer_->skipped();
    pack.skipped.insert(pack.skipped.end(), skipped.begin(), skipped.end());
    std::vector<JournalRow> rows = writer_->rows();
    if (base_) {
      std::map<std::uint32_t, std::uint32_t> renumbered;
      for (const std::uint32_t s : plan_.kept_shards) {
        renumbered[s] = static_cast<std::uint32_t>(pack.shards.size());
        pack.shards.push_back(base_->manifest().shards[s]);
        folder_.take_over(pack.shards.back().name);
      }
      for (const auto& [position, sample] : plan_.kept) {
        JournalRow row{position, base_->row(sample)};
        row.row.shard = renumbered[row.row.shard];
        row.row.label = dataset::label_bits(source_->data->label(position), source_->data->facts().label_kind);
        rows.push_back(row);
      }
    }
    pack.shards.insert(pack.shards.end(), writer_->shards().begin(), writer_->shards().end());
    if (rows.empty()) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot make the pack `{}`: none of the {} samples can be packed; the first: `{}`: {}",
                              folder_.destination(), format_count(source_->data->size()), pack.skipped.front().name,
                              pack.skipped.front().cause));
    }
    sort_rows(rows);
    if (source_->seeks) add_seek(rows, pack);
    std::vector<std::uint64_t> positions;
    positions.reserve(rows.size());
    for (const JournalRow& row : rows) positions.push_back(row.position);
    const std::uint64_t key = content_key(rows);
    write_index(folder_.part(), *source_->data, std::move(rows), pack);
    folder_.commit(pack);
    remember_times(key, positions);
    report_.skipped = pack.skipped;
    report_.count = pack.count;
    report_.shards = pack.shards.size();
    report_.written_bytes = writer_->bytes();
    if (source_->content.kind == PackKind::encoded) report_.content = pack.content;
    measure_pack();
    report_.seconds = progress_.seconds();
  }

  // The pack that is there was made without noting places, or by a version whose places are not used any more.
  bool lacks_seek() const {
    if (!source_->seeks) return false;
    return base_->manifest().file(dataset::kPackSeek) == nullptr ||
           loader::SeekFile::is_outdated(fmt::format("{}/{}", folder_.destination(), dataset::kPackSeek));
  }

  void add_seek(std::span<const JournalRow> rows, dataset::PackManifest& pack) {
    const KeptPlaces kept(base_, true, plan_.kept);
    const auto keep_going = [&](std::uint64_t done, std::uint64_t total) { return say("noting places", done, total); };
    if (!kept.complete(*writer_->spill(), keep_going)) throw Error(ErrorKind::unavailable, "interrupted");
    report_.seek_files = write_pack_seek(folder_.part(), {folder_.part()}, rows, kept, pack);
    report_.seek_bytes = pack.files.back().bytes;
  }

  void measure_pack() { report_.bytes = folder_bytes(folder_.destination()); }

  // Packs a few samples for real, into a folder that is removed again, and draws the line from there.
  void dry_run() {
    const std::string scratch = folder_.part() + ".dry";
    remove_flat_folder(scratch);
    double seconds = 0;
    std::uint64_t measured = 0;
    for (const std::uint64_t wanted : {64, 1024, 16384}) {
      const std::uint64_t total = plan_.loose.size();
      const std::uint64_t count = std::min<std::uint64_t>(wanted, total);
      if (count == 0) break;
      std::vector<PackPlan::Loose> some;
      for (std::uint64_t i = 0; i < count; ++i) some.push_back(plan_.loose[i * total / count]);
      os::make_folders(scratch);
      ShardsOptions shards = shards_options();
      shards.folder = scratch;
      progress_.restart();
      {
        ShardsWriter writer(shards);
        PackOptions lenient = options_;
        lenient.on_error = loader::OnError::skip;
        Payloads payloads(source_->data, base_, source_->content, some, 0, lenient);
        Payload payload;
        while (payloads.next(payload, [&] { return say("measuring", writer.cursor(), count); })) {
          if (payload.fault.empty()) {
            source_->append(payload, std::nullopt, writer);
          } else {
            writer.skip("", in_pack(payload.fault));
          }
        }
        if (payloads.interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
        writer.finish();
      }
      seconds = progress_.seconds();
      measured = count;
      remove_flat_folder(scratch);
      if (count == total || seconds > 0.5) break;
    }
    report_.measured_samples = measured;
    if (measured > 0)
      report_.seconds = seconds * static_cast<double>(plan_.loose.size()) / static_cast<double>(measured);
    report_.count = source_->data->size();
    report_.shards = plan_.kept_shards.size() + report_.bytes / options_.shard_size + 1;
  }

  const PackOptions& options_;
  PackFolder folder_;
  ProgressTeller progress_;
  std::optional<PackSource> source_;
  std::shared_ptr<const Packed> base_;
  PackPlan plan_;
  std::unique_ptr<ShardsWriter> writer_;
  PackReport report_;
};

}  // namespace

PackReport make_pack(const PackOptions& options) {
  if (options.on_error != loader::OnError::raise && options.on_error != loader::OnError::skip) {
    throw Error(ErrorKind::usage,
                format_text("cannot pack with {}: a bad sample is an error (raise) or left out (skip)",
                            option("on_error", loader::name(options.on_error))))
        .about("on_error");
  }
  if (options.shard_size < kMiB) {
    throw Error(ErrorKind::usage, format_text("{} must be at least 1MiB", option("shard_size"))).about("shard_size");
  }
  if (options.join) return join_pack(options);
  if (options.part) return make_pack_part(options);
  if (storage::store_of(options.destination) != nullptr) return make_pack_in_store(options);
  return Packing(options).run();
}

}  // namespace stoker::prepare
