#include "stoker/loader/volume_kind.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/loader/chunk_reader.h"
#include "stoker/loader/chunk_store.h"
#include "stoker/meter/counters.h"
#include "stoker/storage/prefault.h"
#include "stoker/storage/read_whole.h"
#include "stoker/transform/voxels.h"

namespace stoker::loader {
namespace {

using dataset::Extents;
using dataset::Normalize;
using dataset::Placement;
using dataset::Volume;
using dataset::VolumeInfo;

constexpr std::size_t kMostCauses = 1024;  // chunks that messages name; of more, only the cause is told

// Volumes have numbers of their own in the chunk store: the image and the mask of a pair are two.
constexpr std::uint64_t image_number(std::uint32_t volume) noexcept {
  return std::uint64_t{volume} * 2;
}
constexpr std::uint64_t mask_number(std::uint32_t volume) noexcept {
  return std::uint64_t{volume} * 2 + 1;
}

transform::Output output_of(std::string name, DType dtype, std::uint32_t channels, const Extents& patch) {
  transform::Output output;
  output.name = std::move(name);
  output.dtype = dtype;
  output.view_bytes = size_of(dtype) * channels;
  if (channels > 1) output.shape.push_back(channels);
  for (const std::uint64_t edge : patch) {
    output.shape.push_back(edge);
    output.view_bytes *= edge;
  }
  return output;
}

std::string words_of(const Normalize& normalize) {
  switch (normalize.how) {
    case Normalize::How::none:
      return "as stored";
    case Normalize::How::zscore:
      return "z-score";
    case Normalize::How::window:
      return fmt::format("window {}..{} to 0..1", normalize.first, normalize.second);
    case Normalize::How::scale:
      return fmt::format("{} * value + {}", normalize.first, normalize.second);
  }
  return "";
}

transform::VolumeInput patches_of(const dataset::VolumeSet& volumes, DType dtype) {
  const dataset::PatchOptions& patches = volumes.plan().options();
  transform::VolumeInput input;
  for (std::size_t axis = 0; axis < 3; ++axis) input.patch[axis] = static_cast<std::uint32_t>(patches.patch[axis]);
  input.image = {volumes.image(0).info().channels, dtype};
  if (volumes.has_masks()) input.mask = {volumes.mask(0)->info().channels, volumes.mask(0)->info().dtype};
  input.is_grid = patches.sampling == dataset::Sampling::grid;
  return input;
}

// Where chunks of the patch lie in their grid.
struct ChunkSpan {
  Extents first{}, last{};
};
ChunkSpan chunks_of(const VolumeInfo& info, const Extents& corner, const Extents& inside) noexcept {
  ChunkSpan span;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    span.first[axis] = corner[axis] / info.chunk[axis];
    span.last[axis] = (corner[axis] + inside[axis] - 1) / info.chunk[axis];
  }
  return span;
}

// use(number, corner) of each chunk, in C order, until it returns false.
template <typename Use>
void for_each_chunk(const VolumeInfo& info, const ChunkSpan& span, const Use& use) {
  const Extents grid = info.grid();
  for (std::uint64_t z = span.first[0]; z <= span.last[0]; ++z) {
    for (std::uint64_t y = span.first[1]; y <= span.last[1]; ++y) {
      for (std::uint64_t x = span.first[2]; x <= span.last[2]; ++x) {
        const Extents corner = {z * info.chunk[0], y * info.chunk[1], x * info.chunk[2]};
        if (!use((z * grid[1] + y) * grid[2] + x, corner)) return;
      }
    }
  }
}

std::uint64_t volume_bytes(const Extents& extents, std::uint64_t element_bytes) noexcept {
  return extents[0] * extents[1] * extents[2] * element_bytes;
}

transform::Normalization normalization_of(const Normalize& normalize, const VolumeInfo& info,
                                          const transform::Moments& moments) noexcept {
  transform::Normalization out;
  const auto set_linear = [&](double factor, double summand) {
    out.scale = factor * info.slope;
    out.offset = factor * info.intercept + summand;
  };
  switch (normalize.how) {
    case Normalize::How::none:
      break;
    case Normalize::How::zscore: {
      const double deviation = moments.deviation();
      out.shift = moments.mean();
      out.scale = deviation == 0 ? 0 : (info.slope < 0 ? -1 : 1) / deviation;
      break;
    }
    case Normalize::How::window: {
      const double width = normalize.second - normalize.first;
      set_linear(1 / width, -normalize.first / width);
      out.low = 0;
      out.high = 1;
      break;
    }
    case Normalize::How::scale:
      set_linear(normalize.first, normalize.second);
      break;
  }
  return out;
}

}  // namespace

