// Volumes whose elements lie uncompressed in one source, and the arrays of numpy among them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/csv_text.h"
#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/dataset/inflated_source.h"
#include "stoker/dataset/volume_kinds.h"
#include "stoker/os/read_file.h"
#include "stoker/storage/backend.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kNpyHead = 4096;  // headers are 128 bytes but for odd ones
constexpr std::uint64_t kLongestNpyHead = 2 << 20;
constexpr std::uint32_t kMostChannels = 1024;

class PlainVolume final : public Volume {
 public:
  explicit PlainVolume(PlainParts parts) : parts_(std::move(parts)) {
    VolumeInfo& info = parts_.info;
    info.chunk = info.extents;
    layout_.source = parts_.source.get();
    layout_.offset = parts_.offset;
    layout_.swap_bytes = parts_.swap_bytes;
    const std::uint64_t row = info.extents[2] * info.element_bytes(), page = info.extents[1] * row;
    layout_.stride_bytes = {parts_.page_stride_bytes != 0 ? parts_.page_stride_bytes : page, row, info.element_bytes()};
    borrowed_ = parts_.source.get();
    backend_ = parts_.source->backend();
  }

  const VolumeInfo& info() const noexcept override { return parts_.info; }
  std::string_view name() const noexcept override { return parts_.name; }
  std::optional<PlainLayout> plain() const noexcept override { return layout_; }
  std::span<const storage::Source* const> sources() const noexcept override { return {&borrowed_, 1}; }
  std::span<const storage::Backend* const> backends() const noexcept override {
    return {&backend_, backend_ != nullptr ? 1u : 0u};
  }
  std::uint64_t memory_bytes() const noexcept override { return parts_.held.capacity(); }

 private:
  PlainParts parts_;
  PlainLayout layout_;
  const storage::Source* borrowed_ = nullptr;
  const storage::Backend* backend_ = nullptr;
};

// The header of the array that begins at `offset` and has `bytes` bytes in all.
codec::ArrayInfo probe_array_at(const storage::Source& source, std::uint64_t offset, std::uint64_t bytes,
                                std::string_view subject) {
  codec::ArrayInfo info;
  Result result;
  for (const std::uint64_t wanted : {kNpyHead, kLongestNpyHead}) {
    std::vector<std::byte> head(std::min(wanted, bytes));
    const storage::Read read{offset, head};
    source.read({&read, 1});
    result = codec::probe_npy(head, bytes, info, codec::ByteOrders::any);
    if (result.ok() || head.size() == bytes) break;
  }
  if (!result.ok()) refuse_volume(subject, result);
  return info;
}

std::unique_ptr<Volume> array_volume(PlainParts parts, std::uint64_t offset, std::uint64_t bytes) {
  const codec::ArrayInfo array = probe_array_at(*parts.source, offset, bytes, parts.name);
  parts.info.dtype = array.dtype;
  set_extents(parts.info, array.dims(), parts.name);
  parts.offset = offset + array.data_offset;
  parts.swap_bytes = array.swap_bytes;
  if (parts.info.stored_bytes == 0) parts.info.stored_bytes = parts.source->size_bytes();
  return make_plain_volume(std::move(parts));
}

std::string quoted_list(std::span<const std::string_view> names, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) text += fmt::format("{}`{}`", i == 0 ? "" : ", ", names[i]);
  if (count > names.size()) text += fmt::format(" and {} more", count - names.size());
  return text;
}

