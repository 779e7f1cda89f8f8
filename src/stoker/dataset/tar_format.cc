#include "stoker/dataset/tar_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kWindow = 16384;         // a label, its header and the next header, mostly
constexpr std::uint64_t kMostSpecial = 1 << 20;  // of a pax record or a long name
constexpr std::size_t kMostPatterns = 1'000'000;

struct Header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2],
      user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
static_assert(sizeof(Header) == kTarBlock);

template <std::size_t N>
std::string_view field(const char (&text)[N]) noexcept {
  return {text, ::strnlen(text, N)};
}

// Octal digits, or GNU's binary form for large numbers.
template <std::size_t N>
std::optional<std::uint64_t> number(const char (&text)[N]) noexcept {
  if ((static_cast<unsigned char>(text[0]) & 0x80) != 0) {
    std::uint64_t value = static_cast<unsigned char>(text[0]) & 0x7F;
    for (std::size_t i = 1; i < N; ++i) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(text[i]);
    }
    return value;
  }
  std::uint64_t value = 0;
  std::size_t i = 0;
  while (i < N && text[i] == ' ') ++i;
  for (; i < N && text[i] >= '0' && text[i] <= '7'; ++i) value = value << 3 | static_cast<unsigned>(text[i] - '0');
  for (; i < N; ++i) {
    if (text[i] != ' ' && text[i] != '\0') return std::nullopt;
  }
  return value;  // an empty field is 0
}

// Some old programs summed signed characters.
bool checksum_fits(const Header& header) noexcept {
  const auto stored = number(header.checksum);
  if (!stored) return false;
  std::int64_t plain = 0, with_sign = 0;
  const char* const bytes = reinterpret_cast<const char*>(&header);
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    const bool own = i >= offsetof(Header, checksum) && i < offsetof(Header, checksum) + sizeof header.checksum;
    plain += own ? ' ' : static_cast<unsigned char>(bytes[i]);
    with_sign += own ? ' ' : static_cast<signed char>(bytes[i]);
  }
  return static_cast<std::int64_t>(*stored) == plain || static_cast<std::int64_t>(*stored) == with_sign;
}

template <std::size_t N>
void put_octal(char (&text)[N], std::uint64_t value) {
  for (std::size_t i = N - 1; i-- > 0; value >>= 3) text[i] = static_cast<char>('0' + (value & 7));
  text[N - 1] = '\0';
}

void put_checksum(Header& header) {
  std::memset(header.checksum, ' ', sizeof header.checksum);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) sum += reinterpret_cast<const unsigned char*>(&header)[i];
  for (int i = 5; i >= 0; --i, sum >>= 3) header.checksum[i] = static_cast<char>('0' + (sum & 7));
  header.checksum[6] = '\0';
}

// "<length> <key>=<value>\n", where the length counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (fmt::format("{}", length).size() + rest != length) length = fmt::format("{}", length).size() + rest;
  return fmt::format("{} {}={}\n", length, key, value);
}

std::string block(std::string_view name, std::uint64_t bytes, std::int64_t mtime_s, char type) {
  Header header{};
  // ustar splits a long name at a slash: up to 155 bytes before it, up to 100 after.
  std::size_t split = 0;
  if (name.size() > sizeof header.name) {
    const std::size_t from = name.size() - sizeof header.name - 1;
    const std::size_t slash = name.find('/', from);
    if (slash != std::string_view::npos && slash != 0 && slash <= sizeof header.prefix && slash + 1 < name.size())
      split = slash;
  }
  const std::string_view last = split == 0 ? name : name.substr(split + 1);
  std::memcpy(header.name, last.data(), std::min(last.size(), sizeof header.name));
  std::memcpy(header.prefix, name.data(), split);
  put_octal(header.mode, 0644);
  put_octal(header.uid, 0);
  put_octal(header.gid, 0);
  put_octal(header.size, bytes);
  put_octal(header.mtime,
            static_cast<std::uint64_t>(std::clamp<std::int64_t>(mtime_s, 0, (std::int64_t{1} << 33) - 1)));
  header.type = type;
  std::memcpy(header.magic, "ustar", 6);
  std::memcpy(header.version, "00", 2);
  put_checksum(header);
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

bool fits_ustar(std::string_view name) {
  if (name.size() <= 100) return true;
  const std::size_t slash = name.find('/', name.size() - 101);
  return slash != std::string_view::npos && slash != 0 && slash <= 155 && slash + 1 < name.size();
}

}  // namespace

TarReader::TarReader(const storage::Source& source) : source_(source), size_(source.size_bytes()) {}