struct VolumeKind::Planes {
  const Volume* volume = nullptr;
  const std::byte* first = nullptr;    // of the first plane, where they lie at equal distances
  std::span<const codec::Bytes> each;  // else
  std::uint64_t plane_bytes = 0, row_bytes = 0;
  Extents inside{};
  bool swap_bytes = false;
  bool is_mapped = false;

  const std::byte* plane(std::uint64_t z) const noexcept {
    return each.empty() ? first + z * plane_bytes : each[z].data();
  }
  // A plane beyond the volume is empty: zeros are written for it.
  transform::VoxelPlane channel(std::uint64_t z, std::uint32_t channel) const noexcept {
    const VolumeInfo& info = volume->info();
    transform::VoxelPlane voxels;
    voxels.dtype = info.dtype;
    voxels.channels = info.channels;
    voxels.swap_bytes = swap_bytes;
    voxels.row_bytes = row_bytes;
    if (z >= inside[0]) return voxels;
    voxels.first = plane(z) + channel * size_of(info.dtype);
    voxels.height = static_cast<std::uint32_t>(inside[1]);
    voxels.width = static_cast<std::uint32_t>(inside[2]);
    return voxels;
  }
  std::uint64_t span_bytes() const noexcept {  // of one plane, from its first element to its last
    return (inside[1] - 1) * row_bytes + inside[2] * volume->info().element_bytes();
  }
};

VolumeKind::VolumeKind(std::shared_ptr<const dataset::VolumeSet> volumes, const LoaderOptions& options)
    : volumes_(std::move(volumes)),
      patch_(volumes_->plan().options().patch),
      is_mixed_(options.shuffle.how == dataset::Shuffle::How::full &&
                volumes_->plan().options().sampling == dataset::Sampling::uniform) {
  const auto refuse = [](const char* name, Text hint) {
    throw Error(ErrorKind::usage, format_text("{} does not go with volumes", option(name)), std::move(hint))
        .about(name);
  };
  if (options.decode != Decode::exact) refuse("decode", "leave it out");
  if (options.output.layout != LoaderOptions().output.layout)
    refuse("layout", "patches leave as [channels,] depth, height, width");
  const Normalize& normalize = volumes_->normalize();
  const VolumeInfo& info = volumes_->image(0).info();
  const bool is_float = normalize.how != Normalize::How::none;
  const DType dtype = is_float ? DType::f32 : info.dtype;
  if (options.output.dtype && *options.output.dtype != dtype)
    refuse("dtype", format_text("patches leave as {}", name(dtype)));
  facts_.kind = SampleKind::volume;
  facts_.takes_parts = true;
  facts_.is_heavy = true;
  facts_.outputs.push_back(output_of("image", dtype, info.channels, patch_));
  if (volumes_->has_masks()) {
    const VolumeInfo& mask = volumes_->mask(0)->info();
    facts_.outputs.push_back(output_of("mask", mask.dtype, mask.channels, patch_));
  }
  transforms_ = transform::VolumePlan::compile(options.transform, patches_of(*volumes_, dtype));
  transform::Output& coords = facts_.outputs.emplace_back();
  coords.name = "coords";
  coords.is_coords = true;
  coords.dtype = DType::i64;
  coords.shape = {3};
  coords.view_bytes = 3 * sizeof(std::int64_t);
  facts_.description =
      transform::describe(fmt::format("patch {}x{}x{}, {}{}{}", patch_[0], patch_[1], patch_[2], words_of(normalize),
                                      transforms_.is_empty() ? "" : " -> ", transforms_.describe()),
                          facts_.outputs.front());
  facts_.scratch_estimate = 4 * patch_[1] * patch_[2] * sizeof(float);
  for (std::uint32_t v = 0; v < volumes_->count(); ++v) {
    for (const Volume* const volume : {&volumes_->image(v), volumes_->mask(v)}) {
      if (volume == nullptr || volume->plain()) continue;
      const VolumeInfo& chunked = volume->info();
      facts_.chunk_bytes = std::max(facts_.chunk_bytes, chunked.chunk_bytes());
      facts_.chunked_bytes += chunked.chunks() * chunked.chunk_bytes();
      facts_.scratch_estimate =
          std::max(facts_.scratch_estimate, 2 * volume_bytes(patch_, chunked.element_bytes()) +
                                                2 * chunked.chunk_bytes() + chunked.working_bytes);
    }
  }
  facts_.scratch_estimate = std::max(facts_.scratch_estimate, transforms_.working_bytes());
}

