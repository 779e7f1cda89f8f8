#include "stoker/dicom/header.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>

#include <libdeflate.h>

namespace stoker::dicom {
namespace {

constexpr std::uint32_t kUndefined = 0xFFFFFFFF;
constexpr int kDeepest = 16;                                     // of nested sequences
constexpr std::size_t kMostFrames = 1u << 20;                    // per-frame items
constexpr std::uint64_t kMostInflated = std::uint64_t{1} << 28;  // of a deflated file

constexpr std::uint32_t tag(std::uint32_t group, std::uint32_t element) noexcept {
  return group << 16 | element;
}

constexpr std::uint32_t kItem = tag(0xFFFE, 0xE000), kItemEnd = tag(0xFFFE, 0xE00D), kSequenceEnd = tag(0xFFFE, 0xE0DD);
constexpr std::uint32_t kSharedGroups = tag(0x5200, 0x9229), kFrameGroups = tag(0x5200, 0x9230);
constexpr std::uint32_t kModalityLut = tag(0x0028, 0x3000), kPixels = tag(0x7FE0, 0x0010);

// Sequences inside functional groups that hold geometry or rescaling.
bool holds_frame_facts(std::uint32_t id) noexcept {
  return id == tag(0x0020, 0x9113) || id == tag(0x0020, 0x9116) || id == tag(0x0028, 0x9110) ||
         id == tag(0x0028, 0x9145) || id == tag(0x0028, 0x9132);
}

// Only a plain NO says that there is none: what cannot be read may be a yes.
bool may_be_burned_in(std::string_view value) noexcept {
  return !value.empty() && value != "NO" && value != "No" && value != "no" && value != "N";
}

struct KnownSyntax {
  std::string_view uid, name;
  Packing packing;
};
constexpr KnownSyntax kSyntaxes[] = {
    {"1.2.840.10008.1.2", "implicit little endian", Packing::native},
    {"1.2.840.10008.1.2.1", "explicit little endian", Packing::native},
    {"1.2.840.10008.1.2.1.99", "deflated little endian", Packing::native},
    {"1.2.840.10008.1.2.2", "explicit big endian", Packing::native},
    {"1.2.840.10008.1.2.5", "RLE lossless", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.50", "JPEG baseline", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.51", "JPEG extended", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.57", "JPEG lossless", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.70", "JPEG lossless, first-order prediction", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.80", "JPEG-LS lossless", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.81", "JPEG-LS near-lossless", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.90", "JPEG 2000 lossless", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.91", "JPEG 2000", Packing::encapsulated},
    {"1.2.840.10008.1.2.4.92", "JPEG 2000 part 2 lossless", Packing::refused},
    {"1.2.840.10008.1.2.4.93", "JPEG 2000 part 2", Packing::refused},
    {"1.2.840.10008.1.2.4.94", "JPIP referenced", Packing::refused},
    {"1.2.840.10008.1.2.4.95", "JPIP referenced deflate", Packing::refused},
    {"1.2.840.10008.1.2.4.100", "MPEG-2 video", Packing::refused},
    {"1.2.840.10008.1.2.4.101", "MPEG-2 video", Packing::refused},
    {"1.2.840.10008.1.2.4.102", "MPEG-4 H.264 video", Packing::refused},
    {"1.2.840.10008.1.2.4.103", "MPEG-4 H.264 video", Packing::refused},
    {"1.2.840.10008.1.2.4.104", "MPEG-4 H.264 video", Packing::refused},
    {"1.2.840.10008.1.2.4.105", "MPEG-4 H.264 video", Packing::refused},
    {"1.2.840.10008.1.2.4.106", "MPEG-4 H.264 video", Packing::refused},
    {"1.2.840.10008.1.2.4.107", "HEVC H.265 video", Packing::refused},
    {"1.2.840.10008.1.2.4.108", "HEVC H.265 video", Packing::refused},
    {"1.2.840.10008.1.2.4.110", "JPEG XL lossless", Packing::refused},
    {"1.2.840.10008.1.2.4.111", "JPEG XL JPEG recompression", Packing::refused},
    {"1.2.840.10008.1.2.4.112", "JPEG XL", Packing::refused},
    {"1.2.840.10008.1.2.4.201", "HTJ2K lossless", Packing::refused},
    {"1.2.840.10008.1.2.4.202", "HTJ2K lossless RPCL", Packing::refused},
    {"1.2.840.10008.1.2.4.203", "HTJ2K", Packing::refused},
};

bool is_vr(char a, char b) noexcept {
  constexpr std::string_view kAll =
      "AE AS AT CS DA DS DT FD FL IS LO LT OB OD OF OL OV OW PN SH SL SQ SS ST SV TM UC UI UL UN UR US UT UV";
  const char name[] = {a, b};
  for (std::size_t i = 0; i < kAll.size(); i += 3) {
    if (kAll.substr(i, 2) == std::string_view(name, 2)) return true;
  }
  return false;
}

bool has_long_length(const char* vr) noexcept {
  constexpr std::string_view kLong = "OB OD OF OL OV OW SQ SV UC UN UR UT UV";
  for (std::size_t i = 0; i < kLong.size(); i += 3) {
    if (kLong.substr(i, 2) == std::string_view(vr, 2)) return true;
  }
  return false;
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto is_padding = [](char c) { return c == ' ' || c == '\0' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_padding(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_padding(text.back())) text.remove_suffix(1);
  return text;
}

// The numbers of "0.5\0.5". None where one of them is not a finite number, or fewer than N are there.
template <std::size_t N>
std::optional<std::array<double, N>> numbers(std::string_view text) noexcept {
  std::array<double, N> all;
  for (std::size_t i = 0; i < N; ++i) {
    const std::size_t end = std::min(text.find('\\'), text.size());
    std::string_view one = trimmed(text.substr(0, end));
    if (one.starts_with('+')) one.remove_prefix(1);
    const auto [rest, error] = std::from_chars(one.data(), one.data() + one.size(), all[i]);
    if (error != std::errc() || rest != one.data() + one.size() || one.empty() || !std::isfinite(all[i])) return {};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::optional<double> number(std::string_view text) noexcept {
  const auto one = numbers<1>(text);
  return one ? std::optional((*one)[0]) : std::nullopt;
}

void replace_if_there(std::optional<double>& old, std::optional<double> found) noexcept {
  if (found) old = found;
}

struct Element {
  std::uint32_t id = 0;
  char vr[2] = {'U', 'N'};
  std::uint32_t length = 0;
  std::size_t at = 0;  // of its value
};

// What an element means depends on where it stands.
enum class Place : std::uint8_t { root, shared_groups, frame_groups, frame_facts, elsewhere };

class Parser {
 public:
  Parser(Bytes bytes, bool is_whole, Header& header) : bytes_(bytes), is_whole_(is_whole), header_(header) {}

  void start(std::size_t at, bool is_explicit, bool is_big_endian) noexcept {
    at_ = at;
    is_explicit_ = is_explicit;
    is_big_endian_ = is_big_endian;
  }

  // Group 0002, always explicit and little-endian. Leaves at_ behind it.
  Result read_meta(std::string& syntax) {
    Element element;
    while (bytes_.size() - at_ >= 8 && little16(at_) == 2) {
      if (const Result result = next(element); !result.ok()) return result;
      if (element.length > bytes_.size() - element.at) return ends_early(element.at);
      if (element.id == tag(0x0002, 0x0010)) syntax = text(element);
      if (element.id == tag(0x0002, 0x0002)) {
        header_.sop_class = text(element);  // the data set says it again, unless it is cut before that
        header_.is_directory = header_.sop_class == "1.2.840.10008.1.3.10";
      }
      at_ = element.at + element.length;
    }
    return {};
  }

  Result read_root() {
    if (const Result result = read_data_set(bytes_.size(), Place::root, 0); !result.ok()) return result;
    if (header_.has_pixels || header_.has_float_pixels || is_whole_) return {};
    return failed(Code::truncated, "the file ends before its pixel data", at_);
  }

  std::size_t at() const noexcept { return at_; }
  std::uint16_t little16(std::size_t at) const noexcept {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes_[at]) | std::to_integer<unsigned>(bytes_[at + 1])
                                                                                  << 8);
  }

 private:
  std::uint32_t read16(std::size_t at) const noexcept {
    return is_big_endian_ ? __builtin_bswap16(little16(at)) : little16(at);
  }
  std::uint32_t read32(std::size_t at) const noexcept {
    return is_big_endian_ ? read16(at) << 16 | read16(at + 2) : read16(at + 2) << 16 | read16(at);
  }
  Result ends_early(std::size_t at) const noexcept {
    return failed(Code::truncated, "the file ends inside an element", at);
  }

  Result next(Element& element) noexcept {
    if (bytes_.size() - at_ < 8) return ends_early(at_);
    element.id = tag(read16(at_), read16(at_ + 2));
    if (!is_explicit_ || element.id >> 16 == 0xFFFE) {
      element.vr[0] = 'U', element.vr[1] = 'N';
      element.length = read32(at_ + 4);
      element.at = at_ + 8;
      return {};
    }
    std::memcpy(element.vr, bytes_.data() + at_ + 4, 2);
    if (!is_vr(element.vr[0], element.vr[1])) {
      return failed(Code::corrupt, "an element has no known value representation", at_);
    }
    if (!has_long_length(element.vr)) {
      element.length = read16(at_ + 6);
      element.at = at_ + 8;
      return {};
    }
    if (bytes_.size() - at_ < 12) return ends_early(at_);
    element.length = read32(at_ + 8);
    element.at = at_ + 12;
    return {};
  }

  // Elements up to `end`, or to the end of an item of undefined length. Stops at the pixel data of the root.
  Result read_data_set(std::size_t end, Place place, int depth) {
    Element element;
    while (at_ < end) {
      if (const Result result = next(element); !result.ok()) return place == Place::root ? trailing(result) : result;
      if (element.at > end) return failed(Code::corrupt, "an element is longer than its item", at_);
      if (element.id == kItemEnd || element.id == kSequenceEnd) {
        at_ = element.at;
        return {};
      }
      if (place == Place::root && note_pixels(element)) return {};
      const bool is_sequence = std::memcmp(element.vr, "SQ", 2) == 0;
      const Place inside = place_inside(element.id, place);
      if (element.length == kUndefined || (inside != Place::elsewhere && (is_sequence || !is_explicit_))) {
        if (element.id == kModalityLut) header_.has_modality_lut = true;
        if (const Result result = read_sequence(element, end, inside, depth + 1); !result.ok()) return result;
        continue;
      }
      if (element.length > end - element.at) {
        // Only the end of the file may cut an element short; the end of an item may not.
        return end == bytes_.size() ? ends_early(element.at)
                                    : failed(Code::corrupt, "an element is longer than its item", at_);
      }
      note(element, place);
      at_ = element.at + element.length;
    }
    return {};
  }

  // A few bytes behind the last element are padding.
  Result trailing(const Result& result) const noexcept {
    return is_whole_ && result.code == Code::truncated && bytes_.size() - at_ < 8 ? Result{} : result;
  }

  static Place place_inside(std::uint32_t id, Place place) noexcept {
    if (place == Place::root && id == kSharedGroups) return Place::shared_groups;
    if (place == Place::root && id == kFrameGroups) return Place::frame_groups;
    const bool is_group = place == Place::shared_groups || place == Place::frame_groups;
    return is_group && holds_frame_facts(id) ? Place::frame_facts : Place::elsewhere;
  }

  Result read_sequence(const Element& sequence, std::size_t end, Place place, int depth) {
    if (depth > kDeepest) return failed(Code::corrupt, "sequences are nested too deeply", at_);
    if (sequence.length != kUndefined) {
      if (sequence.length > end - sequence.at) return ends_early(sequence.at);
      end = sequence.at + sequence.length;
    }
    // The content of an unknown element of undefined length is implicit, whatever the file is.
    const bool was_explicit = is_explicit_;
    if (is_explicit_ && std::memcmp(sequence.vr, "UN", 2) == 0) is_explicit_ = false;
    at_ = sequence.at;
    Element item;
    while (at_ < end) {
      if (const Result result = next(item); !result.ok()) return result;
      if (item.at > end) return failed(Code::corrupt, "an item is longer than its sequence", at_);
      at_ = item.at;
      if (item.id == kSequenceEnd) break;
      if (item.id != kItem) return failed(Code::corrupt, "a sequence holds something other than items", at_);
      std::size_t item_end = end;
      if (item.length != kUndefined) {
        if (item.length > end - item.at) return ends_early(item.at);
        item_end = item.at + item.length;
      }
      if (place == Place::frame_groups) {
        if (header_.per_frame.size() == kMostFrames)
          return failed(Code::too_large, "more frames than a sane file has", at_);
        header_.per_frame.push_back(header_.facts);
      }
      if (place != Place::elsewhere || item.length == kUndefined) {
        const Place before = facts_place_;
        if (place != Place::frame_facts) facts_place_ = place;
        const Result result = read_data_set(item_end, place, depth);
        facts_place_ = before;
        if (!result.ok()) return result;
      }
      if (item.length != kUndefined) at_ = item_end;
    }
    is_explicit_ = was_explicit;
    return {};
  }

  std::string_view view(const Element& element) const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()) + element.at, element.length};
  }
  std::string text(const Element& element) const { return std::string(trimmed(view(element))); }
  std::uint32_t natural(const Element& element) const noexcept { return element.length >= 2 ? read16(element.at) : 0; }

