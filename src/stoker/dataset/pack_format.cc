#include "stoker/dataset/pack_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/round.h"
#include "stoker/base/version.h"

namespace stoker::dataset {
namespace {

constexpr std::array<std::string_view, 2> kKinds = {"raw", "encoded"};
constexpr std::array<std::string_view, 3> kLabelKinds = {"none", "integer", "real"};
constexpr std::string_view kNpyMagic("\x93NUMPY\x01\x00", 8);
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 48;

std::string descr_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return "|u1";
    case DType::i8:
      return "|i1";
    case DType::boolean:
      return "|b1";
    case DType::u16:
      return "<u2";
    case DType::i16:
      return "<i2";
    case DType::u32:
      return "<u4";
    case DType::i32:
      return "<i4";
    case DType::u64:
      return "<u8";
    case DType::i64:
      return "<i8";
    case DType::f16:
      return "<f2";
    case DType::bf16:
      return "<V2";
    case DType::f32:
      return "<f4";
    case DType::f64:
      return "<f8";
  }
  return {};
}

std::string index_descr(LabelKind label_kind) {
  return fmt::format(
      "[('id', '<i8'), ('label', '<{}8'), ('offset', '<u8'), ('bytes', '<u8'), ('xxh3', '<u8'), ('shard', '<u4'), "
      "('height', '<u4'), ('width', '<u4'), ('channels', '<u4'), ('frames', '<u8'), ('source_bytes', '<u8'), "
      "('source_mtime_ns', '<i8')]",
      label_kind == LabelKind::real ? 'f' : 'i');
}

std::string index_dictionary(std::uint64_t count, LabelKind label_kind) {
  return fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': ({},), }}", index_descr(label_kind), count);
}

// `dictionary`, spaces and a line feed, so that what follows begins at a multiple of `align`, or at `align` itself.
std::string with_magic(std::string dictionary, std::size_t align) {
  const std::size_t plain = kNpyMagic.size() + 2 + dictionary.size() + 1;
  const std::size_t whole = round_up(plain, align);
  dictionary.append(whole - plain, ' ');
  dictionary += '\n';
  std::string out(kNpyMagic);
  out += static_cast<char>(dictionary.size() & 0xFF);
  out += static_cast<char>(dictionary.size() >> 8);
  return out + dictionary;
}

std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

// Reads fields of a JSON object that may hold anything; each failure names the field.
class Fields {
 public:
  Fields(const Json& json, std::string_view address, std::string where)
      : json_(json), address_(address), where_(std::move(where)) {
    if (!json_.is_object()) fail("", "is not an object");
  }

  [[noreturn]] void fail(std::string_view field, std::string_view what) const {
    throw Error(
        ErrorKind::corrupt,
        fmt::format("cannot open `{}`: {} of pack.json {}", address_,
                    field.empty() ? (where_.empty() ? "the whole" : where_) : fmt::format("`{}{}`", where_, field),
                    what),
        "make the pack again, or look at it with `stoker check`");
  }
  const Json& at(const char* field) const {
    const auto found = json_.find(field);
    if (found == json_.end()) fail(field, "is missing");
    return *found;
  }
  bool has(const char* field) const { return json_.contains(field); }
  std::uint64_t number(const char* field) const {
    const Json& value = at(field);
    if (!value.is_natural()) fail(field, "is not a whole number");
    return value.get<std::uint64_t>();
  }
  std::string text(const char* field) const {
    const Json& value = at(field);
    if (!value.is_string()) fail(field, "is not a text");
    return value.get<std::string>();
  }
  std::uint64_t checksum(const char* field) const {
    const std::string digits = text(field);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) fail(field, "is not a number in hexadecimal");
    return value;
  }
  const Json& list(const char* field) const {
    const Json& value = at(field);
    if (!value.is_array()) fail(field, "is not a list");
    return value;
  }
  std::vector<std::string> texts(const char* field) const {
    std::vector<std::string> out;
    for (const Json& value : list(field)) {
      if (!value.is_string()) fail(field, "holds something that is not a text");
      out.push_back(value.get<std::string>());
    }
    return out;
  }
  template <std::size_t N>
  std::size_t choice(const char* field, const std::array<std::string_view, N>& words) const {
    const auto found = std::find(words.begin(), words.end(), text(field));
    if (found == words.end()) fail(field, "is a word that this version does not know");
    return static_cast<std::size_t>(found - words.begin());
  }

 private:
  const Json& json_;
  std::string_view address_;
  std::string where_;
};