// All chunks of the patch at once, of the image and of the mask, so that it waits once for them.
void VolumeKind::announce(const SampleKey& key) const noexcept {
  if (key.chunks.reader == nullptr) return;
  const Placement placement = volumes_->plan().place(key.base_index, {key.seed, key.epoch, key.id});
  thread_local std::vector<ChunkReader::Wanted> wanted;
  try {
    wanted.clear();
    for (const bool is_mask : {false, true}) {
      const Volume* const volume = is_mask ? volumes_->mask(placement.volume) : &volumes_->image(placement.volume);
      if (volume == nullptr || !ChunkReader::is_for(*volume)) continue;
      const std::uint64_t number = is_mask ? mask_number(placement.volume) : image_number(placement.volume);
      const ChunkSpan span = chunks_of(volume->info(), placement.corner, volumes_->plan().inside(placement.volume));
      for_each_chunk(volume->info(), span, [&](std::uint64_t chunk, const Extents&) {
        const ChunkKey chunk_key{number, chunk};
        if (key.chunks.store == nullptr || !key.chunks.store->has(chunk_key)) wanted.push_back({volume, chunk_key});
        return true;
      });
    }
    key.chunks.reader->ask(wanted);
  } catch (const std::bad_alloc&) {  // the worker reads for itself
  }
}

RowResult VolumeKind::measure(codec::Bytes, std::uint64_t&) const noexcept {
  return {};  // rows do not vary
}

RowResult VolumeKind::make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t&, Scratch& scratch,
                           SeekStore*) const noexcept {
  announce(key);  // what another patch has decoded and forgotten since this one was planned
  const Placement placement = volumes_->plan().place(key.base_index, {key.seed, key.epoch, key.id});
  const Volume& image = volumes_->image(placement.volume);
  const Volume* const mask = volumes_->mask(placement.volume);
  const std::uint32_t image_parts = volumes_->ranges(image, placement.volume).count;
  const Scratch::Mark mark = scratch.mark();
  std::byte* line = nullptr;  // a plane before it is turned
  if (placement.quarter_turns % 2 == 1) {
    const std::span<std::byte> memory = scratch.take(patch_[1] * patch_[2] * sizeof(double));
    if (memory.empty()) return bad(kNoRoom);
    line = memory.data();
  }
  Planes planes;
  RowResult found = find_planes(image, image_number(placement.volume), placement, 0, bytes, key, scratch, planes);
  if (!found.result.ok()) return found;
  write_image(planes, placement, slot, line);
  if (mask != nullptr) {
    planes = {};
    found = find_planes(*mask, mask_number(placement.volume), placement, image_parts, bytes, key, scratch, planes);
    if (!found.result.ok()) return found;
    write_mask(planes, placement, slot, line);
  }
  if (!transforms_.is_empty()) {
    scratch.rewind(mark);
    const std::uint64_t drawn = transform::VolumePlan::key_of(key.seed, key.epoch, key.id);
    const Result changed =
        transforms_.apply(drawn, slot.outputs[0], mask == nullptr ? nullptr : slot.outputs[1], scratch);
    if (!changed.ok()) return bad(changed, "transform");
  }
  std::byte* const coords = slot.outputs[facts_.outputs.size() - 1];
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto value = static_cast<std::int64_t>(placement.corner[axis]);
    std::memcpy(coords + axis * sizeof value, &value, sizeof value);
  }
  return {};
}

