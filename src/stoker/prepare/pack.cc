// The order of things:
//   1. lock the destination, open the source, look at its files;
//   2. plan against the pack that is there (plan.h);
//   3. write the loose samples into new shards of the hidden folder, noting in the journal what is on the disk;
//   4. link the shards that stay; write index, names, columns and, last, pack.json;
//   5. the hidden folder takes the destination's name.
// A kill before 5 leaves the destination as it was, and the next run with the same plan goes on behind the last note.
#include "stoker/prepare/pack.h"

#include <algorithm>
#include <chrono>
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
#include "stoker/base/version.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/scan.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/os/file.h"
#include "stoker/os/file_facts.h"
#include "stoker/os/process.h"
#include "stoker/prepare/compare.h"
#include "stoker/prepare/finish.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/pack_plan.h"
#include "stoker/prepare/pack_upload.h"
#include "stoker/prepare/payloads.h"
#include "stoker/prepare/seek_record.h"
#include "stoker/prepare/shards_writer.h"
#include "stoker/prepare/source_times.h"
#include "stoker/prepare/tar_names.h"
#include "stoker/storage/backend.h"

namespace stoker::prepare {
namespace {

using dataset::DatasetPtr;
using dataset::Packed;
using dataset::PackKind;

// Why a sample was left out, as pack.json keeps it: a file names options by their own names.
std::string in_pack(const Text& fault) {
  return fault.in_python();
}

// The folder of a pattern is made absolute, the pattern itself stays.
std::string absolute(const std::string& address) {
  if (const std::string whole = dataset::real_path_of(address); !whole.empty()) return whole;
  const std::size_t slash = address.rfind('/');
  const std::string folder =
      dataset::real_path_of(slash == std::string::npos ? "." : address.substr(0, std::max<std::size_t>(slash, 1)));
  return folder.empty() ? address : fmt::format("{}/{}", folder == "/" ? "" : folder, address.substr(slash + 1));
}

std::int64_t system_now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

class Packing {
 public:
  explicit Packing(const PackOptions& options)
      : options_(options), folder_(options.destination), progress_(options.progress) {}

  PackReport run() {
    open_source();
    content_ = decide_content(source_, options_);
    settings_ = content_.settings(options_);
    seeks_ = options_.seek_index && content_.kind == PackKind::encoded && codec::can_seek() && has_jpeg(*source_);
    open_base();
    looked_at_ns_ = options_.now_ns ? options_.now_ns() : system_now_ns();
    state_ =
        look_at_source(*source_, [&](std::uint64_t seen) { return say("looking at files", seen, source_->size()); });
    std::vector<std::uint64_t> in_base;
    if (base_) {
      in_base = find_in(*base_, *source_);
      if (!options_.trust_times) compare_doubtful(in_base);
    }
    plan_ = make_plan(*source_, state_, base_.get(), in_base, content_.kind, options_.shard_size,
                      hash_text(seeks_ ? settings_ + "seek" : settings_));
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
    if (content_.kind == PackKind::encoded) names_.emplace(*source_);
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
    const std::vector<std::int64_t> times =
        load_times(times_path(options_.cache_dir, folder_.destination()), content_key(*base_), base_->size());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> doubtful;
    for (std::uint64_t i = 0; i < in_base.size(); ++i) {
      const std::uint64_t sample = in_base[i];
      if (sample == PackPlan::kNone) continue;
      const dataset::PackRow row = base_->row(sample);
      if (row.source_bytes != state_.bytes[i] || row.source_mtime_ns != state_.mtime_ns[i]) continue;
      if (!state_.has_version.empty() && state_.has_version[i]) continue;  // the same version is the same content
      const std::int64_t known = times.empty() ? kUnknownTime : times[sample];
      if (known == kUnknownTime || known != state_.changed_ns[i]) doubtful.emplace_back(i, sample);
    }
    report_.compared = doubtful.size();
    const auto differing =
        find_differing(source_, base_, content_, doubtful, options_,
                       [&](std::uint64_t done, std::uint64_t total) { return say("comparing files", done, total); });
    if (differing.empty()) return;
    state_.differs.resize(source_->size());
    for (const std::uint64_t position : differing) state_.differs[position] = true;
  }

