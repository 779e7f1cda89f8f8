#include "stoker/dicom/file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/units.h"

namespace stoker::dicom {
namespace {

constexpr std::uint64_t kFirstRead = 32 * kKiB;                   // most headers are shorter
constexpr std::uint64_t kMostHeader = 256 * kMiB;                 // before the pixel data
constexpr std::uint64_t kPaddingShare = 16, kPaddingAtLeast = 8;  // of pixel data; a sixteenth, or this many bytes
constexpr std::string_view kPdfClass = "1.2.840.10008.5.1.4.1.1.104.1";

std::uint32_t word_at(const std::byte* at) noexcept {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | std::to_integer<std::uint32_t>(at[i]);
  return value;
}

Verdict refused(std::string cause) {
  return {Found::refused, std::move(cause)};
}

Verdict ignored(std::string cause) {
  return {Found::ignored, std::move(cause)};
}

// Objects that always have pixels.
bool is_image_class(std::string_view uid) {
  constexpr std::string_view kStorage = "1.2.840.10008.5.1.4.1.1.";
  constexpr std::string_view kImages[] = {"1",      "1.1", "1.1.1", "1.2", "1.2.1", "1.3",    "1.3.1", "2",
                                          "2.1",    "2.2", "3.1",   "4",   "4.1",   "6.1",    "6.2",   "7",
                                          "7.1",    "7.2", "7.3",   "7.4", "12.1",  "12.1.1", "12.2",  "12.2.1",
                                          "13.1.1", "20",  "128",   "130", "481.1"};
  if (!uid.starts_with(kStorage)) return false;
  return std::ranges::find(kImages, uid.substr(kStorage.size())) != std::end(kImages);
}

Verdict judge_values(const Header& header) {
  if (header.samples != 1 || (header.photometric != "MONOCHROME1" && header.photometric != "MONOCHROME2")) {
    return refused(fmt::format("it is a colour image ({}, {} samples per pixel); only gray images are written",
                               header.photometric.empty() ? "no photometric interpretation" : header.photometric,
                               header.samples));
  }
  if (header.bits_allocated != 8 && header.bits_allocated != 16) {
    return refused(fmt::format("it has {} bits per pixel; only 8 and 16 are written", header.bits_allocated));
  }
  if (header.bits_stored == 0 || header.bits_stored > header.bits_allocated) {
    return refused(fmt::format("it stores {} of {} bits per pixel", header.bits_stored, header.bits_allocated));
  }
  if (header.high_bit + 1 != header.bits_stored) {
    return refused(fmt::format("its highest bit is {} where {} bits are stored; only {} is written", header.high_bit,
                               header.bits_stored, header.bits_stored - 1));
  }
  if (header.has_modality_lut) return refused("it has a table of values (Modality LUT) in place of a slope");
  return {};
}

}  // namespace

Verdict judge(const Header& header, std::uint64_t file_bytes, bool keeps_identifiers) {
  if (header.is_directory) return ignored("it is a DICOMDIR");
  if (header.sop_class == kPdfClass) return ignored("it is a PDF document, not an image");
  if (header.has_float_pixels) return refused("its pixels are floating-point numbers");
  if (!header.has_pixels) {
    // A file that was cut before its pixel data looks the same, but has a size.
    return header.rows > 0 || header.is_bare || is_image_class(header.sop_class)
               ? refused("it is truncated: the file ends before its pixel data")
               : ignored("it holds no pixel data");
  }
  if (header.image_type.find("LOCALIZER") != std::string::npos) return ignored("it is a localizer");
  if (header.syntax.packing == Packing::refused) {
    return refused(fmt::format("its transfer syntax is not supported: {}", header.syntax.name));
  }
  if (header.rows == 0 || header.columns == 0) return refused("it has no Rows or no Columns");
  if (header.unreadable != nullptr) {
    return refused(fmt::format("its {} is no number that makes sense", header.unreadable));
  }
  if (Verdict verdict = judge_values(header); verdict.found != Found::image) return verdict;
  if (header.has_burned_in_text && !keeps_identifiers) {
    return refused("it has text burned into its pixels (BurnedInAnnotation), which may identify the patient");
  }
  if (header.syntax.packing == Packing::native) {
    const std::uint64_t wanted = header.frame_bytes() * header.frames;
    const std::uint64_t behind = file_bytes > header.pixels_at ? file_bytes - header.pixels_at : 0;
    const std::uint64_t there = header.syntax.is_deflated ? header.pixels_bytes : std::min(header.pixels_bytes, behind);
    if (there < wanted) {
      return refused(fmt::format("it is truncated: it has {} of {} bytes of pixel data", there, wanted));
    }
    // Some programs pad pixel data. Much more than the image takes means that its size is wrong: rows would be wrapped.
    if (header.pixels_bytes > wanted + std::max(wanted / kPaddingShare, kPaddingAtLeast)) {
      return refused(fmt::format("it has {} bytes of pixel data, and {} x {} pixels take {}", header.pixels_bytes,
                                 header.columns, header.rows, wanted));
    }
  }
  return {};
}

Result check_fragments(int file, std::uint64_t at, std::uint64_t file_bytes) {
  std::array<std::byte, 8> head;
  while (at < file_bytes) {
    if (file_bytes - at < head.size()) return failed(Code::truncated, "the file ends inside its pixel data", at);
    if (os::read_some(file, head, at) != static_cast<std::int64_t>(head.size())) {
      return failed(Code::io, "its pixel data cannot be read", at);
    }
    const std::uint32_t id = word_at(head.data()), length = word_at(head.data() + 4);
    at += head.size();
    if (id == 0xE0DDFFFE) return {};
    if (id != 0xE000FFFE) return failed(Code::corrupt, "its pixel data hold something other than fragments", at - 8);
    if (length > file_bytes - at) return failed(Code::truncated, "the file ends inside its pixel data", at);
    at += length;
  }
  return {};  // some programs leave out the mark behind the last fragment
}

Result read_file_header(int file, std::uint64_t bytes, const std::string& path, Header& header,
                        std::vector<std::byte>& inflated) {
  std::vector<std::byte> start;
  for (std::uint64_t want = kFirstRead;; want *= 8) {
    const std::uint64_t now = std::min(want, bytes);
    const std::size_t had = start.size();
    start.resize(now);
    start.resize(had + os::read_up_to(file, std::span(start).subspan(had), had, path));
    const bool is_whole = now == bytes || start.size() < now;
    const Result result = read_header(start, is_whole, header, inflated);
    if (result.code != Code::truncated || is_whole) return result;
    if (header.syntax.is_deflated) want = std::max(want, bytes / 8 + 1);
    if (now >= kMostHeader && !header.syntax.is_deflated) {
      return failed(Code::too_large, "no pixel data in the first 256 MiB of the file");
    }
  }
}

void look_at(int file, bool keeps_identifiers, Source& source) {
  try {
    std::array<std::byte, kSniffedBytes> first;
    const std::size_t got = os::read_up_to(file, first, 0, source.path);
    if (!looks_like_dicom({first.data(), got})) return;
    const bool is_certain = got >= 132 && std::memcmp(first.data() + 128, "DICM", 4) == 0;
    std::vector<std::byte> inflated;
    const Result result = read_file_header(file, source.bytes, source.path, source.header, inflated);
    if (!result.ok()) {
      // Without the magic word it may be anything.
      if (!is_certain && result.code != Code::truncated) return;
      source.found = Found::refused;
      source.cause = fmt::format("it is {}: {}{}", name(result.code), result.cause,
                                 result.offset == kNoOffset ? "" : fmt::format(" (byte {})", result.offset));
      return;
    }
    if (!is_certain && source.header.sop_class.empty() && !source.header.has_pixels) return;
    Verdict verdict = judge(source.header, source.bytes, keeps_identifiers);
    if (verdict.found == Found::image && source.header.syntax.packing == Packing::encapsulated) {
      const Result whole = check_fragments(file, source.header.pixels_at, source.bytes);
      if (!whole.ok())
        verdict = refused(fmt::format("it is {}: {} (byte {})", name(whole.code), whole.cause, whole.offset));
    }
    source.found = verdict.found;
    source.cause = std::move(verdict.cause);
  } catch (const Error& error) {
    source.found = Found::refused;
    source.cause = fmt::format("it cannot be read: {}", error.cause());
  }
}

}  // namespace stoker::dicom