RowResult VolumeKind::find_planes(const Volume& volume, std::uint64_t number, const Placement& placement,
                                  std::uint32_t first_part, codec::Bytes joined, const SampleKey& key, Scratch& scratch,
                                  Planes& planes) const noexcept {
  const VolumeInfo& info = volume.info();
  planes.volume = &volume;
  planes.inside = volumes_->plan().inside(placement.volume);
  const auto layout = volume.plain();
  if (!layout) {
    const std::span<std::byte> memory = scratch.take(volume_bytes(planes.inside, info.element_bytes()));
    if (memory.empty()) return bad(kNoRoom);
    planes.first = memory.data();
    planes.row_bytes = planes.inside[2] * info.element_bytes();
    planes.plane_bytes = planes.inside[1] * planes.row_bytes;
    return gather(volume, number, placement, key, scratch, memory.data());
  }
  planes.swap_bytes = layout->swap_bytes;
  planes.row_bytes = layout->stride_bytes[1];
  planes.plane_bytes = layout->stride_bytes[0];
  const std::span<const std::byte> view = layout->source->view();
  if (!view.empty()) {
    if (storage::is_cut_short(*layout->source)) return bad(failed(Code::truncated, cause_of_cut(volume)), "read");
    planes.is_mapped = true;
    planes.first = view.data() + layout->offset + placement.corner[0] * layout->stride_bytes[0] +
                   placement.corner[1] * layout->stride_bytes[1] + placement.corner[2] * layout->stride_bytes[2];
    return {};
  }
  const dataset::VolumeSet::Ranges range = volumes_->ranges(volume, placement.volume);
  if (!key.part_bytes.empty()) {
    planes.each = key.part_bytes.subspan(first_part, range.count);
    return {};
  }
  std::uint64_t before = 0;  // the parts follow one another
  for (std::uint32_t part = 0; part < first_part; ++part) before += key.parts[part].bytes;
  if (joined.size() < before + range.count * range.plane_bytes)
    return bad(failed(Code::truncated, "the volume ends inside this patch"));
  planes.first = joined.data() + before;
  planes.plane_bytes = range.plane_bytes;
  return {};
}

RowResult VolumeKind::gather(const Volume& volume, std::uint64_t number, const Placement& placement,
                             const SampleKey& key, Scratch& scratch, std::byte* into) const noexcept {
  RowResult result;
  try {
    const ChunkSpan span = chunks_of(volume.info(), placement.corner, volumes_->plan().inside(placement.volume));
    for_each_chunk(volume.info(), span, [&](std::uint64_t chunk, const Extents& corner) {
      result = copy_chunk(volume, number, chunk, corner, placement, key, scratch, into);
      return result.result.ok();
    });
  } catch (const std::bad_alloc&) {
    return bad(kNoRoom);
  }
  return result;
}

// Copies what the patch has of one chunk.
RowResult VolumeKind::copy_chunk(const Volume& volume, std::uint64_t number, std::uint64_t chunk, const Extents& corner,
                                 const Placement& placement, const SampleKey& key, Scratch& scratch,
                                 std::byte* into) const {
  const VolumeInfo& info = volume.info();
  const Extents inside = volumes_->plan().inside(placement.volume);
  Extents first, count;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    first[axis] = std::max(corner[axis], placement.corner[axis]);
    count[axis] = std::min(corner[axis] + info.chunk[axis], placement.corner[axis] + inside[axis]) - first[axis];
  }
  const Scratch::Mark mark = scratch.mark();
  const bool by_pieces = takes_pieces(volume, key);
  ChunkStore::Lease lease;
  if (key.chunks.store != nullptr) {
    lease = by_pieces ? key.chunks.store->find({number, chunk}) : key.chunks.store->lease({number, chunk});
  }
  const std::byte* from = lease.data();
  std::uint64_t from_z = corner[0];  // of what lies at `from`
  if (!lease.is_filled() && by_pieces) {
    from_z = first[0];
    const RowResult taken = take_planes(volume, chunk, first[0] - corner[0], count[0], scratch, from);
    if (!taken.result.ok()) return taken;
  } else if (!lease.is_filled()) {
    std::byte* target = lease.data();
    if (target == nullptr) target = scratch.take(info.chunk_bytes()).data();
    if (target == nullptr) return bad(kNoRoom);
    const RowResult decoded = decode(volume, number, chunk, key, target, scratch);
    if (!decoded.result.ok()) return decoded;
    if (lease.data() != nullptr) lease.fill();
    from = target;
  }
  const std::uint64_t element = info.element_bytes(), bytes = count[2] * element;
  for (std::uint64_t z = 0; z < count[0]; ++z) {
    for (std::uint64_t y = 0; y < count[1]; ++y) {
      const std::uint64_t source =
          ((first[0] + z - from_z) * info.chunk[1] + first[1] + y - corner[1]) * info.chunk[2] + first[2] - corner[2];
      const std::uint64_t target =
          ((first[0] + z - placement.corner[0]) * inside[1] + first[1] + y - placement.corner[1]) * inside[2] +
          first[2] - placement.corner[2];
      std::memcpy(into + target * element, from + source * element, bytes);
    }
  }
  scratch.rewind(mark);
  return {};
}

bool VolumeKind::takes_pieces(const Volume& volume, const SampleKey& key) const noexcept {
  if (!is_mixed_ || volume.pieces() == codec::Pieces::none || !volume.backends().empty()) return false;
  return key.chunks.store == nullptr || key.chunks.store->capacity_bytes() < facts_.chunked_bytes / 2;
}