  bool note_pixels(const Element& element) noexcept {
    if (element.id == tag(0x7FE0, 0x0008) || element.id == tag(0x7FE0, 0x0009)) return header_.has_float_pixels = true;
    if (element.id != kPixels) return false;
    header_.has_pixels = true;
    header_.are_pixels_words = std::memcmp(element.vr, "OW", 2) == 0;
    header_.pixels_at = element.at;
    header_.pixels_bytes = element.length == kUndefined ? 0 : element.length;
    return true;
  }

  void note(const Element& element, Place place) {
    if (element.id == kModalityLut && place == Place::root) header_.has_modality_lut = element.length > 0;
    if (place == Place::root) {
      note_root(element);
      note_facts(element, header_.facts);
    } else if (place == Place::frame_facts) {
      const bool is_frame = facts_place_ == Place::frame_groups && !header_.per_frame.empty();
      note_facts(element, is_frame ? header_.per_frame.back() : header_.facts);
    }
  }

  void note_root(const Element& element) {
    switch (element.id) {
      case tag(0x0008, 0x0008):
        header_.image_type = text(element);
        break;
      case tag(0x0008, 0x0016):
        header_.sop_class = text(element);
        break;
      case tag(0x0008, 0x0018):
        header_.sop_instance = text(element);
        break;
      case tag(0x0008, 0x0060):
        header_.modality = text(element);
        break;
      case tag(0x0010, 0x0020):
        header_.patient = text(element);
        break;
      case tag(0x0020, 0x000D):
        header_.study = text(element);
        break;
      case tag(0x0020, 0x000E):
        header_.series = text(element);
        break;
      case tag(0x0020, 0x0013):
        if (const auto value = number(view(element)); value && std::fabs(*value) < 1e15) {
          header_.instance = static_cast<std::int64_t>(*value);
        }
        break;
      case tag(0x0028, 0x0002):
        header_.samples = natural(element);
        break;
      case tag(0x0028, 0x0004):
        header_.photometric = text(element);
        break;
      case tag(0x0028, 0x0008):
        if (const auto value = number(view(element)); value && *value >= 1 && *value <= kMostFrames) {
          header_.frames = static_cast<std::uint32_t>(*value);
        } else if (!text(element).empty()) {
          header_.unreadable = "NumberOfFrames";
        }
        break;
      case tag(0x0028, 0x0010):
        header_.rows = natural(element);
        break;
      case tag(0x0028, 0x0011):
        header_.columns = natural(element);
        break;
      case tag(0x0028, 0x0100):
        header_.bits_allocated = natural(element);
        break;
      case tag(0x0028, 0x0101):
        header_.bits_stored = natural(element);
        break;
      case tag(0x0028, 0x0102):
        header_.high_bit = natural(element);
        break;
      case tag(0x0028, 0x0103):
        header_.is_signed = natural(element) == 1;
        break;
      case tag(0x0028, 0x0301):
        header_.has_burned_in_text = may_be_burned_in(text(element));
        break;
      default:
        break;
    }
  }

