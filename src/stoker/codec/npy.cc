// numpy's .npy, versions 1 to 3. The header is a Python dict literal; only its three known keys and plain values are
// read.
#include <algorithm>
#include <cstring>
#include <optional>

#include "stoker/codec/array.h"
#include "stoker/codec/byte_order.h"
#include "stoker/codec/table.h"

namespace stoker::codec {
namespace {

constexpr std::size_t kMagicBytes = 8;               // magic and version
constexpr std::uint32_t kMaxHeaderBytes = 1u << 20;  // numpy itself refuses 10,000 by default

// Reads the header text from left to right. Every step leaves `at` inside or at the end of the text.
class Reader {
 public:
  explicit Reader(std::string_view text) noexcept : text_(text) {}

  std::size_t at() const noexcept { return at_; }
  char peek() noexcept {
    while (at_ < text_.size() && std::strchr(" \t\r\n\f", text_[at_]) != nullptr && text_[at_] != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char wanted) noexcept {
    if (peek() != wanted || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) noexcept {
    peek();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string_view> string() noexcept {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') return std::nullopt;
      ++at_;
    }
    if (at_ == text_.size()) return std::nullopt;
    return text_.substr(begin, at_++ - begin);
  }
  std::optional<std::uint64_t> number() noexcept {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    std::uint64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, 10u, &value) ||
          __builtin_add_overflow(value, static_cast<unsigned>(text_[at_] - '0'), &value)) {
        return std::nullopt;
      }
      ++at_;
    }
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return value;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

Result read_descr(std::string_view descr, std::uint64_t offset, ByteOrders orders, ArrayInfo& info) noexcept {
  struct Known {
    std::string_view text;
    DType dtype;
  };
  static constexpr Known kKnown[] = {{"u1", DType::u8},     {"i1", DType::i8},   {"u2", DType::u16}, {"i2", DType::i16},
                                     {"u4", DType::u32},    {"i4", DType::i32},  {"u8", DType::u64}, {"i8", DType::i64},
                                     {"f2", DType::f16},    {"V2", DType::bf16}, {"f4", DType::f32}, {"f8", DType::f64},
                                     {"b1", DType::boolean}};
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view kind = order == '<' || order == '>' || order == '|' || order == '=' ? descr.substr(1) : descr;
  if (kind.starts_with('O')) return failed(Code::unsupported, "an array of Python objects", offset);
  for (const Known& known : kKnown) {
    if (kind != known.text) continue;
    info.swap_bytes = order == '>' && size_of(known.dtype) > 1;
    if (info.swap_bytes && orders == ByteOrders::little)
      return failed(Code::unsupported, "big-endian elements", offset);
    info.dtype = known.dtype;
    return {};
  }
  return failed(Code::unsupported, "an element type that Stoker does not read (text, complex, dates or records)",
                offset);
}

Result read_shape(Reader& reader, std::uint64_t offset, ArrayInfo& info) noexcept {
  if (!reader.take('(')) return failed(Code::corrupt, "the shape is not a tuple", offset + reader.at());
  while (!reader.take(')')) {
    const auto size = reader.number();
    if (!size) return failed(Code::corrupt, "the shape holds something that is no size", offset + reader.at());
    if (info.rank == info.shape.size()) {
      return failed(Code::unsupported, "more than 8 dimensions", offset + reader.at());
    }
    info.shape[info.rank++] = *size;
    if (!reader.take(',') && reader.peek() != ')') {
      return failed(Code::corrupt, "the shape is not a tuple", offset + reader.at());
    }
  }
  return {};
}

Result read_header(std::string_view text, std::uint64_t offset, ByteOrders orders, ArrayInfo& info) noexcept {
  Reader reader(text);
  bool has_descr = false, has_order = false, has_shape = false, fortran = false;
  const auto broken = [&](const char* cause) { return failed(Code::corrupt, cause, offset + reader.at()); };
  if (!reader.take('{')) return broken("the header is not a dictionary");
  while (!reader.take('}')) {
    const auto key = reader.string();
    if (!key || !reader.take(':')) return broken("the header is not a dictionary");
    if (*key == "descr" && !has_descr) {
      has_descr = true;
      if (reader.peek() == '[') return failed(Code::unsupported, "records (a structured dtype)", offset + reader.at());
      const auto descr = reader.string();
      if (!descr) return broken("the element type is not a string");
      if (const Result result = read_descr(*descr, offset + reader.at(), orders, info); !result.ok()) return result;
    } else if (*key == "fortran_order" && !has_order) {
      has_order = true;
      fortran = reader.take_word("True");
      if (!fortran && !reader.take_word("False")) return broken("fortran_order is neither True nor False");
    } else if (*key == "shape" && !has_shape) {
      has_shape = true;
      if (const Result result = read_shape(reader, offset, info); !result.ok()) return result;
    } else {
      return broken("an unknown or repeated key in the header");
    }
    if (!reader.take(',') && reader.peek() != '}') return broken("the header is not a dictionary");
  }
  if (!has_descr || !has_order || !has_shape) return broken("the header lacks descr, fortran_order or shape");
  const auto long_ones = std::ranges::count_if(info.dims(), [](std::uint64_t n) { return n > 1; });
  if (fortran && long_ones > 1) return failed(Code::unsupported, "Fortran order (save it with order=\"C\")", offset);
  return {};
}

Result data_size(ArrayInfo& info) noexcept {
  info.data_bytes = 0;
  if (std::ranges::find(info.dims(), 0u) != info.dims().end()) return {};
  std::uint64_t bytes = size_of(info.dtype);
  for (const std::uint64_t n : info.dims()) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) {
      return failed(Code::too_large, "the shape's product does not fit in 64 bits");
    }
  }
  info.data_bytes = bytes;
  return {};
}

}  // namespace