// `count` planes of a chunk, in `scratch` or where they lie.
RowResult VolumeKind::take_planes(const Volume& volume, std::uint64_t chunk, std::uint64_t first, std::uint64_t count,
                                  Scratch& scratch, const std::byte*& planes) const {
  const VolumeInfo& info = volume.info();
  const std::uint64_t plane = info.chunk[1] * info.chunk[2] * info.element_bytes();
  std::array<char, storage::kLocationText> text;
  const storage::Location where = volume.locate_chunk(chunk, text);
  const auto refuse = [&](Code code, const char* cause) {
    return bad(failed(code, cause_in_chunk(volume, chunk, cause)), "read");
  };
  // Of the bytes of the chunk; into.size() of them.
  const auto read_into = [&](std::uint64_t at, std::span<std::byte> into) -> RowResult {
    const storage::WholeRead read = storage::read_part(where, at, into);
    if (!read.ok()) return refuse(Code::corrupt, read.failure.text.c_str());
    return read.bytes.size() == into.size() ? RowResult{} : refuse(Code::truncated, "its file has become shorter");
  };
  const bool is_stored = volume.pieces() == codec::Pieces::stored;
  if (where.bytes == 0 || (is_stored && where.bytes != info.chunk_bytes())) {  // absent, or damaged
    const std::span<std::byte> whole = scratch.take(info.chunk_bytes());
    if (whole.empty()) return bad(kNoRoom);
    planes = whole.data() + first * plane;
    return decode(volume, 0, chunk, {}, whole.data(), scratch);
  }
  codec::Bytes encoded;  // of Pieces::unpacked
  if (storage::has_view(where)) {
    encoded = storage::read_whole(where, scratch).bytes;
    planes = encoded.data() + first * plane;
    if (is_stored) return {};
  }
  const std::span<std::byte> into = scratch.take(count * plane);
  if (into.empty()) return bad(kNoRoom);
  planes = into.data();
  if (is_stored) return read_into(first * plane, into);
  Result result;
  if (encoded.empty()) {  // what lies between the head and the run is not looked at
    const std::span<std::byte> packed = scratch.take(where.bytes);
    if (packed.empty()) return bad(kNoRoom);
    const std::size_t head = std::min(codec::kPieceHead, packed.size());
    if (const RowResult read = read_into(0, packed.first(head)); !read.result.ok()) return read;
    codec::PackedRun run;
    result = volume.find_planes(packed.first(head), packed.size(), first * plane, into.size(), run);
    if (result.ok()) {
      if (const RowResult read = read_into(run.first, packed.subspan(run.first, run.bytes)); !read.result.ok())
        return read;
    }
    encoded = packed;
  }
  if (result.ok()) result = volume.decode_planes(encoded, first * plane, into);
  if (result.ok()) return {};
  return bad(failed(result.code, cause_in_chunk(volume, chunk, result.cause), result.offset));
}

RowResult VolumeKind::decode(const Volume& volume, std::uint64_t number, std::uint64_t chunk, const SampleKey& key,
                             std::byte* into, Scratch& scratch) const {
  using State = ChunkReader::Taken::State;
  const auto unread = [&](const std::string& cause) {
    return bad(failed(Code::corrupt, cause_in_chunk(volume, chunk, cause.c_str())), "read");
  };
  const bool is_far = ChunkReader::is_for(volume);
  const std::int64_t began = is_far && key.waits != nullptr ? meter::now_ns() : 0;
  const auto has_waited = [&] {
    if (began == 0) return;
    key.waits->until_ns = meter::now_ns();
    key.waits->ns += key.waits->until_ns - began;
  };
  ChunkReader::Taken taken;
  if (key.chunks.reader != nullptr && is_far) taken = key.chunks.reader->take({number, chunk});
  if (taken.has_waited()) has_waited();
  codec::Bytes encoded = taken.bytes();
  if (taken.state() == State::stopped) return unread("the loader was closed");
  if (taken.state() == State::failed) return unread(taken.failure().text);
  if (taken.state() == State::missing) {
    std::array<char, storage::kLocationText> text;
    const storage::Location where = volume.locate_chunk(chunk, text);
    if (where.bytes > 0) {
      const storage::WholeRead read = storage::read_whole(where, scratch);
      has_waited();
      if (read.state == storage::WholeRead::State::no_room) return bad(kNoRoom);
      if (!read.ok()) return unread(read.failure.text);
      // Without bytes the chunk would count as absent.
      if (read.bytes.empty())
        return bad(failed(Code::truncated, cause_in_chunk(volume, chunk, "its file has become empty")), "read");
      encoded = read.bytes;
    }
  }
  const Result result = volume.decode_chunk(chunk, encoded, into, scratch);
  if (result.ok() || result.code == Code::no_memory) return bad(result);
  return bad(failed(result.code, cause_in_chunk(volume, chunk, result.cause), result.offset));
}