// A name of a file in the pack's own folder, and nothing else.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace

std::string_view name(PackKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}

PackKind parse_pack_kind(std::string_view text) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), text);
  if (found != kKinds.end()) return static_cast<PackKind>(found - kKinds.begin());
  const std::string near = nearest(text, kKinds.data(), kKinds.size());
  throw Error(ErrorKind::usage, fmt::format("there is no kind of pack `{}`: it is raw or encoded", text),
              near.empty() ? std::string() : fmt::format("did you mean `{}`?", near));
}

const PackFile* PackManifest::file(std::string_view name) const noexcept {
  const auto found = std::find_if(files.begin(), files.end(), [&](const PackFile& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

PackManifest parse_manifest(std::string_view text, std::string_view address) {
  const Json json = Json::parse_or_null(text);
  if (!json.is_object() || json.value("schema", Json()) != kPackSchema) {
    throw Error(ErrorKind::corrupt,
                fmt::format("cannot open `{}`: its pack.json is not that of a Stoker pack", address));
  }
  const Fields fields(json, address, "");
  const std::uint64_t version = fields.number("version");
  if (version > kPackVersion) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot open `{}`: it is a pack of version {}, written by stoker {}; stoker {} reads packs "
                            "up to version {}",
                            address, version, fields.has("stoker_version") ? fields.text("stoker_version") : "unknown",
                            kVersion, kPackVersion),
                "update stoker");
  }
  if (version == 0) fields.fail("version", "is 0");
  PackManifest pack;
  pack.stoker_version = fields.text("stoker_version");
  pack.kind = static_cast<PackKind>(fields.choice("kind", kKinds));
  pack.count = fields.number("count");
  if (pack.count > kMostSamples) fields.fail("count", "is above 2^48");
  pack.fingerprint = fields.checksum("fingerprint");
  pack.content = fields.text("content");
  if (pack.kind == PackKind::raw) {
    const std::optional<DType> dtype = parse_dtype(fields.text("dtype"));
    if (!dtype) fields.fail("dtype", "is a word that this version does not know");
    pack.dtype = *dtype;
    std::uint64_t elements = size_of(pack.dtype);
    for (const Json& value : fields.list("shape")) {
      if (!value.is_natural()) fields.fail("shape", "holds something that is no size");
      pack.shape.push_back(value.get<std::uint64_t>());
      if (pack.shape.back() == 0 || __builtin_mul_overflow(elements, pack.shape.back(), &elements)) {
        fields.fail("shape", "is of no size that could be");
      }
    }
    if (pack.shape.size() > 7) fields.fail("shape", "has more than 7 dimensions");
  }
  if (fields.has("rate_hz")) pack.rate_hz = static_cast<std::uint32_t>(fields.number("rate_hz"));
  pack.label_kind = static_cast<LabelKind>(fields.choice("label_kind", kLabelKinds));
  pack.classes = fields.texts("classes");
  pack.columns = fields.texts("columns");
  pack.source = fields.text("source");
  pack.settings = fields.at("settings").dump();
  for (const Json& value : fields.list("shards")) {
    const Fields shard(value, address, "shards.");
    pack.shards.push_back({shard.text("name"), shard.number("bytes"), shard.number("count")});
    const std::string& name = pack.shards.back().name;
    if (!is_plain_name(name) || !name.ends_with(pack.kind == PackKind::raw ? ".npy" : ".tar"))
      shard.fail("name", "is not the name of a shard");
  }
  if (pack.shards.size() > UINT32_MAX) fields.fail("shards", "has more than 2^32 entries");
  for (const Json& value : fields.list("files")) {
    const Fields file(value, address, "files.");
    pack.files.push_back({file.text("name"), file.number("bytes"), file.checksum("xxh3")});
    if (!is_plain_name(pack.files.back().name)) file.fail("name", "is not the name of a file in the pack");
  }
  for (const Json& value : fields.list("skipped")) {
    const Fields skipped(value, address, "skipped.");
    pack.skipped.push_back({skipped.text("name"), skipped.text("cause")});
  }
  for (const std::string_view needed : {kPackIndex, kPackNames}) {
    if (pack.file(needed) == nullptr) fields.fail("files", fmt::format("lacks {}", needed));
  }
  if (!pack.columns.empty() && pack.file(kPackColumns) == nullptr) fields.fail("files", "lacks columns.csv");
  return pack;
}

