#include "stoker/prepare/pack_source.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"
#include "stoker/dataset/listing.h"
#include "stoker/dataset/scan.h"
#include "stoker/dataset/tar_format.h"
#include "stoker/os/process.h"
#include "stoker/prepare/seek_record.h"
#include "stoker/prepare/source_times.h"
#include "stoker/storage/backend.h"

namespace stoker::prepare {
namespace {

using dataset::PackKind;

constexpr std::uint64_t kEndOfTar = 2 * dataset::kTarBlock;

std::int64_t system_now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string absolute_address(const std::string& given) {
  const std::string address = storage::without_file_scheme(given);
  if (const std::string whole = dataset::real_path_of(address); !whole.empty()) return whole;
  const std::size_t slash = address.rfind('/');
  const std::string folder =
      dataset::real_path_of(slash == std::string::npos ? "." : address.substr(0, std::max<std::size_t>(slash, 1)));
  return folder.empty() ? address : fmt::format("{}/{}", folder == "/" ? "" : folder, address.substr(slash + 1));
}

std::string in_pack(const Text& fault) {
  return fault.in_python();
}

PackSource::PackSource(const PackOptions& given, const Say& say)
    : options(given), address(absolute_address(given.source)) {
  dataset::OpenOptions opening;
  opening.cache_dir = options.cache_dir;
  opening.label = options.label;
  options.narrowing.put_into(opening);
  opening.skip_losses = options.on_error == loader::OnError::skip;
  opening.progress = [&](std::uint64_t seen) { return say("scanning", seen, 0); };
  data = dataset::open(options.source, opening);
  if (address == absolute_address(options.destination))
    throw Error(ErrorKind::usage, fmt::format("cannot pack `{}` into itself", options.source));
  content = decide_content(data, options);
  settings = content.settings(options);
  seeks = options.seek_index && content.kind == PackKind::encoded && codec::can_seek() && has_jpeg(*data);
}

void PackSource::look(const Say& say) {
  looked_at_ns = options.now_ns ? options.now_ns() : system_now_ns();
  state = look_at_source(*data, [&](std::uint64_t seen) { return say("looking at files", seen, data->size()); });
}

void PackSource::name_members() {
  if (content.kind == PackKind::encoded) names.emplace(*data);
}

std::vector<std::uint64_t> PackSource::shard_starts(const std::vector<PackPlan::Loose>& loose,
                                                    const dataset::Packed* base) const {
  const bool is_raw = content.kind == PackKind::raw;
  const std::uint64_t head = is_raw ? dataset::kPackDataOffset : 0;
  std::vector<std::uint64_t> starts;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < loose.size(); ++i) {
    const PackPlan::Loose& one = loose[i];
    const std::uint64_t payload = is_raw                        ? content.row_bytes()
                                  : one.base == PackPlan::kNone ? state.bytes[one.position]
                                                                : base->row(one.base).bytes;
    const std::uint64_t needed = is_raw ? payload : names->bytes(one.position, payload);
    if (starts.empty() || bytes + needed + kEndOfTar > options.shard_size) {
      starts.push_back(i);
      bytes = head;
    }
    bytes += needed;
  }
  return starts;
}

std::uint64_t PackSource::expected_bytes(const std::vector<PackPlan::Loose>& loose) const {
  std::uint64_t bytes = 0;
  for (const PackPlan::Loose& one : loose) {
    bytes += content.kind == PackKind::raw ? content.row_bytes()
                                           : 3 * dataset::kTarBlock + dataset::tar_padded(state.bytes[one.position]) +
                                                 (seeks ? state.bytes[one.position] / kSeekShare : 0);
  }
  return bytes;
}

dataset::PackManifest PackSource::manifest() const {
  dataset::PackManifest pack;
  pack.stoker_version = kVersion;
  pack.kind = content.kind;
  pack.dtype = content.dtype;
  pack.shape = content.shape;
  pack.content = content.kind == PackKind::raw ? name(content.samples) : "";
  pack.rate_hz = content.rate_hz;
  pack.source = address;
  pack.settings = settings;
  for (const dataset::Loss& loss : data->facts().losses) pack.skipped.push_back({loss.name, loss.message()});
  return pack;
}

ShardsOptions PackSource::shards_options(std::string folder, std::uint64_t plan) const {
  ShardsOptions shards;
  shards.folder = std::move(folder);
  shards.plan = plan;
  shards.kind = content.kind;
  shards.dtype = content.dtype;
  shards.shape = content.shape;
  shards.shard_bytes = options.shard_size;
  shards.sync_bytes = options.sync_bytes;
  shards.seek = seeks;
  return shards;
}

void PackSource::append(const Payload& payload, std::optional<std::uint64_t> shard, ShardsWriter& writer) const {
  const std::uint64_t i = payload.position;
  NewSample sample;
  sample.position = i;
  sample.shard = shard;
  sample.payload = payload.bytes;
  sample.xxh3 = payload.xxh3;
  sample.seek = payload.seek;
  sample.row.id = static_cast<std::int64_t>(data->id(i));
  sample.row.label = dataset::label_bits(data->label(i), data->facts().label_kind);
  sample.row.height = payload.height, sample.row.width = payload.width, sample.row.channels = payload.channels;
  sample.row.frames = payload.frames;
  sample.row.source_bytes = state.bytes[i];
  sample.row.source_mtime_ns = state.mtime_ns[i];
  std::string member, cls, json;
  if (content.kind == PackKind::encoded) {
    member = names->member(i, payload.extension);
    cls = names->cls(i);
    json = names->json(i);
    sample.member = member;
    sample.cls = cls;
    sample.json = json;
  }
  writer.append(sample);
}

void PackSource::write(const std::vector<PackPlan::Loose>& loose, const std::shared_ptr<const dataset::Packed>& base,
                       std::span<const std::uint64_t> starts, ShardsWriter& writer,
                       const std::function<bool()>& keep_going) const {
  Payloads payloads(data, base, content, loose, writer.cursor(), options);
  Payload payload;
  while (payloads.next(payload, keep_going)) {
    if (payload.fault.empty()) {
      const auto shard = std::ranges::upper_bound(starts, writer.cursor()) - starts.begin() - 1;
      append(payload, static_cast<std::uint64_t>(shard), writer);
    } else {
      if (options.on_error == loader::OnError::raise) {
        throw Error(ErrorKind::corrupt,
                    format_text("cannot pack `{}`: {}", data->name(payload.position), payload.fault), skip_hint());
      }
      writer.skip(data->name(payload.position), in_pack(payload.fault));
    }
    if (writer.cursor() % 64 == 0 && !keep_going()) throw Error(ErrorKind::unavailable, "interrupted");
  }
  if (payloads.interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
  writer.finish();
}

// A file that changed just before it was looked at may change again without its time showing it: the next run compares
// it by content.
std::string PackSource::remember_times(const std::string& destination, std::uint64_t key,
                                       std::span<const std::uint64_t> positions) const {
  const std::string path = times_path(options.cache_dir, destination);
  if (path.empty() || options.trust_times) return {};  // what is only trusted was not seen
  std::vector<std::int64_t> times;
  times.reserve(positions.size());
  for (const std::uint64_t position : positions) {
    const std::int64_t changed = state.changed_ns[position];
    times.push_back(changed < looked_at_ns - dataset::kRacyNs ? changed : kUnknownTime);
  }
  try {
    save_times(path, key, times);
  } catch (const Error& error) {
    return fmt::format("the next run compares all files by content, for their times are not saved: {}",
                       error.message());
  }
  return {};
}

void PackSource::begin_report(const std::string& destination, PackReport& report) const {
  report.source = options.source;
  report.destination = destination;
  report.source_kind = data->facts().kind;
  report.classes = data->facts().classes;
  report.kind = content.kind;
  report.source_bytes = data->facts().total_bytes;
  report.dry_run = options.dry_run;
  report.notes = data->facts().notes;
  report.content = content.kind == PackKind::raw
                       ? fmt::format("{} [{}]", stoker::name(content.dtype), fmt::join(content.shape, ", "))
                       : "as in the source";
}

std::string lack_of_room(const std::string& folder, std::uint64_t needed, std::uint64_t there) {
  const auto disk = os::space_of(folder);
  if (!disk || disk->total_bytes == 0) return {};  // the file system does not say
  const std::uint64_t room = disk->free_bytes + there;
  if (needed <= room) return {};
  return fmt::format("it needs {} and its disk has {} left", format_bytes(needed), format_bytes(room));
}

void throw_resumable(const Error& error) {
  throw Error(error.kind(), error.text(),
              format_text("{}{}run the same command again: it goes on where it stopped", error.hint_text(),
                          error.hint().empty() ? "" : "; then "))
      .about(error.option());
}

}  // namespace stoker::prepare
