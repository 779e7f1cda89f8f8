#include "stoker/prepare/seek_record.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/hash.h"
#include "stoker/base/scratch.h"
#include "stoker/codec/codec.h"
#include "stoker/os/fd.h"
#include "stoker/os/mapping.h"
#include "stoker/prepare/sample_stream.h"

namespace stoker::prepare {
namespace {

using codec::Checkpoint;
using loader::SeekRow;

constexpr std::uint32_t kFinestStep = 8;  // MCUs; finer ones cost room and gain nothing

std::uint32_t step_for(std::uint64_t mcus, std::uint64_t file_bytes) noexcept {
  const std::uint64_t places = std::max<std::uint64_t>(1, file_bytes / kSeekShare / sizeof(Checkpoint));
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(kFinestStep, (mcus + places - 1) / places));
}

}  // namespace

void note_places(codec::Bytes file, std::uint64_t identity, std::vector<std::byte>& part) noexcept {
  part.clear();
  const std::uint32_t mcus = codec::seekable_mcus(file);
  if (mcus == 0 || identity == 0) return;
  const std::uint32_t step = step_for(mcus, file.size());
  const std::uint32_t total = (mcus - 1) / step;
  codec::ImageInfo info;
  const codec::Media media = codec::sniff(file);
  if (total == 0 || !codec::probe_image(media, file, info).ok()) return;
  try {
    thread_local Scratch scratch;
    thread_local std::vector<Checkpoint> places;
    scratch.reset();
    places.assign(total, {});
    codec::SeekIndex index{.step = step, .places = places, .known = 0};
    // The last pixel: everything before it is passed over, and the end of the file is looked at.
    std::byte pixel[3];
    const Pixels into{pixel, sizeof pixel, 1, 1, 3, DType::u8};
    const Rect last{info.width - 1, info.height - 1, 1, 1};
    if (!codec::decode_image(media, file, {}, last, into, scratch, &index).ok()) return;
    if (index.known != total || index.places.size() != total) return;
    SeekRow row;
    row.identity = identity;
    row.known = row.total = total;
    row.step = step;
    part.resize(sizeof row + total * sizeof(Checkpoint));
    std::memcpy(part.data(), &row, sizeof row);
    std::memcpy(part.data() + sizeof row, places.data(), total * sizeof(Checkpoint));
  } catch (const std::bad_alloc&) {
    part.clear();
  }
}

bool has_jpeg(const dataset::Dataset& data) noexcept {
  for (std::uint64_t i = 0; i < data.size(); ++i) {
    if (codec::is_seekable(data.media(i))) return true;
  }
  return false;
}

KeptPlaces::KeptPlaces(std::shared_ptr<const dataset::Packed> base, bool trust_old,
                       const std::vector<std::pair<std::uint64_t, std::uint64_t>>& kept)
    : base_(std::move(base)) {
  if (kept.empty()) return;
  bool is_there = false;
  if (trust_old) {
    is_there = base_->manifest().file(dataset::kPackSeek) != nullptr &&
               open_pack_seek(base_->facts().address, base_->manifest(), old_).empty();
  }
  std::unordered_map<std::uint64_t, const SeekRow*> by_sample;
  for (const SeekRow& row : old_.rows()) by_sample.emplace(row.sample, &row);
  for (const auto& [position, sample] : kept) {
    const auto found = by_sample.find(sample);
    if (found != by_sample.end()) {
      rows_.emplace(position, found->second);
    } else if (!is_there && codec::is_seekable(base_->media(sample))) {
      missing_.emplace(sample, position);
    }
  }
}