  // A value that is there and is no number must not be taken for one that is missing.
  void note_rescaling(const Element& element, const char* name, std::optional<double>& to) const {
    const auto value = number(view(element));
    replace_if_there(to, value);
    if (!value && !text(element).empty()) header_.unreadable = name;
  }

  void note_facts(const Element& element, FrameFacts& facts) const {
    const std::string_view value = view(element);
    switch (element.id) {
      case tag(0x0020, 0x0032):
        if (const auto found = numbers<3>(value)) facts.position = found;
        break;
      case tag(0x0020, 0x0037):
        if (const auto found = numbers<6>(value)) facts.orientation = found;
        break;
      case tag(0x0028, 0x0030):
        if (const auto found = numbers<2>(value)) facts.pixel_spacing = found;
        break;
      case tag(0x0028, 0x1050):
        replace_if_there(facts.window_center, number(value));
        break;
      case tag(0x0028, 0x1051):
        replace_if_there(facts.window_width, number(value));
        break;
      case tag(0x0028, 0x1052):
        note_rescaling(element, "RescaleIntercept", facts.intercept);
        break;
      case tag(0x0028, 0x1053):
        note_rescaling(element, "RescaleSlope", facts.slope);
        if (facts.slope == 0.0) header_.unreadable = "RescaleSlope";
        break;
      default:
        break;
    }
  }