  // `positions`: of the pack's samples, in their order. A file that changed just before it was looked at may change
  // again without its time showing it: that one is compared the next time.
  void remember_times(std::uint64_t key, std::span<const std::uint64_t> positions) {
    const std::string path = times_path(options_.cache_dir, folder_.destination());
    if (path.empty() || options_.trust_times) return;  // what is only trusted was not seen
    std::vector<std::int64_t> times;
    times.reserve(positions.size());
    for (const std::uint64_t position : positions) {
      const std::int64_t changed = state_.changed_ns[position];
      times.push_back(changed < looked_at_ns_ - dataset::kRacyNs ? changed : kUnknownTime);
    }
    try {
      save_times(path, key, times);
    } catch (const Error& error) {
      report_.notes.push_back(fmt::format(
          "the next run compares all files by content, for their times are not saved: {}", error.message()));
    }
  }

  void open_source() {
    dataset::OpenOptions opening;
    opening.cache_dir = options_.cache_dir;
    opening.label = options_.label;
    options_.narrowing.put_into(opening);
    opening.skip_losses = options_.on_error == loader::OnError::skip;
    opening.progress = [&](std::uint64_t seen) { return say("scanning", seen, 0); };
    source_ = dataset::open(options_.source, opening);
    if (absolute(options_.source) == absolute(folder_.destination()))
      throw Error(ErrorKind::usage, fmt::format("cannot pack `{}` into itself", options_.source));
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
    if (!options_.force && !source_->facts().losses.empty()) {
      refuse(
          fmt::format("a part of its source is lost: {}", source_->facts().losses.front().message()),
          format_text("repair the source; or add {} to rebuild the pack without that part", option("force", "True")));
    }
    const dataset::PackManifest& pack = base->manifest();
    const bool same_source = pack.source == absolute(options_.source);
    const bool same_settings = Json::parse_or_null(pack.settings) == Json::parse_or_null(settings_);
    if (!options_.force) {
      if (!same_source) {
        refuse(pack.source.empty() ? "its pack.json names no source: a program wrote it, or pack.json was made again"
                                   : fmt::format("it was made from another source, `{}`", pack.source),
               format_text("choose another name, or add {}", option("force", "True")));
      }
      if (!same_settings) {
        refuse(fmt::format("it was made with other settings: {}; these are {}", pack.settings, settings_),
               format_text("choose another name, or add {} to rebuild it", option("force", "True")));
      }
    }
    const bool same_rows =
        content_.kind == PackKind::encoded || (pack.dtype == content_.dtype && pack.shape == content_.shape);
    if (same_settings && same_rows) base_ = std::move(base);
    if (same_settings && !same_rows && !options_.force) {
      refuse("the samples now have another shape than those in it",
             format_text("add {} to rebuild it", option("force", "True")));
    }
  }

  void fill_report() {
    report_.source = options_.source;
    report_.destination = folder_.destination();
    report_.source_kind = source_->facts().kind;
    report_.classes = source_->facts().classes;
    report_.kind = content_.kind;
    report_.added = plan_.added, report_.changed = plan_.changed, report_.removed = plan_.removed;
    report_.kept = plan_.unchanged, report_.relabelled = plan_.relabelled;
    report_.source_bytes = source_->facts().total_bytes;
    report_.dry_run = options_.dry_run;
    report_.notes = source_->facts().notes;
    report_.content = content_.kind == PackKind::raw
                          ? fmt::format("{} [{}]", stoker::name(content_.dtype), fmt::join(content_.shape, ", "))
                          : "as in the source";
  }

  std::uint64_t expected_bytes() const {
    std::uint64_t bytes = 0;
    for (const PackPlan::Loose& loose : plan_.loose) {
      bytes += content_.kind == PackKind::raw
                   ? content_.row_bytes()
                   : 3 * dataset::kTarBlock + dataset::tar_padded(state_.bytes[loose.position]) +
                         (seeks_ ? state_.bytes[loose.position] / kSeekShare : 0);
    }
    return bytes + 160 * source_->size() + 64 * kKiB;
  }