void TarReader::fail(std::uint64_t offset, std::string_view cause) const {
  throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}` at byte {}: {}", source_.name(), offset, cause));
}

std::span<const std::byte> TarReader::bytes(std::uint64_t offset, std::uint64_t count) {
  if (const auto view = source_.view(); !view.empty()) return view.subspan(offset, count);
  if (offset < window_at_ || offset + count > window_at_ + window_.size()) {
    window_.resize(std::min(std::max(count, kWindow), size_ - offset));
    window_at_ = offset;
    const storage::Read read{offset, window_};
    source_.read({&read, 1});
  }
  return std::span(window_).subspan(offset - window_at_, count);
}

std::string TarReader::text(std::uint64_t offset, std::uint64_t count, std::string_view what) {
  if (count > kMostSpecial) fail(offset, fmt::format("{} is longer than 1 MiB", what));
  if (count > size_ - offset) fail(offset, fmt::format("the archive ends inside {}", what));
  const std::span<const std::byte> found = bytes(offset, count);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

std::string TarReader::content(const TarMember& member, std::uint64_t most_bytes) {
  return text(member.offset, std::min(member.bytes, most_bytes), "a member");
}

void TarReader::read_pax(std::string_view records, std::uint64_t offset, std::string& name, bool& has_name,
                         std::uint64_t& size, bool& has_size) const {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(end - records.data());
    if (error != std::errc() || length < digits + 3 || length > records.size() || *end != ' ' ||
        records[length - 1] != '\n')
      fail(offset, "a pax header is broken");
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    records.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) fail(offset, "a pax header is broken");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") {
      name = value;
      has_name = true;
    } else if (key == "size") {
      const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (wrong != std::errc() || stop != value.data() + value.size()) fail(offset, "a pax header has a broken size");
      has_size = true;
    }
  }
}

bool TarReader::next(TarMember& member) {
  std::string long_name;
  bool has_name = false, has_size = false;
  std::uint64_t pax_size = 0;
  while (true) {
    if (at_ == size_) {
      if (has_name || has_size) fail(at_, "the archive ends behind the head of a member");
      return false;
    }
    if (size_ - at_ < kTarBlock) fail(at_, "the archive ends inside a header");
    Header header;
    std::memcpy(&header, bytes(at_, kTarBlock).data(), sizeof header);
    const char* const raw = reinterpret_cast<const char*>(&header);
    if (std::all_of(raw, raw + kTarBlock, [](char c) { return c == '\0'; })) {
      at_ = size_;
      return false;
    }
    if (!checksum_fits(header)) fail(at_, at_ == 0 ? "it is not a tar archive" : "a header's checksum is wrong");
    const auto stated = number(header.size);
    if (!stated) fail(at_, "a header has a broken size");
    const std::uint64_t content = at_ + kTarBlock;
    const bool special = header.type == 'x' || header.type == 'g' || header.type == 'L' || header.type == 'K';
    const std::uint64_t bytes_of = has_size && !special ? pax_size : *stated;
    const bool has_content = header.type != '1' && header.type != '2' && header.type != '3' && header.type != '4' &&
                             header.type != '5' && header.type != '6';
    const std::uint64_t length = has_content ? bytes_of : 0;
    if (length > size_ - content) fail(content, "the archive ends inside a member");
    at_ = std::min(size_, content + std::min(tar_padded(length), size_ - content));
    if (special) {
      if (header.type == 'L') {
        long_name = text(content, length, "a long name");
        long_name.resize(std::min(long_name.size(), long_name.find('\0')));
        has_name = true;
      } else if (header.type == 'x') {
        read_pax(text(content, length, "a pax header"), content, long_name, has_name, pax_size, has_size);
      }
      continue;
    }
    const bool ustar = std::memcmp(header.magic, "ustar\0", 6) == 0;
    if (has_name) {
      member.name = std::move(long_name);
    } else {
      member.name = ustar && header.prefix[0] != '\0' ? fmt::format("{}/{}", field(header.prefix), field(header.name))
                                                      : std::string(field(header.name));
    }
    member.offset = content;
    member.bytes = length;
    member.is_file = (header.type == '0' || header.type == '\0' || header.type == '7') && !member.name.ends_with('/');
    return true;
  }
}

std::string tar_header(std::string_view name, std::uint64_t bytes, std::int64_t mtime_s) {
  std::string records;
  if (!fits_ustar(name)) records += pax_record("path", name);
  constexpr std::uint64_t kMostOctal = (std::uint64_t{1} << 33) - 1;
  if (bytes > kMostOctal) records += pax_record("size", fmt::format("{}", bytes));
  std::string out;
  if (!records.empty()) {
    out = block("pax_header", records.size(), mtime_s, 'x') + records;
    out.resize(tar_padded(out.size()), '\0');
  }
  return out + block(name, bytes > kMostOctal ? 0 : bytes, mtime_s, '0');
}

std::vector<std::string> expand_braces(const std::string& pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string::npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  const auto refuse = [&](std::string_view what) {
    return Error(ErrorKind::usage, fmt::format("cannot read the pattern `{}`: {}", pattern, what),
                 "a range is written {00000..00099}, a choice {a,b}");
  };
  if (close == std::string::npos) throw refuse("a brace is opened and never closed");
  const std::string inside = pattern.substr(open + 1, close - open - 1);
  if (inside.find('{') != std::string::npos) throw refuse("braces stand inside braces");
  std::vector<std::string> middles;
  if (const std::size_t dots = inside.find(".."); dots != std::string::npos) {
    const std::string first = inside.substr(0, dots), last = inside.substr(dots + 2);
    const auto parse = [&](const std::string& text) {
      std::uint64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size())
        throw refuse(fmt::format("`{}` is not a number", text));
      return value;
    };
    const std::uint64_t from = parse(first), to = parse(last);
    if (from > to) throw refuse("the range ends before it begins");
    if (to - from >= kMostPatterns) throw refuse("the range has more than a million numbers");
    const bool padded = first.size() > 1 && first.front() == '0';
    for (std::uint64_t i = from; i <= to; ++i) middles.push_back(fmt::format("{:0{}}", i, padded ? first.size() : 1));
  } else {
    for (std::size_t at = 0; at <= inside.size();) {
      const std::size_t comma = std::min(inside.find(',', at), inside.size());
      middles.push_back(inside.substr(at, comma - at));
      at = comma + 1;
    }
  }
  const std::vector<std::string> tails = expand_braces(pattern.substr(close + 1));
  if (middles.size() * tails.size() > kMostPatterns) throw refuse("it stands for more than a million names");
  std::vector<std::string> out;
  for (const std::string& middle : middles) {
    for (const std::string& tail : tails) out.push_back(pattern.substr(0, open) + middle + tail);
  }
  return out;
}

}  // namespace stoker::dataset
