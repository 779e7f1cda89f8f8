#include "stoker/dataset/zarr_meta.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "stoker/base/error.h"
#include "stoker/dataset/tree_test.h"

namespace stoker::dataset {
namespace {

Json array_2() {
  return Json::parse(R"({"zarr_format": 2, "shape": [5, 6, 7], "chunks": [2, 3, 4], "dtype": "<u2", "compressor": null,
                         "fill_value": 7, "filters": null, "order": "C"})",
                     "test");
}

Json array_3() {
  return Json::parse(R"({"zarr_format": 3, "node_type": "array", "shape": [5, 6, 7], "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3, 4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0.5,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]})",
                     "test");
}

Json codec_named(const char* name, Json configuration = Json::object()) {
  return Json::object({{"name", name}, {"configuration", std::move(configuration)}});
}

ZarrArray parsed(const Json& json) {
  return parse_zarr_array(json, json["zarr_format"].get<int>(), "a.zarr");
}

std::string error_text(const Json& json) {
  const auto error = error_of([&] { parsed(json); });
  return error ? error->message() : "";
}

template <typename T>
T fill_of(const ZarrArray& array) {
  T value;
  std::memcpy(&value, array.fill.data(), sizeof value);
  return value;
}

TEST(ZarrMeta, ReadsVersionTwo) {
  const ZarrArray array = parsed(array_2());
  EXPECT_EQ(array.dtype, DType::u16);
  EXPECT_EQ(array.shape, (std::vector<std::uint64_t>{5, 6, 7}));
  EXPECT_EQ(array.chunk, (std::vector<std::uint64_t>{2, 3, 4}));
  EXPECT_EQ(array.form.bytes, 48u);
  EXPECT_EQ(array.separator, '.');
  EXPECT_EQ(array.prefix, "");
  EXPECT_EQ(fill_of<std::uint16_t>(array), 7);
  EXPECT_EQ(array.grid(), (std::vector<std::uint64_t>{3, 2, 2}));
}

TEST(ZarrMeta, ReadsVersionThree) {
  const ZarrArray array = parsed(array_3());
  EXPECT_EQ(array.dtype, DType::f32);
  EXPECT_EQ(array.prefix, "c/");
  EXPECT_EQ(array.separator, '/');
  EXPECT_EQ(fill_of<float>(array), 0.5f);
  EXPECT_EQ(array.packing, "uncompressed");
}

