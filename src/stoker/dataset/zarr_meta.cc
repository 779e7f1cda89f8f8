#include "stoker/dataset/zarr_meta.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::dataset {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 56;

[[noreturn]] void refuse_zarr(std::string_view subject, std::string what) {
  throw Error(ErrorKind::unsupported, fmt::format("cannot read `{}`: this version does not read {}", subject, what));
}
[[noreturn]] void damaged_zarr(std::string_view subject, std::string cause) {
  throw Error(ErrorKind::corrupt, fmt::format("cannot read `{}`: {}", subject, cause));
}

// A short form of any value, for messages.
std::string shown(const Json& value) {
  std::string text = value.is_string() ? value.text() : value.dump();
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

std::vector<std::uint64_t> read_shape_of(const Json& json, const char* key, std::string_view subject) {
  const Json& list = json[key];
  if (!list.is_array()) damaged_zarr(subject, fmt::format("`{}` is not a list", key));
  if (list.empty() || list.size() > codec::kMaxAxes) {
    refuse_zarr(subject, fmt::format("arrays of {} axes", list.size()));
  }
  std::vector<std::uint64_t> shape;
  std::uint64_t elements = 1;
  for (const Json& item : list) {
    const auto value = item.as<std::uint64_t>();
    if (!value) damaged_zarr(subject, fmt::format("`{}` has `{}`, which is not a size", key, shown(item)));
    if (*value == 0) damaged_zarr(subject, fmt::format("`{}` has an axis of 0: there is no element", key));
    if (__builtin_mul_overflow(elements, *value, &elements) || elements > kMostElements) {
      damaged_zarr(subject, fmt::format("`{}` has more elements than any store holds", key));
    }
    shape.push_back(*value);
  }
  return shape;
}

std::vector<std::uint64_t> read_chunk_shape(const Json& json, const char* key, std::size_t axes,
                                            std::string_view subject) {
  std::vector<std::uint64_t> chunk = read_shape_of(json, key, subject);
  if (chunk.size() != axes) damaged_zarr(subject, fmt::format("`{}` and `shape` have different axes", key));
  return chunk;
}

// ---- element types

struct TypeName {
  std::string_view v2, v3;
  DType dtype;
};
constexpr TypeName kTypeNames[] = {
    {"u1", "uint8", DType::u8},    {"i1", "int8", DType::i8},     {"u2", "uint16", DType::u16},
    {"i2", "int16", DType::i16},   {"u4", "uint32", DType::u32},  {"i4", "int32", DType::i32},
    {"u8", "uint64", DType::u64},  {"i8", "int64", DType::i64},   {"f2", "float16", DType::f16},
    {"f4", "float32", DType::f32}, {"f8", "float64", DType::f64}, {"b1", "bool", DType::boolean},
    {"", "bfloat16", DType::bf16}};

void read_dtype_2(const Json& json, ZarrArray& array, std::string_view subject) {
  const Json& dtype = json["dtype"];
  if (!dtype.is_string()) refuse_zarr(subject, "arrays of records");
  const std::string_view text = dtype.text();
  const std::string_view kind = text.empty() ? text : text.substr(1);
  for (const TypeName& known : kTypeNames) {
    if (known.v2.empty() || kind != known.v2 || std::string_view("<>|").find(text[0]) == std::string_view::npos)
      continue;
    array.dtype = known.dtype;
    array.form.value_bytes = static_cast<std::uint8_t>(size_of(known.dtype));
    array.form.swap_bytes = text[0] == '>' && size_of(known.dtype) > 1;
    return;
  }
  refuse_zarr(subject, fmt::format("elements of type `{}`", shown(dtype)));
}

void read_dtype_3(const Json& json, ZarrArray& array, std::string_view subject) {
  const Json& dtype = json["data_type"];
  for (const TypeName& known : kTypeNames) {
    if (!dtype.is_string() || dtype.text() != known.v3) continue;
    array.dtype = known.dtype;
    array.form.value_bytes = static_cast<std::uint8_t>(size_of(known.dtype));
    return;
  }
  refuse_zarr(subject, fmt::format("elements of type `{}`", shown(dtype)));
}

// ---- fill values

template <typename T>
void set_fill(ZarrArray& array, T value) {
  static_assert(sizeof(T) <= sizeof(array.fill));
  std::memcpy(array.fill.data(), &value, sizeof(T));
}

// Rounds to nearest, ties to even, as numpy does.
std::uint16_t half_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  if (std::isnan(value)) return sign | 0x7E00;
  const double magnitude = std::abs(value);
  if (magnitude >= 65520) return sign | 0x7C00;
  if (magnitude < std::ldexp(1.0, -14)) {
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  }
  int exponent = 0;
  const double mantissa = std::frexp(magnitude, &exponent);                                 // in [0.5, 1)
  const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(mantissa, 11)));  // 1024 to 2048
  const std::uint32_t rounded = (static_cast<std::uint32_t>(exponent + 13) << 10) + steps;  // may carry over
  return static_cast<std::uint16_t>(sign | rounded);
}