  void require_room() {
    report_.bytes = expected_bytes();
    for (const std::uint32_t s : plan_.kept_shards) report_.bytes += base_->manifest().shards[s].bytes;
    const std::string& path = folder_.destination();
    const auto disk = os::space_of(folder_.parent());
    if (!disk || disk->total_bytes == 0) return;  // the file system does not say
    const std::uint64_t room = disk->free_bytes;
    std::uint64_t there = 0;  // what an interrupted run has written already
    if (folder_.has_part()) there = folder_bytes(folder_.part());
    const std::uint64_t needed = expected_bytes();
    if (needed <= room + there) return;
    const std::string text = fmt::format("cannot make the pack `{}`: it needs {} and its disk has {} left", path,
                                         format_bytes(needed), format_bytes(room + there));
    if (options_.dry_run) {
      report_.notes.push_back(text);
      return;
    }
    throw Error(ErrorKind::unavailable, text, "free some space, or choose another disk");
  }

  ShardsOptions shards_options() const {
    ShardsOptions shards;
    shards.folder = folder_.part();
    shards.plan = plan_.key;
    shards.kind = content_.kind;
    shards.dtype = content_.dtype;
    shards.shape = content_.shape;
    shards.shard_bytes = options_.shard_size;
    shards.first_shard = plan_.kept_shards.size();
    shards.first_number = plan_.next_number;
    shards.sync_bytes = options_.sync_bytes;
    shards.seek = seeks_;
    return shards;
  }

  // One payload with everything that the index and the tar say of it.
  void append(const Payload& payload, ShardsWriter& writer) {
    const std::uint64_t i = payload.position;
    const dataset::Facts& facts = source_->facts();
    NewSample sample;
    sample.position = i;
    sample.payload = payload.bytes;
    sample.xxh3 = payload.xxh3;
    sample.seek = payload.seek;
    sample.row.id = static_cast<std::int64_t>(source_->id(i));
    const dataset::Label label = source_->label(i);
    sample.row.label = dataset::label_bits(label, facts.label_kind);
    sample.row.height = payload.height, sample.row.width = payload.width, sample.row.channels = payload.channels;
    sample.row.frames = payload.frames;
    sample.row.source_bytes = state_.bytes[i];
    sample.row.source_mtime_ns = state_.mtime_ns[i];
    std::string member, cls, json;
    if (content_.kind == PackKind::encoded) {
      member = names_->member(i, payload.extension);
      cls = names_->cls(i);
      json = names_->json(i);
      sample.member = member;
      sample.cls = cls;
      sample.json = json;
    }
    writer.append(sample);
  }

  void write() {
    progress_.restart();
    if (!options_.force && os::can_reach(fmt::format("{}/{}", folder_.part(), kShape))) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot make the pack `{}`: `{}` holds rows that a program wrote and did not finish",
                              folder_.destination(), folder_.part()),
                  format_text("finish that pack first, choose another name, or add {} to throw those rows away",
                              option("force", "True")));
    }
    const std::uint64_t total = plan_.loose.size();
    const auto keep_going = [&] { return say("packing", writer_->cursor(), total); };
    try {
      folder_.make_part();
      if (read_journal(folder_.part(), plan_.key).empty()) folder_.empty_part();
      writer_ = std::make_unique<ShardsWriter>(shards_options());
      report_.resumed = writer_->cursor();
      Payloads payloads(source_, base_, content_, plan_.loose, writer_->cursor(), options_);
      Payload payload;
      while (payloads.next(payload, keep_going)) {
        if (payload.fault.empty()) {
          append(payload, *writer_);
        } else {
          if (options_.on_error == loader::OnError::raise) {
            throw Error(ErrorKind::corrupt,
                        format_text("cannot pack `{}`: {}", source_->name(payload.position), payload.fault),
                        skip_hint());
          }
          writer_->skip(source_->name(payload.position), in_pack(payload.fault));
        }
        if (writer_->cursor() % 64 == 0 && !keep_going()) throw Error(ErrorKind::unavailable, "interrupted");
      }
      if (payloads.interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
      writer_->finish();
      finish();
    } catch (const Error& error) {
      try {
        if (writer_) writer_->checkpoint();
      } catch (const Error&) {
        // The first error is the one to tell.
      }
      throw Error(error.kind(), error.text(),
                  format_text("{}{}run the same command again: it goes on where it stopped", error.hint_text(),
                              error.hint().empty() ? "" : "; then "))
          .about(error.option());
    }
  }