Result probe_npy(Bytes bytes, std::uint64_t file_bytes, ArrayInfo& info, ByteOrders orders) noexcept {
  info = {};
  if (bytes.size() < kMagicBytes) return failed(Code::truncated, "shorter than a npy header", bytes.size());
  if (std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) return failed(Code::corrupt, "no npy header", 0);
  const auto version = static_cast<std::uint8_t>(bytes[6]);
  if (version < 1 || version > 3) return failed(Code::unsupported, "a npy version that is not 1, 2 or 3", 6);
  const std::size_t begin = kMagicBytes + (version == 1 ? 2 : 4);
  if (bytes.size() < begin) return failed(Code::truncated, "shorter than a npy header", bytes.size());
  const std::uint32_t length = version == 1 ? little16(&bytes[kMagicBytes]) : little32(&bytes[kMagicBytes]);
  if (length > kMaxHeaderBytes) return failed(Code::corrupt, "a header longer than 1 MiB", kMagicBytes);
  if (bytes.size() - begin < length) return failed(Code::truncated, "the header ends early", bytes.size());
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  if (const Result result = read_header(text, begin, orders, info); !result.ok()) return result;
  if (const Result result = data_size(info); !result.ok()) return result;
  info.data_offset = begin + length;
  if (file_bytes < info.data_offset || file_bytes - info.data_offset < info.data_bytes) {
    return failed(Code::truncated, "fewer elements than the shape says", file_bytes);
  }
  return {};
}

Result decode_npy(Bytes bytes, const ArrayInfo& info, std::byte* into, Scratch&) noexcept {
  if (info.data_offset > bytes.size() || bytes.size() - info.data_offset < info.data_bytes) {
    return failed(Code::truncated, "fewer elements than the shape says", bytes.size());
  }
  if (info.data_bytes != 0) std::memcpy(into, bytes.data() + info.data_offset, info.data_bytes);
  return {};
}

extern constinit const Codec kNpy{.name = "npy",
                                  .title = "NPY",
                                  .article = "an",
                                  .extensions = {"npy"},
                                  .magic = {{{0, "\x93NUMPY"}}},
                                  .decoder = ArrayCodec{[](Bytes bytes, ArrayInfo& info, Scratch&) noexcept {
                                                          return probe_npy(bytes, bytes.size(), info);
                                                        },
                                                        decode_npy, /*is_plain=*/true}};

}  // namespace stoker::codec