  Bytes bytes_;
  bool is_whole_;
  Header& header_;
  std::size_t at_ = 0;
  bool is_explicit_ = true, is_big_endian_ = false;
  Place facts_place_ = Place::root;  // the groups that frame facts belong to
};

char char_at(Bytes bytes, std::size_t at) noexcept {
  return static_cast<char>(bytes[at]);
}

// How the data set at `at` is written, for files that do not say.
TransferSyntax guessed_syntax(Bytes file, std::size_t at) {
  TransferSyntax syntax = transfer_syntax("");
  if (file.size() < at + 8) return syntax;
  syntax.is_explicit = is_vr(char_at(file, at + 4), char_at(file, at + 5));
  syntax.is_big_endian = file[at] == std::byte{0} && file[at + 1] != std::byte{0};
  return syntax;
}

struct DecompressorFreer {
  void operator()(libdeflate_decompressor* d) const noexcept { libdeflate_free_decompressor(d); }
};

Result inflate_rest(Bytes stream, std::vector<std::byte>& inflated) {
  const std::unique_ptr<libdeflate_decompressor, DecompressorFreer> decompressor(libdeflate_alloc_decompressor());
  if (decompressor == nullptr) return failed(Code::no_memory, "no memory to inflate the file");
  for (std::uint64_t room = std::max<std::uint64_t>(1 << 16, stream.size() * 4); room <= kMostInflated; room *= 2) {
    inflated.resize(room);
    std::size_t written = 0;
    const auto answer = libdeflate_deflate_decompress_ex(decompressor.get(), stream.data(), stream.size(),
                                                         inflated.data(), inflated.size(), nullptr, &written);
    if (answer == LIBDEFLATE_INSUFFICIENT_SPACE) continue;
    if (answer != LIBDEFLATE_SUCCESS) return failed(Code::corrupt, "the deflated data cannot be inflated");
    inflated.resize(written);
    return {};
  }
  return failed(Code::too_large, "the deflated data are larger than 256 MiB");
}

}  // namespace

