#include "stoker/codec/nifti.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stoker/codec/byte_order.h"

namespace stoker::codec {
namespace {

constexpr std::uint32_t kHeader1 = 348, kHeader2 = 540;
constexpr std::size_t kMagic1 = 344, kMagic2 = 4;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;

// A field of the header, in the byte order of the file.
class Fields {
 public:
  Fields(Bytes head, bool swap) noexcept : head_(head), swap_(swap) {}

  template <typename T>
  T at(std::size_t offset) const noexcept {
    std::array<std::byte, sizeof(T)> raw;
    std::memcpy(raw.data(), head_.data() + offset, sizeof(T));
    if (swap_) std::reverse(raw.begin(), raw.end());
    return load<T>(raw.data());
  }

 private:
  Bytes head_;
  bool swap_;
};

Result read_type(std::int16_t code, std::uint64_t offset, NiftiInfo& info) noexcept {
  switch (code) {
    case 2:
      info.dtype = DType::u8;
      return {};
    case 4:
      info.dtype = DType::i16;
      return {};
    case 8:
      info.dtype = DType::i32;
      return {};
    case 16:
      info.dtype = DType::f32;
      return {};
    case 64:
      info.dtype = DType::f64;
      return {};
    case 128:
      info.dtype = DType::u8;
      info.channels = 3;
      return {};
    case 256:
      info.dtype = DType::i8;
      return {};
    case 512:
      info.dtype = DType::u16;
      return {};
    case 768:
      info.dtype = DType::u32;
      return {};
    case 1024:
      info.dtype = DType::i64;
      return {};
    case 1280:
      info.dtype = DType::u64;
      return {};
    case 2304:
      info.dtype = DType::u8;
      info.channels = 4;
      return {};
    case 1:
      return failed(Code::unsupported, "elements of one bit", offset);
    case 32:
    case 1792:
    case 2048:
      return failed(Code::unsupported, "complex elements", offset);
    case 1536:
      return failed(Code::unsupported, "elements of 128 bits", offset);
    default:
      return failed(Code::corrupt, "a datatype that NIfTI does not have", offset);
  }
}

// dim[0] is the number of axes; then x, y, z, time, and up to three more.
Result read_extents(const std::array<std::int64_t, 8>& dim, std::uint64_t offset, NiftiInfo& info) noexcept {
  if (dim[0] < 1 || dim[0] > 7) return failed(Code::corrupt, "the number of axes is not 1 to 7", offset);
  std::uint64_t elements = 1;
  for (std::size_t axis = 1; axis <= static_cast<std::size_t>(dim[0]); ++axis) {
    if (dim[axis] < 1) return failed(Code::corrupt, "an axis without elements", offset);
    if (__builtin_mul_overflow(elements, static_cast<std::uint64_t>(dim[axis]), &elements) ||
        elements > kMostElements) {
      return failed(Code::too_large, "more elements than a file can hold", offset);
    }
    if (axis <= 3) {
      info.extents[3 - axis] = static_cast<std::uint64_t>(dim[axis]);
    } else if (dim[axis] > 1) {
      return axis == 4 ? failed(Code::unsupported, "a series over time: split it into one file per volume", offset)
                       : failed(Code::unsupported, "an axis beyond x, y, z: split it into one file per volume", offset);
    }
  }
  for (std::size_t axis = static_cast<std::size_t>(dim[0]) + 1; axis <= 3; ++axis) info.extents[3 - axis] = 1;
  info.data_bytes = elements * size_of(info.dtype) * info.channels;
  return {};
}

void read_spacing(const std::array<double, 3>& xyz, std::uint32_t units, NiftiInfo& info) noexcept {
  const double to_mm = (units & 7) == 1 ? 1000 : (units & 7) == 3 ? 0.001 : 1;  // metres, micrometres
  for (std::size_t i = 0; i < 3; ++i) {
    const double spacing = std::abs(xyz[i]) * to_mm;
    info.spacing[2 - i] = std::isfinite(spacing) ? spacing : 0;
  }
}

Result read_scale(double slope, double intercept, std::uint64_t offset, NiftiInfo& info) noexcept {
  if (slope == 0) return {};  // as the standard says: no scale
  if (!std::isfinite(slope) || !std::isfinite(intercept)) {
    return failed(Code::corrupt, "scl_slope or scl_inter is not a finite number: write 1 and 0 for no scale", offset);
  }
  info.slope = slope;
  info.intercept = intercept;
  return {};
}

Result read_offset(double offset, std::uint64_t least, std::uint64_t at, NiftiInfo& info) noexcept {
  if (offset == 0) offset = static_cast<double>(least + 4);  // old programs leave it out
  if (!(offset >= static_cast<double>(least)) || !(offset <= static_cast<double>(kMostElements))) {
    return failed(Code::corrupt, "the elements begin inside the header, or nowhere", at);
  }
  info.data_offset = static_cast<std::uint64_t>(offset);
  return {};
}

Result read_version_1(Bytes head, bool swap, NiftiInfo& info) noexcept {
  const Fields fields(head, swap);
  if (std::memcmp(&head[kMagic1], "ni1\0", 4) == 0) {
    return failed(Code::unsupported, "a header whose elements are in an .img file: convert it to one .nii", kMagic1);
  }
  if (std::memcmp(&head[kMagic1], "n+1\0", 4) != 0) {
    return failed(Code::unsupported, "an Analyze header without the NIfTI mark: convert it to .nii", kMagic1);
  }
  if (const Result result = read_type(fields.at<std::int16_t>(70), 70, info); !result.ok()) return result;
  std::array<std::int64_t, 8> dim;
  for (std::size_t i = 0; i < dim.size(); ++i) dim[i] = fields.at<std::int16_t>(40 + 2 * i);
  if (const Result result = read_extents(dim, 40, info); !result.ok()) return result;
  if (const Result result = read_offset(fields.at<float>(108), kHeader1, 108, info); !result.ok()) return result;
  read_spacing({fields.at<float>(80), fields.at<float>(84), fields.at<float>(88)}, static_cast<std::uint8_t>(head[123]),
               info);
  return read_scale(fields.at<float>(112), fields.at<float>(116), 112, info);
}

Result read_version_2(Bytes head, bool swap, NiftiInfo& info) noexcept {
  const Fields fields(head, swap);
  if (std::memcmp(&head[kMagic2], "ni2\0", 4) == 0) {
    return failed(Code::unsupported, "a header whose elements are in an .img file: convert it to one .nii", kMagic2);
  }
  if (std::memcmp(&head[kMagic2], "n+2\0", 4) != 0) return failed(Code::corrupt, "no NIfTI mark", kMagic2);
  info.version = 2;
  if (const Result result = read_type(fields.at<std::int16_t>(12), 12, info); !result.ok()) return result;
  std::array<std::int64_t, 8> dim;
  for (std::size_t i = 0; i < dim.size(); ++i) dim[i] = fields.at<std::int64_t>(16 + 8 * i);
  if (const Result result = read_extents(dim, 16, info); !result.ok()) return result;
  const auto offset = static_cast<double>(fields.at<std::int64_t>(168));
  if (const Result result = read_offset(offset, kHeader2, 168, info); !result.ok()) return result;
  read_spacing({fields.at<double>(112), fields.at<double>(120), fields.at<double>(128)}, fields.at<std::uint32_t>(500),
               info);
  return read_scale(fields.at<double>(176), fields.at<double>(184), 176, info);
}

}  // namespace

Result probe_nifti(Bytes head, NiftiInfo& info) noexcept {
  info = {};
  if (head.size() < 4) return failed(Code::truncated, "shorter than a NIfTI header", head.size());
  const std::uint32_t size = little32(head.data());
  for (const bool swap : {false, true}) {
    const std::uint32_t header = swap ? __builtin_bswap32(size) : size;
    if (header != kHeader1 && header != kHeader2) continue;
    if (head.size() < header) return failed(Code::truncated, "shorter than a NIfTI header", head.size());
    info.swap_bytes = swap;
    const Result result = header == kHeader1 ? read_version_1(head, swap, info) : read_version_2(head, swap, info);
    if (size_of(info.dtype) == 1) info.swap_bytes = false;
    return result;
  }
  return failed(Code::corrupt, "no NIfTI header", 0);
}

}  // namespace stoker::codec