std::optional<double> read_real(const Json& value) {
  if (value.is_number()) return value.as<double>();
  if (!value.is_string()) return std::nullopt;
  if (value.text() == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value.text() == "Infinity") return std::numeric_limits<double>::infinity();
  if (value.text() == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// Version 3 also writes real numbers as their bits: "0x7fc00000".
bool read_bits(const Json& value, ZarrArray& array) {
  if (!value.is_string() || !value.text().starts_with("0x")) return false;
  const std::string& text = value.text();
  std::uint64_t bits = 0;
  const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (problem != std::errc() || end != text.data() + text.size() || text.size() != 2 + 2u * array.form.value_bytes) {
    return false;
  }
  std::memcpy(array.fill.data(), &bits, array.form.value_bytes);
  return true;
}

template <typename T>
bool read_whole_fill(const Json& value, ZarrArray& array) {
  if (const auto whole = value.as<T>()) return set_fill(array, *whole), true;
  // Some programs write 0.0 for integers.
  const auto real = value.as<double>();
  if (!real || *real != std::trunc(*real) || std::abs(*real) > 1e15) return false;
  if (*real < static_cast<double>(std::numeric_limits<T>::min()) ||
      *real > static_cast<double>(std::numeric_limits<T>::max())) {
    return false;
  }
  return set_fill(array, static_cast<T>(*real)), true;
}

bool read_fill_value(const Json& value, ZarrArray& array) {
  switch (array.dtype) {
    case DType::u8:
      return read_whole_fill<std::uint8_t>(value, array);
    case DType::i8:
      return read_whole_fill<std::int8_t>(value, array);
    case DType::u16:
      return read_whole_fill<std::uint16_t>(value, array);
    case DType::i16:
      return read_whole_fill<std::int16_t>(value, array);
    case DType::u32:
      return read_whole_fill<std::uint32_t>(value, array);
    case DType::i32:
      return read_whole_fill<std::int32_t>(value, array);
    case DType::u64:
      return read_whole_fill<std::uint64_t>(value, array);
    case DType::i64:
      return read_whole_fill<std::int64_t>(value, array);
    case DType::boolean:
      if (const auto truth = value.as<bool>()) return set_fill<std::uint8_t>(array, *truth ? 1 : 0), true;
      return read_whole_fill<std::uint8_t>(value, array);
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: {
      if (read_bits(value, array)) return true;
      const auto real = read_real(value);
      if (!real) return false;
      if (array.dtype == DType::f64) return set_fill(array, *real), true;
      if (array.dtype == DType::f16) return set_fill(array, half_of(*real)), true;
      const auto narrow = static_cast<float>(*real);
      if (array.dtype == DType::f32) return set_fill(array, narrow), true;
      std::uint32_t bits;
      std::memcpy(&bits, &narrow, sizeof bits);
      set_fill(array,
               static_cast<std::uint16_t>(std::isnan(narrow) ? 0x7FC0 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16));
      return true;
    }
  }
  return false;
}

void read_fill(const Json& json, ZarrArray& array, std::string_view subject) {
  const Json& value = json["fill_value"];
  if (value.is_null() || read_fill_value(value, array)) return;  // null: anything; zeros here
  damaged_zarr(subject, fmt::format("the fill value `{}` is not of type {}", shown(value), name(array.dtype)));
}

// ---- codecs

void set_order(ZarrArray& array, const std::vector<std::size_t>& order) {
  codec::ChunkForm& form = array.form;
  const std::size_t axes = array.chunk.size();
  form.rank = 0;
  bool is_c_order = true;
  for (std::size_t i = 0; i < axes; ++i) is_c_order = is_c_order && order[i] == i;
  if (is_c_order) return;
  std::vector<std::uint64_t> step(axes);
  std::uint64_t bytes = form.value_bytes;
  for (std::size_t i = axes; i-- > 0; bytes *= array.chunk[i]) step[i] = bytes;
  form.rank = static_cast<std::uint8_t>(axes);
  for (std::size_t i = 0; i < axes; ++i) {
    form.stored[i] = array.chunk[order[i]];
    form.step_bytes[i] = step[order[i]];
  }
}

void set_packing(ZarrArray& array, codec::Packing packing, std::string words, std::string_view subject) {
  if (array.form.packing != codec::Packing::none) {
    refuse_zarr(subject, fmt::format("chunks that are packed twice ({}, {})", array.packing, words));
  }
  array.form.packing = packing;
  array.packing = std::move(words);
}

bool is_known_packing(std::string_view id, codec::Packing& packing) {
  constexpr std::pair<std::string_view, codec::Packing> kKnown[] = {{"gzip", codec::Packing::gzip},
                                                                    {"zlib", codec::Packing::zlib},
                                                                    {"zstd", codec::Packing::zstd},
                                                                    {"blosc", codec::Packing::blosc}};
  for (const auto& [name, known] : kKnown) {
    if (id == name) return packing = known, true;
  }
  return false;
}

// "blosc-zstd": with the compressor inside.
std::string packing_words(std::string_view id, const Json& settings) {
  if (id != "blosc") return std::string(id);
  const Json& inside = settings["cname"];
  return inside.is_string() ? fmt::format("blosc-{}", shown(inside)) : "blosc";
}

void read_compressor_2(const Json& json, ZarrArray& array, std::string_view subject) {
  if (const Json& filters = json["filters"]; filters.is_array() && !filters.empty()) {
    refuse_zarr(subject, fmt::format("the filter `{}`", shown(filters.front()["id"])));
  }
  const Json& compressor = json["compressor"];
  if (compressor.is_null()) return;
  const Json& id = compressor["id"];
  codec::Packing packing{};
  if (!id.is_string() || !is_known_packing(id.text(), packing)) {
    refuse_zarr(subject, fmt::format("chunks compressed by `{}`", shown(id.is_null() ? compressor : id)));
  }
  set_packing(array, packing, packing_words(id.text(), compressor), subject);
}

std::string codec_name(const Json& codec) {
  if (codec.is_string()) return codec.text();
  const Json& name = codec["name"];
  return name.is_string() ? name.text() : shown(codec);
}

std::vector<std::size_t> read_order(const Json& settings, std::size_t axes, std::string_view subject) {
  const Json& list = settings["order"];
  std::vector<std::size_t> order;
  if (list.is_string() && (list.text() == "C" || list.text() == "F")) {  // of drafts of version 3
    for (std::size_t i = 0; i < axes; ++i) order.push_back(list.text() == "C" ? i : axes - 1 - i);
    return order;
  }
  std::vector<bool> seen(axes);
  for (const Json& item : list) {
    const auto axis = item.as<std::size_t>();
    if (!axis || *axis >= axes || seen[*axis]) break;
    seen[*axis] = true;
    order.push_back(*axis);
  }
  if (!list.is_array() || list.size() != axes || order.size() != axes) {
    damaged_zarr(subject, fmt::format("`transpose` has the order `{}`", shown(list)));
  }
  return order;
}

bool read_swap(const Json& settings, std::size_t value_bytes, std::string_view subject) {
  const Json& endian = settings["endian"];
  if (endian.is_null() && value_bytes == 1) return false;
  if (endian.is_string() && endian.text() == "little") return false;
  if (endian.is_string() && endian.text() == "big") return value_bytes > 1;
  damaged_zarr(subject, fmt::format("the codec `bytes` has the byte order `{}`", shown(endian)));
}

void read_codecs(const Json& codecs, ZarrArray& array, std::string_view subject);

void read_index_codecs(const Json& codecs, ZarrArray& array, std::string_view subject) {
  if (!codecs.is_array() || codecs.empty()) damaged_zarr(subject, "`index_codecs` of the shards is not a list");
  bool has_bytes = false;
  for (const Json& codec : codecs) {
    const std::string id = codec_name(codec);
    if (id == "bytes" && !has_bytes) {
      has_bytes = true;
      array.index_is_swapped = read_swap(codec["configuration"], sizeof(std::uint64_t), subject);
    } else if (id == "crc32c" && has_bytes && !array.index_has_sum) {
      array.index_has_sum = true;
    } else {
      refuse_zarr(subject, fmt::format("an index of shards with the codec `{}`", id));
    }
  }
}

void read_sharding(const Json& settings, ZarrArray& array, std::string_view subject) {
  if (!array.shard.empty()) refuse_zarr(subject, "shards inside shards");
  array.shard = array.chunk;
  array.chunk = read_chunk_shape(settings, "chunk_shape", array.shape.size(), subject);
  for (std::size_t i = 0; i < array.chunk.size(); ++i) {
    if (array.shard[i] % array.chunk[i] != 0) damaged_zarr(subject, "a shard is not a whole number of chunks");
  }
  const Json& place = settings["index_location"];
  if (!place.is_null() && (!place.is_string() || (place.text() != "start" && place.text() != "end"))) {
    damaged_zarr(subject, fmt::format("the index of the shards lies at `{}`", shown(place)));
  }
  array.index_at_start = place.is_string() && place.text() == "start";
  read_index_codecs(settings["index_codecs"], array, subject);
  read_codecs(settings["codecs"], array, subject);
}

void read_codecs(const Json& codecs, ZarrArray& array, std::string_view subject) {
  if (!codecs.is_array() || codecs.empty()) damaged_zarr(subject, "`codecs` is not a list of codecs");
  bool has_bytes = false;
  std::vector<std::size_t> order(array.chunk.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (const Json& codec : codecs) {
    const std::string id = codec_name(codec);
    const Json& settings = codec["configuration"];
    codec::Packing packing{};
    if (id == "sharding_indexed") {
      if (codecs.size() != 1) refuse_zarr(subject, "shards that are encoded as a whole");
      return read_sharding(settings, array, subject);
    }
    if (id == "transpose" && !has_bytes) {
      const std::vector<std::size_t> next = read_order(settings, order.size(), subject);
      std::vector<std::size_t> both(next.size());
      std::ranges::transform(next, both.begin(), [&](std::size_t axis) { return order[axis]; });
      order = both;
    } else if (id == "bytes" && !has_bytes) {
      has_bytes = true;
      array.form.swap_bytes = read_swap(settings, array.form.value_bytes, subject);
    } else if (id == "crc32c" && has_bytes) {
      std::uint8_t& sums = array.form.packing == codec::Packing::none ? array.form.inner_sums : array.form.outer_sums;
      if (++sums > 4) damaged_zarr(subject, "`codecs` has more checksums than make sense");
    } else if (has_bytes && id != "zlib" && is_known_packing(id, packing)) {
      set_packing(array, packing, packing_words(id, settings), subject);
    } else {
      refuse_zarr(subject, fmt::format("the codec `{}`{}", id.substr(0, 60),
                                       has_bytes || id == "bytes" ? "" : ", or not before `bytes`"));
    }
  }
  if (!has_bytes) damaged_zarr(subject, "`codecs` lacks `bytes`");
  if (array.form.packing == codec::Packing::none) std::swap(array.form.inner_sums, array.form.outer_sums);
  set_order(array, order);
}

void finish(ZarrArray& array, std::string_view subject) {
  std::uint64_t bytes = array.form.value_bytes;
  for (const std::uint64_t n : array.chunk) bytes *= n;  // below 2^59: read_shape_of has looked
  if (bytes > codec::kMaxChunkBytes) {
    refuse_zarr(subject, fmt::format("chunks above {} MiB: these have {} bytes", codec::kMaxChunkBytes >> 20, bytes));
  }
  array.form.bytes = bytes;
  if (array.packing.empty()) array.packing = "uncompressed";
}

void read_version_2(const Json& json, ZarrArray& array, std::string_view subject) {
  array.shape = read_shape_of(json, "shape", subject);
  array.chunk = read_chunk_shape(json, "chunks", array.shape.size(), subject);
  read_dtype_2(json, array, subject);
  read_compressor_2(json, array, subject);
  read_fill(json, array, subject);
  const Json& order = json["order"];
  if (order.is_string() && order.text() == "F") {
    std::vector<std::size_t> axes;
    for (std::size_t i = array.chunk.size(); i-- > 0;) axes.push_back(i);
    set_order(array, axes);
  } else if (!order.is_null() && (!order.is_string() || order.text() != "C")) {
    damaged_zarr(subject, fmt::format("`order` is `{}`", shown(order)));
  }
  const Json& separator = json["dimension_separator"];
  if (!separator.is_null() && (!separator.is_string() || (separator.text() != "." && separator.text() != "/"))) {
    damaged_zarr(subject, fmt::format("`dimension_separator` is `{}`", shown(separator)));
  }
  array.separator = separator.is_string() ? separator.text()[0] : '.';
}

void read_keys_3(const Json& json, ZarrArray& array, std::string_view subject) {
  const Json& encoding = json["chunk_key_encoding"];
  const std::string id = codec_name(encoding);
  if (id != "default" && id != "v2") refuse_zarr(subject, fmt::format("the chunk key encoding `{}`", id.substr(0, 60)));
  array.separator = id == "default" ? '/' : '.';
  const Json& separator = encoding["configuration"]["separator"];
  if (!separator.is_null()) {
    if (!separator.is_string() || (separator.text() != "." && separator.text() != "/")) {
      damaged_zarr(subject, fmt::format("the separator of chunk keys is `{}`", shown(separator)));
    }
    array.separator = separator.text()[0];
  }
  array.prefix = id == "default" ? std::string("c") + array.separator : std::string();
}

void read_version_3(const Json& json, ZarrArray& array, std::string_view subject) {
  array.shape = read_shape_of(json, "shape", subject);
  const Json& grid = json["chunk_grid"];
  if (codec_name(grid) != "regular") refuse_zarr(subject, fmt::format("the chunk grid `{}`", codec_name(grid)));
  array.chunk = read_chunk_shape(grid["configuration"], "chunk_shape", array.shape.size(), subject);
  if (const Json& more = json["storage_transformers"]; more.is_array() && !more.empty()) {
    refuse_zarr(subject, fmt::format("the storage transformer `{}`", codec_name(more.front())));
  }
  read_dtype_3(json, array, subject);
  read_fill(json, array, subject);
  read_keys_3(json, array, subject);
  if (const Json& names = json["dimension_names"]; names.is_array() && names.size() == array.shape.size()) {
    for (const Json& name : names) array.axes.push_back(name.is_string() ? name.text() : "");
  }
  read_codecs(json["codecs"], array, subject);
}

double millimetres(const Json& unit) {  // of one unit; 0: not a length that is known
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"micrometer", 1e-3}, {"nanometer", 1e-6}, {"millimeter", 1},  {"centimeter", 10},
      {"meter", 1000},      {"angstrom", 1e-7},  {"picometer", 1e-9}};
  if (!unit.is_string()) return 0;
  for (const auto& [name, factor] : kUnits) {
    if (unit.text() == name) return factor;
  }
  return 0;
}

// The scale that a list of transformations ends in; empty: there is none.
std::vector<double> read_scale(const Json& transformations) {
  std::vector<double> scale;
  for (const Json& one : transformations) {
    if (!one["type"].is_string() || one["type"].text() != "scale" || !one["scale"].is_array()) continue;
    for (const Json& factor : one["scale"]) scale.push_back(factor.as<double>().value_or(0));
  }
  return scale;
}

}  // namespace