const char* VolumeKind::cause_in_chunk(const Volume& volume, std::uint64_t chunk, const char* cause) const {
  return kept_cause(fmt::format("{}: {}", volume.chunk_name(chunk), cause), "a chunk of it cannot be decoded");
}

const char* VolumeKind::cause_of_cut(const Volume& volume) const noexcept {
  constexpr const char* kCut = "the file of the volume became shorter since it was opened";
  try {
    return kept_cause(fmt::format("`{}` became shorter since it was opened", volume.name()), kCut);
  } catch (const std::exception&) {
    return kCut;
  }
}

const char* VolumeKind::kept_cause(std::string text, const char* fallback) const {
  const std::scoped_lock lock(causes_mutex_);
  const auto known = std::find(causes_.begin(), causes_.end(), text);
  if (known != causes_.end()) return known->c_str();
  if (causes_.size() == kMostCauses) return fallback;
  return causes_.emplace_back(std::move(text)).c_str();
}

void VolumeKind::write_image(const Planes& planes, const Placement& placement, const Slot& slot,
                             std::byte* line) const noexcept {
  const VolumeInfo& info = planes.volume->info();
  const Normalize& normalize = volumes_->normalize();
  const transform::Output& output = facts_.outputs[0];
  const auto height = static_cast<std::uint32_t>(patch_[1]), width = static_cast<std::uint32_t>(patch_[2]);
  const transform::PlaneTurn turn =
      transform::plane_turn(placement.flip[1], placement.flip[2], placement.quarter_turns);
  thread_local storage::Prefault prefault;
  bool all_asked = true;
  if (planes.is_mapped) {
    prefault.begin();
    for (std::uint64_t z = 0; z < planes.inside[0]; ++z)
      all_asked = prefault.ask({planes.plane(z), planes.span_bytes()}) && all_asked;
  }
  const std::size_t plane_values = patch_[1] * patch_[2];
  for (std::uint32_t channel = 0; channel < info.channels; ++channel) {
    transform::Moments moments;
    if (normalize.how == Normalize::How::zscore) {
      for (std::uint64_t z = 0; z < planes.inside[0]; ++z) transform::add_plane(planes.channel(z, channel), moments);
    }
    const transform::Normalization values = normalization_of(normalize, info, moments);
    for (std::uint64_t z = 0; z < patch_[0]; ++z) {
      const std::uint64_t to_z = placement.flip[0] ? patch_[0] - 1 - z : z;
      std::byte* const to = slot.outputs[0] + (channel * patch_[0] + to_z) * plane_values * size_of(output.dtype);
      if (normalize.how == Normalize::How::none) {
        transform::copy_plane(planes.channel(z, channel), turn, height, width, to, line);
      } else {
        transform::write_plane(planes.channel(z, channel), values, turn, height, width, reinterpret_cast<float*>(to),
                               reinterpret_cast<float*>(line), slot.past_cache && transforms_.is_empty());
      }
    }
  }
  if (planes.is_mapped) prefault.end(all_asked);
}

void VolumeKind::write_mask(const Planes& planes, const Placement& placement, const Slot& slot,
                            std::byte* line) const noexcept {
  const VolumeInfo& info = planes.volume->info();
  const auto height = static_cast<std::uint32_t>(patch_[1]), width = static_cast<std::uint32_t>(patch_[2]);
  const transform::PlaneTurn turn =
      transform::plane_turn(placement.flip[1], placement.flip[2], placement.quarter_turns);
  const std::size_t plane_bytes = patch_[1] * patch_[2] * size_of(info.dtype);
  for (std::uint32_t channel = 0; channel < info.channels; ++channel) {
    for (std::uint64_t z = 0; z < patch_[0]; ++z) {
      const std::uint64_t to_z = placement.flip[0] ? patch_[0] - 1 - z : z;
      transform::copy_plane(planes.channel(z, channel), turn, height, width,
                            slot.outputs[1] + (channel * patch_[0] + to_z) * plane_bytes, line);
    }
  }
}

}  // namespace stoker::loader