TransferSyntax transfer_syntax(std::string_view uid) {
  TransferSyntax syntax;
  syntax.uid = uid;
  syntax.is_explicit = uid != "1.2.840.10008.1.2" && !uid.empty();
  syntax.is_big_endian = uid == "1.2.840.10008.1.2.2";
  syntax.is_deflated = uid == "1.2.840.10008.1.2.1.99";
  if (uid.empty()) {
    syntax.name = "unnamed";
    return syntax;
  }
  const auto known =
      std::find_if(std::begin(kSyntaxes), std::end(kSyntaxes), [&](const KnownSyntax& k) { return k.uid == uid; });
  syntax.name = known == std::end(kSyntaxes) ? uid : known->name;
  syntax.packing = known == std::end(kSyntaxes) ? Packing::refused : known->packing;
  return syntax;
}

bool looks_like_dicom(Bytes first) noexcept {
  if (first.size() >= 132 && std::memcmp(first.data() + 128, "DICM", 4) == 0) return true;
  if (first.size() < 16) return false;
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(first[at]); };
  const bool has_vr = is_vr(char_at(first, 4), char_at(first, 5));
  const unsigned little = byte(0) | byte(1) << 8, big = byte(0) << 8 | byte(1);
  if (has_vr) return little == 2 || little == 8 || big == 8;
  // Implicit: the first element of group 0008 is short, and the tag behind it is of that group again.
  const std::uint32_t length = byte(4) | byte(5) << 8 | byte(6) << 16 | byte(7) << 24;
  if (little != 8 || byte(3) != 0 || length % 2 != 0 || length > kSniffedBytes - 12 || 8 + length + 4 > first.size())
    return false;
  return (byte(8 + length) | byte(9 + length) << 8) == 8;
}