TEST(ZarrMeta, ReadsFillValuesOfEveryKind) {
  const auto fill_3 = [](const char* type, Json value) {
    Json json = array_3();
    json["data_type"] = type;
    json["fill_value"] = std::move(value);
    return parsed(json);
  };
  EXPECT_TRUE(std::isnan(fill_of<float>(fill_3("float32", "NaN"))));
  EXPECT_EQ(fill_of<float>(fill_3("float32", "-Infinity")), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(fill_of<std::uint32_t>(fill_3("float32", "0x7fc00001")), 0x7fc00001u);
  EXPECT_EQ(fill_of<double>(fill_3("float64", 1)), 1.0);
  EXPECT_EQ(fill_of<std::int8_t>(fill_3("int8", -3)), -3);
  EXPECT_EQ(fill_of<std::uint64_t>(fill_3("uint64", ~std::uint64_t{0})), ~std::uint64_t{0});
  EXPECT_EQ(fill_of<std::uint8_t>(fill_3("bool", true)), 1);
  EXPECT_EQ(fill_of<std::uint16_t>(fill_3("float16", 1)), 0x3C00);
  EXPECT_EQ(fill_of<std::uint16_t>(fill_3("float16", -65504)), 0xFBFF);
  EXPECT_EQ(fill_of<std::uint16_t>(fill_3("float16", 65520)), 0x7C00);
  EXPECT_EQ(fill_of<std::uint16_t>(fill_3("float16", 5.960464477539063e-08)), 0x0001);
  EXPECT_EQ(fill_of<std::uint16_t>(fill_3("bfloat16", 1)), 0x3F80);
  EXPECT_EQ(fill_of<std::uint16_t>(fill_3("uint16", Json())), 0);
  Json wrong = array_2();
  wrong["fill_value"] = 70000;
  EXPECT_NE(error_text(wrong).find("the fill value `70000` is not of type uint16"), std::string::npos);
  wrong["fill_value"] = "AAA=";
  EXPECT_NE(error_text(wrong).find("the fill value `AAA=`"), std::string::npos);
}

TEST(ZarrMeta, SumsLieOutsideOrInsideOfThePackedBytes) {
  Json json = array_3();
  json["codecs"] = Json::array({codec_named("bytes", {{"endian", "big"}}), codec_named("crc32c"), codec_named("zstd"),
                                codec_named("crc32c"), codec_named("crc32c")});
  const ZarrArray array = parsed(json);
  EXPECT_TRUE(array.form.swap_bytes);
  EXPECT_EQ(array.form.inner_sums, 1);
  EXPECT_EQ(array.form.outer_sums, 2);
  json["codecs"] = Json::array({codec_named("bytes", {{"endian", "little"}}), codec_named("crc32c")});
  EXPECT_EQ(parsed(json).form.outer_sums, 1);
  EXPECT_EQ(parsed(json).form.inner_sums, 0);
}

TEST(ZarrMeta, NamesWhatItDoesNotRead) {
  const auto with = [](Json json, const char* key, Json value) {
    json[key] = std::move(value);
    return error_text(json);
  };
  const Json bytes = codec_named("bytes", {{"endian", "little"}});
  const Json shards = codec_named("sharding_indexed", {{"chunk_shape", Json::array({1, 1, 1})},
                                                       {"codecs", Json::array({bytes})},
                                                       {"index_codecs", Json::array({bytes})}});
  const std::pair<std::string, const char*> refused[] = {
      {with(array_2(), "compressor", {{"id", "blosc2"}}), "chunks compressed by `blosc2`"},
      {with(array_2(), "compressor", {{"id", 3}}), "chunks compressed by `3`"},
      {with(array_2(), "filters", Json::array({{{"id", "quantize"}}})), "the filter `quantize`"},
      {with(array_2(), "dtype", "<c8"), "elements of type `<c8`"},
      {with(array_2(), "dtype", Json::array({1})), "arrays of records"},
      {with(array_2(), "dtype", ""), "elements of type ``"},
      {with(array_3(), "data_type", "complex64"), "elements of type `complex64`"},
      {with(array_3(), "codecs", Json::array({bytes, codec_named("numcodecs.lzma")})), "the codec `numcodecs.lzma`"},
      {with(array_3(), "codecs", Json::array({bytes, codec_named("zstd"), codec_named("gzip")})),
       "chunks that are packed twice (zstd, gzip)"},
      {with(array_3(), "codecs", Json::array({shards, codec_named("zstd")})), "shards that are encoded as a whole"},
      {with(array_3(), "chunk_grid", codec_named("rectilinear")), "the chunk grid `rectilinear`"},
      {with(array_3(), "chunk_key_encoding", codec_named("fancy")), "the chunk key encoding `fancy`"},
      {with(array_3(), "storage_transformers", Json::array({codec_named("x")})), "the storage transformer `x`"},
  };
  for (const auto& [message, words] : refused) {
    EXPECT_NE(message.find("this version does not read " + std::string(words)), std::string::npos)
        << words << ": " << message;
    EXPECT_NE(message.find("`a.zarr`"), std::string::npos);
  }
}

TEST(ZarrMeta, NamesWhatIsDamaged) {
  const auto with = [](Json json, const char* key, Json value) {
    json[key] = std::move(value);
    return error_text(json);
  };
  const auto sharded = [&](Json settings) {
    Json whole = {{"chunk_shape", Json::array({1, 3, 2})},
                  {"codecs", Json::array({codec_named("bytes", {{"endian", "little"}})})},
                  {"index_codecs", Json::array({codec_named("bytes", {{"endian", "little"}})})}};
    whole.update(settings);
    return with(array_3(), "codecs", Json::array({codec_named("sharding_indexed", whole)}));
  };
  EXPECT_EQ(sharded(Json::object()), "");
  const std::pair<std::string, const char*> damaged[] = {
      {error_text(Json::object({{"zarr_format", 2}})), "`shape` is not a list"},
      {with(array_2(), "shape", Json::array({5, -6, 7})), "`shape` has `-6`"},
      {with(array_2(), "shape", Json::array({5, 0, 7})), "an axis of 0"},
      {with(array_2(), "shape", Json::array({std::uint64_t{1} << 40, std::uint64_t{1} << 40})),
       "more elements than any"},
      {with(array_2(), "chunks", Json::array({5, 6})), "`chunks` and `shape` have different axes"},
      {with(array_2(), "chunks", Json::array({4096, 4096, 4096})), "chunks above 1024 MiB"},
      {with(array_2(), "order", "A"), "`order` is `A`"},
      {with(array_2(), "dimension_separator", "-"), "`dimension_separator` is `-`"},
      {with(array_3(), "codecs", Json::array({})), "`codecs` is not a list"},
      {with(array_3(), "codecs", Json::array({codec_named("bytes", {{"endian", "middle"}})})),
       "the byte order `middle`"},
      {with(array_3(), "codecs",
            Json::array({codec_named("transpose", {{"order", Json::array({0, 0, 1})}}), codec_named("bytes")})),
       "`transpose` has the order"},
      {sharded({{"chunk_shape", Json::array({1, 2, 2})}}), "a shard is not a whole number of chunks"},
      {sharded({{"index_location", "middle"}}), "the index of the shards lies at `middle`"},
      {sharded({{"index_codecs", Json::array({codec_named("gzip")})}}), "an index of shards with the codec `gzip`"},
  };
  for (const auto& [message, words] : damaged) {
    EXPECT_NE(message.find(words), std::string::npos) << words << ": " << message;
  }
}

TEST(ZarrMeta, AnyJsonIsAnArrayOrAnError) {
  for (const char* const text : {"null", "[]", "3", "{}", R"({"zarr_format": 3})", R"({"zarr_format": "2"})"}) {
    const Json json = Json::parse(text, "test");
    for (const int version : {2, 3}) {
      EXPECT_TRUE(error_of([&] { parse_zarr_array(json, version, "x"); })) << text;
    }
    EXPECT_TRUE(parse_multiscales(json, "x").empty());
  }
}

TEST(ZarrMeta, LevelsThatLeaveTheGroupAreRefused) {
  const Json image =
      Json::parse(R"({"multiscales": [{"axes": ["z", "y", "x"], "datasets": [{"path": "../secret"}]}]})", "test");
  EXPECT_TRUE(mentions(error_of([&] { parse_multiscales(image, "g"); }), "the path `../secret`"));
}

}  // namespace
}  // namespace stoker::dataset