std::optional<double> number_of(std::optional<CsvField> field) {
  if (!field) return std::nullopt;
  double value = 0;
  const char* const end = field->raw.data() + field->raw.size();
  const auto [stop, problem] = std::from_chars(field->raw.data(), end, value);
  if (problem != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

void refuse_volume(std::string_view subject, const Result& result) {
  ErrorKind kind = ErrorKind::corrupt;
  switch (result.code) {
    case Code::unsupported:
    case Code::too_large:
    case Code::mismatch:
      kind = ErrorKind::unsupported;
      break;
    case Code::no_memory:
      kind = ErrorKind::unavailable;
      break;
    default:
      break;
  }
  throw Error(kind, fmt::format("cannot read `{}`: {}", subject, result.cause));
}

std::unique_ptr<storage::Source> open_plain_source(const std::string& address, storage::Storage storage) {
  const bool is_in_store = storage::store_of(address) != nullptr;
  if (is_in_store || (storage != storage::Storage::automatic && storage != storage::Storage::mmap)) {
    return storage::open_source(address, storage);
  }
  std::unique_ptr<storage::Source> source = storage::open_mapped_file(address);
  if (storage == storage::Storage::mmap) return source;
  if (storage::settle(storage, source->size_bytes()) != storage::Storage::direct) return source;
  return storage::open_source(address, storage::Storage::direct);
}

std::unique_ptr<Volume> make_plain_volume(PlainParts parts) {
  return std::make_unique<PlainVolume>(std::move(parts));
}

void set_extents(VolumeInfo& info, std::span<const std::uint64_t> shape, std::string_view subject) {
  std::string text;
  for (const std::uint64_t n : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", n);
  if (shape.size() < 2 || shape.size() > 4) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot read `{}` as a volume: it has {} axes ({})", subject, shape.size(), text),
                "a volume has the axes y, x, or z, y, x, or z, y, x, channel");
  }
  if (std::ranges::find(shape, 0u) != shape.end()) {
    throw Error(ErrorKind::not_found, fmt::format("cannot read `{}` as a volume: it is empty ({})", subject, text));
  }
  const bool has_channels = ends_in_channels(shape);
  if (shape.size() == 4 && !has_channels) shape = shape.subspan(1);
  if (has_channels && shape[3] > kMostChannels) {
    throw Error(
        ErrorKind::unsupported,
        fmt::format("cannot read `{}` as a volume: its last axis has {} channels ({})", subject, shape[3], text),
        "the last of four axes counts channels; split a series over time into one file per volume");
  }
  info.channels = has_channels ? static_cast<std::uint32_t>(shape[3]) : 1;
  info.extents = shape.size() == 2 ? Extents{1, shape[0], shape[1]} : Extents{shape[0], shape[1], shape[2]};
}

void add_series_facts(const std::string& folder, VolumeInfo& info) {
  const std::string path = folder + "/.series.json";
  if (storage::store_of(folder) != nullptr || !os::exists(path)) return;
  std::string line;
  try {
    const Json json = Json::parse_or_null(os::read_text(path));
    if (!json["lines"].is_array() || json["lines"].empty() || !json["lines"].front().is_string()) return;
    line = json["lines"].front().text();
  } catch (const Error&) {
    return;  // the note is not needed to read the slices
  }
  // As the index of the slices has them: slice_spacing, pixel_spacing, pixel_spacing_cols, hu_offset.
  constexpr std::size_t kSliceSpacing = 8, kOffset = 11;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    info.spacing[axis] = number_of(field_of_row(line, 0, kSliceSpacing + axis)).value_or(0);
  }
  if (const auto offset = number_of(field_of_row(line, 0, kOffset))) info.intercept = -*offset;
}

std::unique_ptr<Volume> open_npy_volume(const std::string& address, const VolumeOptions& options) {
  PlainParts parts;
  parts.name = address;
  parts.info.format = "npy";
  parts.source = open_plain_source(address, options.storage);
  if (const std::size_t slash = address.rfind('/'); slash != std::string::npos) {
    add_series_facts(address.substr(0, slash), parts.info);
  }
  const std::uint64_t bytes = parts.source->size_bytes();
  return array_volume(std::move(parts), 0, bytes);
}

std::unique_ptr<Volume> open_npz_volume(const std::string& address, const VolumeOptions& options) {
  if (storage::store_of(address) != nullptr) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot read `{}` as a volume: archives of arrays are read from local files only", address),
                "copy it to a local folder, or save the array as .npy");
  }
  const std::unique_ptr<storage::Source> mapped = storage::open_source(address, storage::Storage::mmap);
  const codec::Media media = codec::media_of_name(address);
  std::array<std::string_view, 8> names;
  const std::size_t count = codec::list_arrays(media, mapped->view(), names);
  if (options.member.empty() && count > 1) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot choose an array of `{}`: it holds {}", address,
                            quoted_list(std::span(names).first(std::min(count, names.size())), count)),
                "name the array as the member of the volume");
  }
  codec::ArrayInfo array;
  Scratch scratch;
  const Result result = codec::probe_member(media, mapped->view(), options.member, array, scratch);
  if (result.code == Code::mismatch) {
    throw Error(ErrorKind::not_found, fmt::format("cannot find the array `{}` in `{}`", options.member, address),
                count == 0 ? std::string()
                           : fmt::format("it holds {}",
                                         quoted_list(std::span(names).first(std::min(count, names.size())), count)));
  }
  if (!result.ok()) refuse_volume(address, result);

  PlainParts parts;
  parts.name = options.member.empty() ? address : fmt::format("{}[{}]", address, options.member);
  parts.info.stored_bytes = array.stored_bytes;
  const Compressed compressed{.source = mapped.get(),
                              .offset = array.data_offset,
                              .bytes = array.stored_bytes,
                              .form = Compressed::Form::deflate,
                              .crc32 = array.crc32,
                              .inflated_bytes = array.member_bytes};
  if (!array.deflated) {
    parts.info.format = "npz, stored";
    check_stored(compressed, options);
    parts.source = open_plain_source(address, options.storage);
    return array_volume(std::move(parts), array.data_offset, array.stored_bytes);
  }
  parts.info.format = "npz, deflate";
  InflatedFile inflated = inflate_once(compressed, options);
  parts.source = std::move(inflated.source);
  parts.held = std::move(inflated.held);
  return array_volume(std::move(parts), 0, inflated.bytes);
}

}  // namespace stoker::dataset