Result read_header(Bytes file, bool is_whole, Header& header, std::vector<std::byte>& inflated) {
  header = {};
  const bool has_preamble = file.size() >= 132 && std::memcmp(file.data() + 128, "DICM", 4) == 0;
  Parser meta(file, is_whole, header);
  meta.start(has_preamble ? 132 : 0, true, false);
  std::string uid;
  if (const Result result = meta.read_meta(uid); !result.ok()) return result;
  header.syntax = uid.empty() ? guessed_syntax(file, meta.at()) : transfer_syntax(uid);
  if (header.is_directory) return {};
  header.is_bare = is_whole && file.size() - meta.at() < 8;
  if (header.syntax.is_deflated) {
    if (!is_whole) return failed(Code::truncated, "a deflated file is read whole");
    if (const Result result = inflate_rest(file.subspan(meta.at()), inflated); !result.ok()) return result;
    Parser parser(inflated, true, header);
    parser.start(0, true, false);
    const Result result = parser.read_root();
    // Only here is it known how much there is; of other files the caller knows the size.
    header.pixels_bytes = std::min<std::uint64_t>(header.pixels_bytes, inflated.size() - header.pixels_at);
    return result;
  }
  Parser parser(file, is_whole, header);
  parser.start(meta.at(), header.syntax.is_explicit, header.syntax.is_big_endian);
  return parser.read_root();
}

}  // namespace stoker::dicom