std::vector<std::uint64_t> ZarrArray::grid() const {
  const std::vector<std::uint64_t>& object = shard.empty() ? chunk : shard;
  std::vector<std::uint64_t> counts;
  for (std::size_t i = 0; i < shape.size(); ++i) counts.push_back((shape[i] - 1) / object[i] + 1);
  return counts;
}

std::uint64_t ZarrArray::chunks_per_shard() const noexcept {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < shard.size(); ++i) count *= shard[i] / chunk[i];
  return count;
}

ZarrArray parse_zarr_array(const Json& json, int version, std::string_view subject) {
  if (!json.is_object()) damaged_zarr(subject, "it is not a JSON object");
  if (json["zarr_format"].as<int>() != version) {
    damaged_zarr(subject, fmt::format("`zarr_format` is `{}`, not {}", shown(json["zarr_format"]), version));
  }
  ZarrArray array;
  array.version = version;
  if (version == 2) {
    read_version_2(json, array, subject);
  } else {
    read_version_3(json, array, subject);
  }
  finish(array, subject);
  return array;
}

std::vector<OmeLevel> parse_multiscales(const Json& attributes, std::string_view subject) {
  const Json& ome = attributes["ome"];
  const Json& list = ome.is_object() ? ome["multiscales"] : attributes["multiscales"];
  if (!list.is_array() || list.empty()) return {};
  const Json& image = list.front();
  std::vector<std::string> axes;
  std::vector<double> units;
  for (const Json& axis : image["axes"]) {
    const Json& label = axis.is_object() ? axis["name"] : axis;
    axes.push_back(label.is_string() ? label.text() : "");
    units.push_back(axis.is_object() ? millimetres(axis["unit"]) : 0);
  }
  const std::vector<double> common = read_scale(image["coordinateTransformations"]);
  std::vector<OmeLevel> levels;
  for (const Json& dataset : image["datasets"]) {
    const Json& path = dataset["path"];
    if (!path.is_string() || path.text().empty() || path.text().starts_with('/') ||
        path.text().find("..") != std::string::npos) {
      damaged_zarr(subject, fmt::format("a level of its multiscales has the path `{}`", shown(path)));
    }
    OmeLevel level;
    level.path = path.text();
    level.axes = axes;
    const std::vector<double> scale = read_scale(dataset["coordinateTransformations"]);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double own = i < scale.size() ? scale[i] : 0;
      const double spacing = std::abs(own * (i < common.size() ? common[i] : 1) * units[i]);
      level.spacing_mm.push_back(std::isfinite(spacing) ? spacing : 0);
    }
    levels.push_back(std::move(level));
  }
  if (levels.empty()) damaged_zarr(subject, "its multiscales have no level");
  return levels;
}

}  // namespace stoker::dataset
