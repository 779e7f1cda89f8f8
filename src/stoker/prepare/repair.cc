// The damaged samples come from the source, if it still has the very file that was packed; the others in their shards
// from the pack itself. Names, labels, ids and order are those of the pack.
#include "stoker/prepare/repair.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/prepare/compare.h"
#include "stoker/prepare/finish.h"
#include "stoker/prepare/pack_folder.h"
#include "stoker/prepare/payloads.h"
#include "stoker/prepare/seek_record.h"
#include "stoker/prepare/shards_writer.h"
#include "stoker/prepare/tar_names.h"

namespace stoker::prepare {

using dataset::Packed;
using dataset::PackKind;

PackOptions options_of(const dataset::PackManifest& pack) {
  const Json json = Json::parse_or_null(pack.settings);
  PackOptions options;
  options.source = pack.source;
  options.kind = pack.kind;
  options.seek_index = pack.file(dataset::kPackSeek) != nullptr;
  if (!json.is_object()) return options;
  const auto text = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  options.label = text("label");
  options.narrowing = dataset::Narrowing::from_json(json["narrowing"]);
  if (pack.kind == PackKind::raw) {
    options.dtype = pack.dtype;
    if (json.contains("samples") && json["samples"].is_natural())
      options.samples = json["samples"].get<std::uint64_t>();
    options.size = text("size");
    if (const std::string ops = text("transform"); !ops.empty()) options.transform = transform::parse_ops(ops);
    if (const std::string color = text("color"); !color.empty()) options.color = loader::parse_color(color);
  }
  return options;
}

namespace {

class Repair {
 public:
  Repair(const CheckOptions& options, std::shared_ptr<const Packed> pack, const std::set<std::uint32_t>& shards,
         bool seek_is_broken, std::vector<Damage>& damaged)
      : options_(options),
        pack_(std::move(pack)),
        shards_(shards),
        seek_is_broken_(seek_is_broken),
        damaged_(damaged),
        folder_(options.address) {}

  void run() {
    packing_ = options_of(pack_->manifest());
    content_.kind = pack_->manifest().kind;
    if (!options_.source.empty()) packing_.source = options_.source;
    if (!damaged_.empty()) open_source();
    choose();
    write();
  }

 private:
  // The source seen through the pack: sample i is the pack's sample i.
  void open_source() {
    if (packing_.source.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("cannot repair `{}`: its pack.json names no source; a program wrote the pack, or its "
                              "pack.json was made again",
                              options_.address),
                  format_text("name the source with {}, or write the pack again", option("source")));
    }
    dataset::OpenOptions opening;
    opening.label = packing_.label;
    dataset::DatasetPtr source;
    try {
      source = dataset::open(packing_.source, opening);
    } catch (const Error& error) {
      throw Error(error.kind(), format_text("cannot repair `{}` from its source: {}", options_.address, error.text()),
                  format_text("name the place where the source is now: {}", option("source")));
    }
    std::unordered_map<std::uint64_t, std::uint64_t> by_id;
    for (std::uint64_t i = 0; i < source->size(); ++i) by_id.emplace(source->id(i), i);
    const SourceState state = look_at_source(*source, {});
    std::vector<std::uint64_t> view(pack_->size(), 0);
    for (std::uint64_t i = 0; i < pack_->size(); ++i) {
      if (const auto found = by_id.find(pack_->id(i)); found != by_id.end()) view[i] = found->second;
    }
    for (Damage& damage : damaged_) {
      const auto found = by_id.find(pack_->id(damage.index));
      const dataset::PackRow row = pack_->row(damage.index);
      if (found == by_id.end()) {
        damage.not_repaired = "the source no longer has it";
      } else if (row.source_bytes != state.bytes[found->second] ||
                 row.source_mtime_ns != state.mtime_ns[found->second]) {
        damage.not_repaired = "its file in the source was changed since; `stoker pack` brings the pack up to date";
      } else {
        from_source_.insert(damage.index);
      }
    }
    source_ = dataset::take_indices(source, std::move(view));
    if (from_source_.empty()) return;
    packing_.destination = options_.address;
    content_ = decide_content(source_, packing_);
    const dataset::PackManifest& old = pack_->manifest();
    if (content_.kind == PackKind::raw && (content_.dtype != old.dtype || content_.shape != old.shape)) {
      throw Error(ErrorKind::corrupt,
                  fmt::format("cannot repair `{}`: its source now gives samples of another shape", options_.address),
                  "`stoker pack --force` rebuilds the pack");
    }
    leave_out_differing();
  }

  // Size and time of a file may be the same, and its content another.
  void leave_out_differing() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs;
    for (const std::uint64_t index : from_source_) pairs.emplace_back(index, index);
    const auto keep_going = [&](std::uint64_t done, std::uint64_t total) {
      return !options_.progress || options_.progress({"comparing files", done, total, 0, 0});
    };
    for (const std::uint64_t index : find_differing(source_, pack_, content_, pairs, packing_, keep_going)) {
      from_source_.erase(index);
      const auto at =
          std::find_if(damaged_.begin(), damaged_.end(), [&](const Damage& one) { return one.index == index; });
      at->not_repaired = "its file in the source has another content now; `stoker pack` brings the pack up to date";
    }
  }