  void finish() {
    (void)say("writing the index", plan_.loose.size(), plan_.loose.size());
    dataset::PackManifest pack;
    pack.stoker_version = kVersion;
    pack.kind = content_.kind;
    pack.dtype = content_.dtype;
    pack.shape = content_.shape;
    pack.content = content_.kind == PackKind::raw ? name(content_.samples) : "";
    pack.rate_hz = content_.rate_hz;
    pack.source = absolute(options_.source);
    pack.settings = settings_;
    for (const dataset::Loss& loss : source_->facts().losses) pack.skipped.push_back({loss.name, loss.message()});
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
        row.row.label = dataset::label_bits(source_->label(position), source_->facts().label_kind);
        rows.push_back(row);
      }
    }
    pack.shards.insert(pack.shards.end(), writer_->shards().begin(), writer_->shards().end());
    if (rows.empty()) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot make the pack `{}`: none of the {} samples can be packed; the first: `{}`: {}",
                              folder_.destination(), format_count(source_->size()), pack.skipped.front().name,
                              pack.skipped.front().cause));
    }
    sort_rows(rows);
    if (seeks_) add_seek(rows, pack);
    std::vector<std::uint64_t> positions;
    for (const JournalRow& row : rows) positions.push_back(row.position);
    const std::uint64_t key = content_key(rows);
    write_index(folder_.part(), *source_, std::move(rows), pack);
    folder_.commit(pack);
    remember_times(key, positions);
    report_.skipped = pack.skipped;
    report_.count = pack.count;
    report_.shards = pack.shards.size();
    report_.written_bytes = writer_->bytes();
    if (content_.kind == PackKind::encoded) report_.content = pack.content;
    measure_pack();
    report_.seconds = progress_.seconds();
  }

  // The pack that is there was made without noting places, or by a version whose places are not used any more.
  bool lacks_seek() const {
    if (!seeks_) return false;
    return base_->manifest().file(dataset::kPackSeek) == nullptr ||
           loader::SeekFile::is_outdated(fmt::format("{}/{}", folder_.destination(), dataset::kPackSeek));
  }

  void add_seek(std::span<const JournalRow> rows, dataset::PackManifest& pack) {
    const KeptPlaces kept(base_, true, plan_.kept);
    const auto keep_going = [&](std::uint64_t done, std::uint64_t total) { return say("noting places", done, total); };
    if (!kept.complete(*writer_->spill(), keep_going)) throw Error(ErrorKind::unavailable, "interrupted");
    report_.seek_files = write_pack_seek(folder_.part(), rows, kept, pack);
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
        Payloads payloads(source_, base_, content_, some, 0, lenient);
        Payload payload;
        while (payloads.next(payload, [&] { return say("measuring", writer.cursor(), count); })) {
          if (payload.fault.empty()) {
            append(payload, writer);
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
    report_.count = source_->size();
    report_.shards = plan_.kept_shards.size() + report_.bytes / options_.shard_size + 1;
  }

  const PackOptions& options_;
  PackFolder folder_;
  ProgressTeller progress_;
  DatasetPtr source_;
  std::shared_ptr<const Packed> base_;
  Content content_;
  std::string settings_;
  bool seeks_ = false;  // places in JPEG files are noted
  PackPlan plan_;
  SourceState state_;
  std::int64_t looked_at_ns_ = 0;
  std::optional<TarNames> names_;  // encoded
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
  if (storage::store_of(options.destination) != nullptr) return make_pack_in_store(options);
  return Packing(options).run();
}

}  // namespace stoker::prepare
