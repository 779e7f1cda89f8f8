#include "stoker/dataset/tar_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kPaxLook = 16384;        // of a block that may be a pax header
constexpr std::uint64_t kSearch = 1 << 20;       // read at once while a header is looked for
constexpr std::uint64_t kMostSpecial = 1 << 20;  // of a pax record or a long name
constexpr std::size_t kMostPatterns = 1'000'000;
constexpr std::uint64_t kMostOctal = (std::uint64_t{1} << 33) - 1;  // the largest size that a ustar header can say

constexpr const char* kNotTar = "it is not a tar archive";
constexpr const char* kBadChecksum = "a header's checksum is wrong";

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

bool is_zero(std::span<const std::byte> block) noexcept {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

// A header that is not taken for one by chance: POSIX and GNU both write the magic.
bool is_header(std::span<const std::byte> block) noexcept {
  if (block.size() < kTarBlock) return false;
  Header header;
  std::memcpy(&header, block.data(), sizeof header);
  return std::memcmp(header.magic, "ustar", 5) == 0 && checksum_fits(header) && number(header.size).has_value();
}

TarKind kind_of(char type) noexcept {
  switch (type) {
    case '0':
    case '\0':
    case '7':
      return TarKind::file;
    case '1':
      return TarKind::hard_link;
    case '2':
      return TarKind::symbolic_link;
    case 'S':
      return TarKind::sparse;
    default:
      return TarKind::other;
  }
}

// What a pax header or a GNU long name says of the member behind it.
struct PaxFields {
  std::optional<std::string> name, link, sparse_name;
  std::optional<std::uint64_t> size;
  bool is_sparse = false;
};

// The first "<length> <key>=<value>\n" of `records`, without the length and the line feed; nothing where there is none.
std::optional<std::string_view> pax_record_at(std::string_view records, std::size_t& length) noexcept {
  const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
  const auto digits = static_cast<std::size_t>(end - records.data());
  if (error != std::errc() || length < digits + 3 || length > records.size() || *end != ' ' ||
      records[length - 1] != '\n')
    return std::nullopt;
  const std::string_view record = records.substr(digits + 1, length - digits - 2);
  return record.find('=') == std::string_view::npos ? std::nullopt : std::optional(record);
}

// Returns the cause where the records are broken, else null.
const char* read_pax(std::string_view records, PaxFields& fields) {
  while (!records.empty()) {
    std::size_t length = 0;
    const std::optional<std::string_view> record = pax_record_at(records, length);
    if (!record) return "a pax header is broken";
    records.remove_prefix(length);
    const std::string_view key = record->substr(0, record->find('=')), value = record->substr(key.size() + 1);
    if (key == "path") {
      fields.name = value;
    } else if (key == "linkpath") {
      fields.link = value;
    } else if (key.starts_with("GNU.sparse.")) {
      fields.is_sparse = true;
      if (key == "GNU.sparse.name") fields.sparse_name = value;
    } else if (key == "size") {
      std::uint64_t size = 0;
      const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (wrong != std::errc() || stop != value.data() + value.size()) return "a pax header has a broken size";
      fields.size = size;
    }
  }
  return nullptr;
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

// Thrown inside the reader only.
struct TarReader::Damage {
  std::uint64_t header = 0;  // the block that is bad, or whose content is
  std::uint64_t offset = 0;  // for messages
  std::string cause;
  bool loses_a_name = false;  // the header behind it has no name of its own
  bool is_first = false;      // the first header of the file: it may be no archive at all
};

TarReader::TarReader(const storage::Source& source, std::vector<TarGap>* gaps)
    : own_window_(std::in_place, source), window_(*own_window_), gaps_(gaps), size_(source.size_bytes()) {}

TarReader::TarReader(TarWindow& window, std::vector<TarGap>* gaps)
    : window_(window), gaps_(gaps), size_(window.source().size_bytes()) {}

Error TarReader::error(const Damage& damage) const {
  return Error(ErrorKind::corrupt,
               fmt::format("cannot read `{}` at byte {}: {}", window_.source().name(), damage.offset, damage.cause),
               format_text("{} goes on with the members that can be found", option("on_error", "skip")))
      .about("on_error");
}

std::string TarReader::text(std::uint64_t offset, std::uint64_t count, std::string_view what) {
  const std::uint64_t header = offset - kTarBlock;
  if (count > kMostSpecial) throw Damage{header, offset, fmt::format("{} is longer than 1 MiB", what), true};
  if (count > size_ - offset) throw Damage{header, offset, fmt::format("the archive ends inside {}", what), true};
  const std::span<const std::byte> found = bytes(offset, count);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

std::string TarReader::content(const TarMember& member, std::uint64_t most_bytes) {
  try {
    return text(member.offset, std::min(member.bytes, most_bytes), "a member");
  } catch (const Damage& damage) {
    throw error(damage);
  }
}

template <typename Wanted>
std::uint64_t TarReader::find_block(std::uint64_t offset, Wanted is_wanted) {
  while (offset < size_) {
    const std::uint64_t count = std::min(kSearch, size_ - offset);
    const std::span<const std::byte> found = bytes(offset, count);
    for (std::uint64_t at = 0; at < count; at += kTarBlock) {
      if (is_wanted(found.subspan(at, std::min(kTarBlock, count - at)))) return offset + at;
    }
    offset += count;
  }
  return size_;
}

bool TarReader::skip_zeros() {
  const std::uint64_t zeros = at_;
  const std::uint64_t end = find_block(at_, [](std::span<const std::byte> block) { return !is_zero(block); });
  at_ = end;
  if (end == size_) {
    end_ = TarEnd::marker;
    return false;
  }
  if (end - zeros >= 2 * kTarBlock && size_ - end >= kTarBlock && is_header(bytes(end, kTarBlock))) return true;
  throw Damage{zeros, zeros, "there are zeros where a header should be", false};
}

// Whether the header at `header`, the first one behind damage, may have its name in a block that is lost.
bool TarReader::may_lack_its_name(const Damage& damage, std::uint64_t header) {
  if (damage.loses_a_name) return true;
  Header found;
  std::memcpy(&found, bytes(header, kTarBlock).data(), sizeof found);
  if (field(found.name).size() == sizeof found.name) return true;
  if (header - damage.header < 2 * kTarBlock) return false;
  const std::uint64_t content = damage.header + kTarBlock;
  const std::span<const std::byte> block = bytes(content, std::min(kPaxLook, header - content));
  std::size_t length = 0;
  return pax_record_at({reinterpret_cast<const char*>(block.data()), block.size()}, length).has_value();
}

bool TarReader::next(TarMember& member) {
  std::optional<TarGap> gap;
  bool is_nameless = false, looks_foreign = false;
  for (;;) {
    const std::uint64_t begin = at_;
    try {
      const bool found = read_member(member);
      if (found && is_nameless) {
        is_nameless = false;
        gap->bytes = at_ - gap->offset;
        continue;
      }
      if (gap) gaps_->push_back(std::move(*gap));
      return found;
    } catch (const Damage& damage) {
      if (gaps_ == nullptr) throw error(damage);
      if (!gap) {
        gap = TarGap{begin, 0, damage.cause};
        looks_foreign = damage.is_first;
      }
      at_ = find_block(damage.header + kTarBlock, is_header);
      gap->bytes = at_ - gap->offset;
      if (looks_foreign && at_ < size_) gap->cause = kBadChecksum;  // a later header is whole: it is an archive
      is_nameless = at_ < size_ && may_lack_its_name(damage, at_);
    }
  }
}

// GNU's old sparse files: blocks of their map that lie between header and content. A byte of each says whether another
// one follows.
std::uint64_t TarReader::sparse_map_bytes(std::uint64_t header) {
  constexpr std::uint64_t kMoreInHeader = 482, kMoreInBlock = 504;
  std::uint64_t at = header, more = kMoreInHeader;
  while (bytes(at, kTarBlock)[more] != std::byte{0}) {
    at += kTarBlock, more = kMoreInBlock;
    if (size_ - at < kTarBlock) throw Damage{header, at, "the archive ends inside a header", false};
  }
  return at - header;
}

bool TarReader::read_member(TarMember& member) {
  PaxFields pax;
  while (true) {
    const std::uint64_t at = at_;
    const auto damage = [&](std::string cause) { return Damage{at, at, std::move(cause), false}; };
    if (at == size_) {
      if (pax.name || pax.size) throw damage("the archive ends behind the head of a member");
      return false;
    }
    if (size_ - at < kTarBlock && !is_zero(bytes(at, size_ - at))) throw damage("the archive ends inside a header");
    Header header{};
    if (size_ - at >= kTarBlock) std::memcpy(&header, bytes(at, kTarBlock).data(), sizeof header);
    if (is_zero(std::as_bytes(std::span(&header, 1)))) {
      if (pax.name || pax.size) throw damage("there are zeros where a header should be");
      if (!skip_zeros()) return false;
      continue;
    }
    if (!checksum_fits(header)) throw Damage{at, at, at == 0 ? kNotTar : kBadChecksum, false, at == 0};
    const auto stated = number(header.size);
    if (!stated) throw damage("a header has a broken size");
    const std::uint64_t content = at + kTarBlock + (header.type == 'S' ? sparse_map_bytes(at) : 0);
    const bool special = header.type == 'x' || header.type == 'g' || header.type == 'L' || header.type == 'K';
    const std::uint64_t bytes_of = pax.size && !special ? *pax.size : *stated;
    const bool has_content = header.type != '1' && header.type != '2' && header.type != '3' && header.type != '4' &&
                             header.type != '5' && header.type != '6';
    const std::uint64_t length = has_content ? bytes_of : 0;
    if (length > size_ - content) throw Damage{at, content, "the archive ends inside a member", special};
    end_ = tar_padded(length) > size_ - content ? TarEnd::in_padding : TarEnd::none;
    at_ = end_ == TarEnd::in_padding ? size_ : content + tar_padded(length);
    if (special) {
      if (header.type == 'L' || header.type == 'K') {
        std::string name = text(content, length, "a long name");
        name.resize(std::min(name.size(), name.find('\0')));
        (header.type == 'L' ? pax.name : pax.link) = std::move(name);
      } else if (header.type == 'x') {
        if (const char* const cause = read_pax(text(content, length, "a pax header"), pax); cause != nullptr) {
          throw Damage{at, content, cause, true};
        }
      }
      continue;
    }
    const bool ustar = std::memcmp(header.magic, "ustar\0", 6) == 0;
    if (pax.sparse_name || pax.name) {
      member.name = std::move(pax.sparse_name ? *pax.sparse_name : *pax.name);
    } else {
      member.name = ustar && header.prefix[0] != '\0' ? fmt::format("{}/{}", field(header.prefix), field(header.name))
                                                      : std::string(field(header.name));
    }
    member.offset = content;
    member.bytes = length;
    member.kind = pax.is_sparse ? TarKind::sparse : kind_of(header.type);
    if (member.name.ends_with('/')) member.kind = TarKind::other;
    const bool is_link = member.kind == TarKind::hard_link || member.kind == TarKind::symbolic_link;
    member.link = !is_link ? std::string() : pax.link ? std::move(*pax.link) : std::string(field(header.link));
    return true;
  }
}

std::uint64_t tar_header_bytes(std::string_view name, std::uint64_t bytes) {
  return fits_ustar(name) && bytes <= kMostOctal ? kTarBlock : tar_header(name, bytes, 0).size();
}

std::string tar_header(std::string_view name, std::uint64_t bytes, std::int64_t mtime_s) {
  std::string records;
  if (!fits_ustar(name)) records += pax_record("path", name);
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