  // Shards that hold a damaged sample that the source still has, and those with a broken head, are written again.
  void choose() {
    for (const Damage& damage : damaged_) {
      if (!from_source_.contains(damage.index)) lost_.insert(damage.index);
    }
    std::set<std::uint32_t> rewritten = shards_;
    for (const std::uint64_t index : from_source_) rewritten.insert(pack_->row(index).shard);
    key_ = mix(pack_->manifest().fingerprint, hash_text("repair"));
    for (std::uint64_t i = 0; i < pack_->size(); ++i) {
      const std::uint32_t shard = pack_->row(i).shard;
      if (!rewritten.contains(shard)) {
        kept_.push_back(i);
        kept_shards_.insert(shard);
        continue;
      }
      loose_.push_back({i, from_source_.contains(i) ? PackPlan::kNone : i});
      key_ = mix(key_, mix(i, loose_.back().base));
    }
  }

  void write() {
    if (loose_.empty() && !seek_is_broken_) return;
    const dataset::PackManifest& old = pack_->manifest();
    ShardsOptions shards;
    shards.folder = folder_.part();
    shards.plan = key_;
    shards.kind = old.kind;
    shards.dtype = old.dtype;
    shards.shape = old.shape;
    shards.first_shard = kept_shards_.size();
    shards.seek = packing_.seek_index;
    for (const dataset::PackShard& shard : old.shards)
      shards.first_number = std::max(shards.first_number, dataset::shard_number(shard.name) + 1);
    folder_.make_part();
    folder_.empty_part();
    ShardsWriter writer(shards);
    const TarNames names(*pack_);
    Payloads payloads(source_ ? source_ : pack_, pack_, content_, loose_, 0, packing_);
    const auto keep_going = [&] {
      return !options_.progress || options_.progress({"repairing", writer.cursor(), loose_.size(), writer.bytes(), 0});
    };
    Payload payload;
    while (payloads.next(payload, keep_going)) {
      // A sample that cannot be had again moves with its shard as it is, and stays damaged.
      const bool is_lost = lost_.contains(payload.position);
      const dataset::PackRow row = pack_->row(payload.position);
      if (is_lost && payload.bytes.size() == row.bytes) {
        payload.xxh3 = row.xxh3;
      } else if (!payload.fault.empty()) {
        throw Error(ErrorKind::corrupt,
                    format_text("cannot repair `{}`: {}", pack_->name(payload.position), payload.fault),
                    "`stoker pack --force` rebuilds the pack");
      }
      append(payload, names, writer);
    }
    if (payloads.interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
    writer.finish();
    finish(writer);
    for (Damage& damage : damaged_) damage.repaired = from_source_.contains(damage.index);
  }

  void append(const Payload& payload, const TarNames& names, ShardsWriter& writer) const {
    NewSample sample;
    sample.position = payload.position;
    sample.row = pack_->row(payload.position);
    sample.payload = payload.bytes;
    sample.xxh3 = payload.xxh3;
    sample.seek = payload.seek;
    std::string member, cls, json;
    if (pack_->manifest().kind == PackKind::encoded) {
      member = names.member(payload.position, payload.extension);
      cls = names.cls(payload.position);
      json = names.json(payload.position);
      sample.member = member, sample.cls = cls, sample.json = json;
    }
    writer.append(sample);
  }

  void finish(ShardsWriter& writer) {
    dataset::PackManifest pack = pack_->manifest();
    pack.shards.clear();
    pack.files.clear();
    std::map<std::uint32_t, std::uint32_t> renumbered;
    for (const std::uint32_t s : kept_shards_) {
      renumbered[s] = static_cast<std::uint32_t>(pack.shards.size());
      pack.shards.push_back(pack_->manifest().shards[s]);
      folder_.take_over(pack.shards.back().name);
    }
    pack.shards.insert(pack.shards.end(), writer.shards().begin(), writer.shards().end());
    std::vector<JournalRow> rows = writer.rows();
    for (const std::uint64_t i : kept_) {
      JournalRow row{i, pack_->row(i)};
      row.row.shard = renumbered[row.row.shard];
      rows.push_back(row);
    }
    if (packing_.seek_index) add_seek(writer, rows, pack);
    write_index(folder_.part(), *pack_, std::move(rows), pack);
    folder_.commit(pack);
  }

  void add_seek(ShardsWriter& writer, std::vector<JournalRow>& rows, dataset::PackManifest& pack) const {
    sort_rows(rows);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> same;
    for (const std::uint64_t i : kept_) same.emplace_back(i, i);
    const KeptPlaces kept(pack_, !seek_is_broken_, same);
    const auto keep_going = [&](std::uint64_t done, std::uint64_t total) {
      return !options_.progress || options_.progress({"noting places", done, total, writer.bytes(), 0});
    };
    if (!kept.complete(*writer.spill(), keep_going)) throw Error(ErrorKind::unavailable, "interrupted");
    (void)write_pack_seek(folder_.part(), {folder_.part()}, rows, kept, pack);
  }

  const CheckOptions& options_;
  std::shared_ptr<const Packed> pack_;
  const std::set<std::uint32_t>& shards_;
  const bool seek_is_broken_;
  std::vector<Damage>& damaged_;
  PackFolder folder_;
  PackOptions packing_;
  dataset::DatasetPtr source_;
  Content content_;
  std::set<std::uint64_t> from_source_;
  std::set<std::uint64_t> lost_;  // damaged, and not to be had
  std::vector<PackPlan::Loose> loose_;
  std::vector<std::uint64_t> kept_;
  std::set<std::uint32_t> kept_shards_;
  std::uint64_t key_ = 0;
};

}  // namespace

void repair(const CheckOptions& options, std::shared_ptr<const Packed> pack, const std::set<std::uint32_t>& shards,
            bool seek_is_broken, std::vector<Damage>& damaged) {
  Repair(options, std::move(pack), shards, seek_is_broken, damaged).run();
}

}  // namespace stoker::prepare
