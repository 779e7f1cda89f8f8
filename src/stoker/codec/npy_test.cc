#include <gtest/gtest.h>

#include "stoker/codec/damage_test.h"

namespace stoker::codec {
namespace {

File array_file(std::string_view header, const File& data, int version = 1) {
  File file;
  file.text("\x93NUMPY").bytes({version, 0});
  if (version == 1) {
    file.little(static_cast<std::uint16_t>(header.size()));
  } else {
    file.little(static_cast<std::uint32_t>(header.size()));
  }
  return file.text(header).bytes(data);
}

File typed(std::string_view descr, std::size_t bytes) {
  const std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (1,), }\n";
  return array_file(header, File().zeros(bytes));
}

Result verdict_on(Bytes file) {
  ArrayInfo info;
  const Result result = probe_npy(file, file.size(), info);
  if (!result.ok()) return result;
  std::vector<std::byte> into(info.data_bytes);
  Scratch scratch;
  return decode_array(media_named("npy"), file, info, into.data(), scratch);
}

Code code_of(std::string_view header) {
  return verdict_on(array_file(header, File().zeros(64))).code;
}

TEST(Npy, ReadsShapeTypeAndElementsOfEveryVersion) {
  for (const int version : {1, 2, 3}) {
    const File data = File().little(1.5f).little(2.5f).little(3.5f).little(4.5f).little(5.5f).little(6.5f);
    const File file = array_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n", data, version);
    ArrayInfo info;
    ASSERT_TRUE(probe_npy(file, file.size(), info).ok());
    EXPECT_EQ(info.dtype, DType::f32);
    EXPECT_EQ(std::vector<std::uint64_t>(info.dims().begin(), info.dims().end()), (std::vector<std::uint64_t>{2, 3}));
    ASSERT_EQ(info.data_bytes, 24u);
    EXPECT_EQ(info.data_offset, file.size() - 24);
    float into[6];
    Scratch scratch;
    ASSERT_TRUE(decode_array(media_named("npy"), file, info, reinterpret_cast<std::byte*>(into), scratch).ok());
    EXPECT_EQ(into[0], 1.5f);
    EXPECT_EQ(into[5], 6.5f);
  }
}

TEST(Npy, KnowsEveryElementType) {
  const std::pair<const char*, DType> known[] = {
      {"|u1", DType::u8},  {"|i1", DType::i8},  {"<u2", DType::u16},    {"<i2", DType::i16}, {"<u4", DType::u32},
      {"<i4", DType::i32}, {"<u8", DType::u64}, {"<i8", DType::i64},    {"<f2", DType::f16}, {"<V2", DType::bf16},
      {"<f4", DType::f32}, {"<f8", DType::f64}, {"|b1", DType::boolean}};
  for (const auto& [descr, dtype] : known) {
    const File file = typed(descr, size_of(dtype));
    ArrayInfo info;
    ASSERT_TRUE(probe_npy(file, file.size(), info).ok()) << descr;
    EXPECT_EQ(info.dtype, dtype) << descr;
    EXPECT_EQ(info.data_bytes, size_of(dtype)) << descr;
  }
}

TEST(Npy, NeedsOnlyTheHeaderAndTheTrueLength) {
  const File file = array_file("{'descr': '|u1', 'fortran_order': False, 'shape': (1000,), }", File());
  ArrayInfo info;
  EXPECT_TRUE(probe_npy(file, file.size() + 1000, info).ok());
  const Result result = probe_npy(file, file.size() + 999, info);
  EXPECT_EQ(result.code, Code::truncated);
  EXPECT_EQ(result.offset, file.size() + 999);
}

TEST(Npy, ReadsScalarsEmptyArraysAndOldIntegers) {
  EXPECT_EQ(code_of("{'descr': '|u1', 'fortran_order': False, 'shape': (), }"), Code::ok);
  EXPECT_EQ(code_of("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 18446744073709551615), }"), Code::ok);
  EXPECT_EQ(code_of("{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3L), }"), Code::ok);
  EXPECT_EQ(code_of("{\"shape\":(5,),\"fortran_order\":True,\"descr\":\"|u1\"}"), Code::ok)
      << "one row is in any order";
}

TEST(Npy, SaysWhyItDoesNotReadAnArray) {
  const auto cause = [](std::string_view header) {
    const Result result = verdict_on(array_file(header, File().zeros(64)));
    EXPECT_EQ(result.code, Code::unsupported) << header;
    return std::string(result.cause);
  };
  EXPECT_EQ(cause("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"), "an array of Python objects");
  EXPECT_EQ(cause("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }"), "big-endian elements");
  EXPECT_EQ(cause("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }"),
            "Fortran order (save it with order=\"C\")");
  EXPECT_EQ(cause("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
            "records (a structured dtype)");
  EXPECT_EQ(cause("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }"),
            "more than 8 dimensions");
}

TEST(Npy, RefusesHostileHeaders) {
  EXPECT_EQ(code_of(""), Code::corrupt);
  EXPECT_EQ(code_of("{"), Code::corrupt);
  EXPECT_EQ(code_of("{}"), Code::corrupt);
  EXPECT_EQ(code_of("__import__('os')"), Code::corrupt);
  EXPECT_EQ(code_of("{'descr': '|u1', 'fortran_order': False, 'shape': (1,"), Code::corrupt);
  EXPECT_EQ(code_of("{'descr': '|u1', 'fortran_order': False, 'shape': (-1,), }"), Code::corrupt);
  EXPECT_EQ(code_of("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,), }"), Code::corrupt);
  EXPECT_EQ(code_of("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,), }"), Code::corrupt);
  EXPECT_EQ(code_of("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"), Code::too_large);
  EXPECT_EQ(code_of("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }"), Code::truncated);
  File long_header = array_file("{}", File(), 2);
  long_header[11] = std::byte{0x7F};
  EXPECT_EQ(verdict_on(long_header).code, Code::corrupt);
}

TEST(Npy, SurvivesEveryTruncationAndFlippedBit) {
  const File file =
      array_file("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n", File().text("123456789abc"));
  ASSERT_TRUE(verdict_on(file).ok());
  at_every_truncation(file, [](Bytes part) { EXPECT_EQ(verdict_on(part).code, Code::truncated) << part.size(); });
  at_every_flipped_bit(file, [](Bytes damaged) {
    ArrayInfo info;
    if (probe_npy(damaged, damaged.size(), info).ok()) {
      EXPECT_LE(info.data_offset + info.data_bytes, damaged.size());
    }
    (void)verdict_on(damaged);
  });
}

}  // namespace
}  // namespace stoker::codec