bool KeptPlaces::complete(SeekSpill& spill, const std::function<bool(std::uint64_t, std::uint64_t)>& keep_going) const {
  if (missing_.empty()) return true;
  std::vector<std::uint64_t> samples;
  for (const auto& entry : missing_) samples.push_back(entry.first);
  std::sort(samples.begin(), samples.end());
  std::uint64_t done = 0;
  const std::uint64_t total = samples.size();
  StreamOptions streaming;
  streaming.work = [this](StreamedSample& sample) {
    const std::uint64_t identity = loader::identity_of(sample.bytes);
    if (identity == base_->row(sample.index).xxh3) note_places(sample.bytes, identity, sample.seek);
  };
  SampleStream stream(*base_, std::move(samples), streaming);
  const auto go_on = [&] { return keep_going(done, total); };
  while (std::unique_ptr<SampleStream::Chunk> chunk = stream.next(go_on)) {
    for (const StreamedSample& sample : chunk->samples) spill.append(missing_.at(sample.index), sample.seek);
    done += chunk->samples.size();
    stream.give_back(std::move(chunk));
    if (!go_on()) break;
  }
  spill.sync();
  return done == total;
}

const SeekRow* KeptPlaces::of(std::uint64_t position) const noexcept {
  const auto found = rows_.find(position);
  return found == rows_.end() ? nullptr : found->second;
}

std::uint64_t write_pack_seek(const std::string& folder, const std::vector<std::string>& spill_folders,
                              std::span<const JournalRow> rows, const KeptPlaces& kept, dataset::PackManifest& pack) {
  const SpilledParts spilled(spill_folders);
  std::vector<loader::SeekRecord> records;
  for (std::uint64_t i = 0; i < rows.size(); ++i) {
    loader::SeekRecord record;
    if (const std::span<const std::byte> part = spilled.of(rows[i].position); part.size() > sizeof(SeekRow)) {
      std::memcpy(&record.row, part.data(), sizeof(SeekRow));
      if (record.row.known != (part.size() - sizeof(SeekRow)) / sizeof(Checkpoint)) continue;
      record.places = reinterpret_cast<const Checkpoint*>(part.data() + sizeof(SeekRow));
    } else if (const SeekRow* const row = kept.of(rows[i].position); row != nullptr) {
      record.row = *row;
      record.places = kept.file().places(*row).data();
      if (record.places == nullptr) continue;
    } else {
      continue;
    }
    record.row.sample = i;
    records.push_back(record);
  }
  const std::string path = fmt::format("{}/{}", folder, dataset::kPackSeek);
  loader::write_seek_file(path, records);
  const os::Fd fd = os::open_file(path, O_RDONLY | O_NONBLOCK);
  const os::Mapping written(fd.get(), os::file_size(fd.get(), path), path);
  pack.files.push_back({std::string(dataset::kPackSeek), written.bytes().size(), hash_bytes(written.bytes())});
  return records.size();
}

bool is_noted(codec::Bytes file, std::uint64_t identity, const loader::SeekFile& seek, const SeekRow& row,
              bool deep) noexcept {
  if (row.identity != identity) return false;
  if (!deep || !codec::can_seek()) return true;
  thread_local std::vector<std::byte> part;
  note_places(file, identity, part);
  const std::span<const std::byte> there = std::as_bytes(seek.places(row));
  return part.size() == sizeof(SeekRow) + there.size() &&
         std::memcmp(part.data() + sizeof(SeekRow), there.data(), there.size()) == 0;
}

std::string open_pack_seek(const std::string& address, const dataset::PackManifest& pack, loader::SeekFile& file) {
  const dataset::PackFile* const named = pack.file(dataset::kPackSeek);
  if (named == nullptr) return {};
  const std::string path = fmt::format("{}/{}", address, named->name);
  try {
    const os::Fd fd = os::open_file(path, O_RDONLY | O_NONBLOCK);
    const os::Mapping there(fd.get(), os::file_size(fd.get(), path), path);
    if (there.bytes().size() != named->bytes || hash_bytes(there.bytes()) != named->xxh3)
      return fmt::format("{} is not the file that pack.json describes", named->name);
  } catch (const Error& error) {
    return error.message();
  }
  std::string why;
  file = loader::SeekFile::open(path, why);
  if (!why.empty()) return fmt::format("{}: {}", named->name, why);
  for (const SeekRow& row : file.rows()) {
    if (row.sample < pack.count && !file.places(row).empty()) continue;
    file = {};
    return fmt::format("{}: what it says of sample {} is not sound", named->name, row.sample);
  }
  return {};
}

}  // namespace stoker::prepare