std::string to_json(const PackManifest& pack) {
  Json json = {{"schema", kPackSchema},   {"version", kPackVersion}, {"stoker_version", pack.stoker_version},
               {"kind", name(pack.kind)}, {"count", pack.count},     {"fingerprint", hex(pack.fingerprint)},
               {"content", pack.content}};
  if (pack.kind == PackKind::raw) {
    json["dtype"] = stoker::name(pack.dtype);
    json["shape"] = pack.shape;
  }
  if (pack.rate_hz != 0) json["rate_hz"] = pack.rate_hz;
  json["label_kind"] = kLabelKinds[static_cast<std::size_t>(pack.label_kind)];
  json["classes"] = pack.classes;
  json["columns"] = pack.columns;
  json["source"] = pack.source;
  json["settings"] = Json::try_parse(pack.settings).value_or(Json::object());
  json["shards"] = Json::array();
  for (const PackShard& shard : pack.shards)
    json["shards"].push_back({{"name", shard.name}, {"bytes", shard.bytes}, {"count", shard.count}});
  json["files"] = Json::array();
  for (const PackFile& file : pack.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3", hex(file.xxh3)}});
  json["skipped"] = Json::array();
  for (const PackSkipped& skipped : pack.skipped)
    json["skipped"].push_back({{"name", skipped.name}, {"cause", skipped.cause}});
  return json.dump(1) + "\n";
}

std::string shard_name(PackKind kind, std::uint64_t number) {
  return fmt::format("data-{:05}.{}", number, kind == PackKind::raw ? "npy" : "tar");
}

std::uint64_t shard_number(std::string_view name) noexcept {
  std::uint64_t number = 0;
  const std::size_t dash = name.find('-');
  if (dash != std::string_view::npos) std::from_chars(name.data() + dash + 1, name.data() + name.size(), number);
  return number;
}

std::string index_header(std::uint64_t count, LabelKind label_kind) {
  return with_magic(index_dictionary(count, label_kind), 64);
}

std::span<const std::byte> index_rows(std::span<const std::byte> file, std::uint64_t count, LabelKind label_kind,
                                      std::string_view address) {
  const auto broken = [&](std::string_view what) {
    return Error(ErrorKind::corrupt, fmt::format("cannot open `{}`: its index.npy {}", address, what),
                 "make the pack again, or look at it with `stoker check`");
  };
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.size() < 10 || !text.starts_with(kNpyMagic)) throw broken("has no npy header");
  const std::size_t length = static_cast<unsigned char>(text[8]) | std::size_t{static_cast<unsigned char>(text[9])}
                                                                       << 8;
  if (text.size() - 10 < length) throw broken("ends inside its header");
  if (!text.substr(10, length).starts_with(index_dictionary(count, label_kind))) {
    throw broken(fmt::format("does not have the {} rows and the fields that pack.json says", count));
  }
  const std::span<const std::byte> rows = file.subspan(10 + length);
  if (rows.size() / sizeof(PackRow) != count || rows.size() % sizeof(PackRow) != 0) {
    throw broken(fmt::format("holds {} bytes of rows, not {} rows of {}", rows.size(), count, sizeof(PackRow)));
  }
  return rows;
}

std::string npy_header(DType dtype, std::span<const std::uint64_t> shape) {
  std::string dims;
  for (const std::uint64_t n : shape) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", n);
  if (shape.size() == 1) dims += ',';
  return with_magic(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr_of(dtype), dims),
                    kPackDataOffset);
}

void append_name(std::string& out, std::string_view name) {
  for (const char c : name) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        out += c;
    }
  }
  out += '\n';
}

std::string read_name(std::string_view line) {
  if (line.find('\\') == std::string_view::npos) return std::string(line);
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      out += line[i];
      continue;
    }
    const char next = line[++i];
    out += next == 'n' ? '\n' : next == 'r' ? '\r' : next;
  }
  return out;
}

Label label_of(const PackRow& row, LabelKind kind) noexcept {
  if (kind == LabelKind::real) return {-1, static_cast<float>(std::bit_cast<double>(row.label))};
  if (kind == LabelKind::integer) return {static_cast<std::int64_t>(row.label), 0};
  return {};
}

std::uint64_t label_bits(const Label& label, LabelKind kind) noexcept {
  if (kind == LabelKind::real) return std::bit_cast<std::uint64_t>(static_cast<double>(label.real));
  return static_cast<std::uint64_t>(kind == LabelKind::integer ? label.integer : -1);
}

}  // namespace stoker::dataset
