// The kinds of samples alone: made from the bytes of a first sample, and making rows from bytes. No loader, no data
// set.
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/loader/array_kind.h"
#include "stoker/loader/audio_kind.h"
#include "stoker/loader/encoded_kind.h"
#include "stoker/loader/held_data_test.h"
#include "stoker/loader/image_kind.h"

namespace stoker::loader {
namespace {

codec::Bytes bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

LoaderOptions options_with(std::string_view ops) {
  LoaderOptions options;
  options.transform = transform::parse_ops(ops);
  return options;
}

// `sample` must outlive it.
FirstSample first_of(const std::string& sample) {
  FirstSample first;
  first.name = "first";
  first.bytes = bytes_of(sample);
  Scratch scratch;
  EXPECT_TRUE(codec::probe(first.bytes, first.head, scratch).ok());
  return first;
}

FirstSample first_row(DType dtype, std::vector<std::uint64_t> shape) {
  FirstSample first;
  codec::ArrayInfo& row = first.row.emplace();
  row.dtype = dtype;
  row.rank = static_cast<std::uint8_t>(shape.size());
  row.data_bytes = size_of(dtype);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    row.shape[i] = shape[i];
    row.data_bytes *= shape[i];
  }
  return first;
}

struct MadeRow {
  RowResult row;
  std::string bytes;         // of the first output
  std::uint64_t length = 0;  // what the kind told
};

// `length`: of the row, where it varies.
MadeRow make_row(const Kind& kind, const std::string& sample, const SampleKey& key = {}, std::uint64_t length = 0) {
  const transform::Output& output = kind.facts().outputs.front();
  std::uint64_t row_bytes = output.views * size_of(output.dtype);
  for (std::size_t i = 0; i < output.shape.size(); ++i)
    row_bytes *= output.varies && i + 1 == output.shape.size() ? length : output.shape[i];
  MadeRow made;
  made.bytes.assign(row_bytes, '\xEE');
  Slot slot;
  slot.outputs[0] = reinterpret_cast<std::byte*>(made.bytes.data());
  slot.length = length;
  Scratch scratch;
  made.row = kind.make(bytes_of(sample), key, slot, made.length, scratch, nullptr);
  return made;
}

std::vector<float> floats_of(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(ImageKind, DrawsByTheKeyAlone) {
  const std::string sample = image_with_16_bits();
  const ImageKind kind(first_of(sample), options_with("rrc:4,window:level=30000:width=60000:offset=0"));
  std::set<std::string> rows;
  for (std::uint64_t id = 0; id < 32; ++id) {
    const SampleKey key{.seed = 1, .epoch = 2, .id = id};
    const MadeRow made = make_row(kind, sample, key);
    ASSERT_TRUE(made.row.result.ok()) << made.row.result.cause;
    EXPECT_EQ(make_row(kind, sample, key).bytes, made.bytes);
    rows.insert(made.bytes);
  }
  EXPECT_GT(rows.size(), 1u);
}

TEST(ImageKind, ReadsTheValuesOfItsColumns) {
  const std::string sample = image_with_16_bits();
  const ImageKind kind(first_of(sample), options_with("window:level=30000:width=60000"));
  ASSERT_EQ(kind.facts().columns.size(), 1u);
  SampleKey key;
  const std::string without = make_row(kind, sample, key).bytes;
  key.values[0] = 400;
  EXPECT_NE(make_row(kind, sample, key).bytes, without);
}

TEST(ImageKind, SaysAtWhichStageASampleFailed) {
  const std::string sample = image_with_16_bits();
  const ImageKind kind(first_of(sample), options_with("resize:4x4"));
  const MadeRow cut = make_row(kind, sample.substr(0, sample.size() / 2));
  EXPECT_FALSE(cut.row.result.ok());
  EXPECT_STREQ(cut.row.stage, "decode");
  EXPECT_EQ(make_row(kind, wav(100, 1)).row.result.code, Code::unsupported);
}

TEST(ImageKind, NamesTheWorkingMemoryThatIsEnough) {
  const std::string sample = image_with_16_bits();
  const ImageKind kind(first_of(sample), options_with("resize:4x4"));
  std::string row(4 * 4 * 3 * sizeof(float), '\0');
  Slot slot;
  slot.outputs[0] = reinterpret_cast<std::byte*>(row.data());
  std::uint64_t length = 0;
  alignas(64) std::array<std::byte, 1 << 20> memory;
  Scratch scratch;
  scratch.work_in(std::span(memory).first(128));
  const RowResult refused = kind.make(bytes_of(sample), {}, slot, length, scratch, nullptr);
  EXPECT_EQ(refused.result.code, Code::no_memory);
  ASSERT_GT(refused.most_bytes, 0u);
  ASSERT_LT(refused.most_bytes + 128, memory.size());
  scratch.work_in(std::span(memory).first(refused.most_bytes + 128));  // and the header of the scratch
  EXPECT_TRUE(kind.make(bytes_of(sample), {}, slot, length, scratch, nullptr).result.ok());
}

TEST(ImageKind, TakesRowsOfAnArrayWhereAnOperationAsksForImages) {
  const FirstSample first = first_row(DType::u8, {2, 3});
  EXPECT_TRUE(ImageKind::takes(*first.row, transform::parse_ops("centercrop:2x3")));
  EXPECT_FALSE(ImageKind::takes(*first.row, {}));
  EXPECT_FALSE(ImageKind::takes(*first_row(DType::f32, {2, 3}).row, transform::parse_ops("centercrop:2x3")));
  EXPECT_FALSE(ImageKind::takes(*first_row(DType::u8, {6}).row, transform::parse_ops("centercrop:2x3")));
  const ImageKind kind(first, options_with("centercrop:2x3"));
  EXPECT_EQ(make_row(kind, "abcdef").bytes, "abcdef");
}

TEST(AudioKind, PadsAndTrimsAndTellsTheTrueLength) {
  const std::string sample = wav(100, 8192);
  const AudioKind longer(first_of(sample), options_with("pad:150"));
  const MadeRow padded = make_row(longer, sample);
  ASSERT_TRUE(padded.row.result.ok());
  EXPECT_EQ(padded.length, 100u);
  std::vector<float> expected(150, 0.25F);
  std::fill(expected.begin() + 100, expected.end(), 0.0F);
  EXPECT_EQ(floats_of(padded.bytes), expected);

  const AudioKind shorter(first_of(sample), options_with("pad:50"));
  EXPECT_EQ(floats_of(make_row(shorter, sample).bytes), std::vector<float>(50, 0.25F));
  EXPECT_FALSE(shorter.facts().varies);
}

TEST(AudioKind, MeasuresRowsThatVary) {
  const std::string sample = wav(100, 8192);
  const AudioKind kind(first_of(sample), options_with(""));
  EXPECT_TRUE(kind.facts().varies);
  EXPECT_EQ(kind.facts().first_length, 100u);
  std::uint64_t length = 0;
  EXPECT_TRUE(kind.measure(bytes_of(wav(70, 8192)), length).result.ok());
  EXPECT_EQ(length, 70u);
  const MadeRow made = make_row(kind, wav(70, 8192), {}, 90);
  EXPECT_EQ(made.length, 70u);
  EXPECT_EQ(floats_of(made.bytes)[69], 0.25F);
  EXPECT_EQ(floats_of(made.bytes)[70], 0.0F);
}

TEST(AudioKind, RefusesAnotherRateAndWhatIsNoAudio) {
  const std::string sample = wav(100, 1);
  const AudioKind kind(first_of(sample), options_with("pad:10"));
  const MadeRow faster = make_row(kind, wav(100, 1, 16000));
  EXPECT_EQ(faster.row.result.code, Code::mismatch);
  EXPECT_STREQ(faster.row.stage, "transform");
  EXPECT_STREQ(make_row(kind, "no audio at all").row.stage, "decode");
  EXPECT_FALSE(make_row(kind, "no audio at all").row.result.ok());
}

TEST(ArrayKind, CopiesFilesOfTheShapeOfTheFirst) {
  const std::string sample = npy(3, 5);
  const ArrayKind kind(first_of(sample), options_with(""));
  const MadeRow made = make_row(kind, sample);
  ASSERT_TRUE(made.row.result.ok());
  EXPECT_EQ(made.bytes, sample.substr(sample.size() - 15));
  EXPECT_EQ(make_row(kind, npy(2, 5)).row.result.code, Code::mismatch);
  EXPECT_FALSE(make_row(kind, sample.substr(0, sample.size() - 1)).row.result.ok());
  EXPECT_TRUE(kind.notes().empty());
}

TEST(ArrayKind, TakesRowsOfAnArrayAsTheyAre) {
  const ArrayKind kind(first_row(DType::u8, {5}), options_with(""));
  EXPECT_TRUE(kind.facts().is_copy);
  EXPECT_EQ(make_row(kind, "abcde").bytes, "abcde");
  EXPECT_EQ(make_row(kind, "abcd").row.result.code, Code::truncated);
  const ArrayKind scaled(first_row(DType::u8, {5}), options_with("tofloat"));
  EXPECT_FALSE(scaled.facts().is_copy);
  EXPECT_EQ(floats_of(make_row(scaled, std::string("\xFF\x00\xFF\x00\xFF", 5)).bytes),
            (std::vector<float>{1, 0, 1, 0, 1}));
}

TEST(EncodedKind, HandsBytesOverAsTheyAre) {
  const EncodedKind kind{LoaderOptions{}};
  EXPECT_TRUE(kind.facts().packs_rows);
  std::uint64_t length = 0;
  EXPECT_TRUE(kind.measure(bytes_of("four"), length).result.ok());
  EXPECT_EQ(length, 4u);
  const MadeRow made = make_row(kind, "four", {}, 6);
  EXPECT_EQ(made.bytes.substr(0, 4), "four");
  EXPECT_EQ(made.length, 4u);
  EXPECT_EQ(make_row(kind, "too long", {}, 6).row.result.code, Code::too_large);
  EXPECT_THROW(EncodedKind{options_with("pad:4")}, Error);
}

// Rows of a patch: the bytes of its parts, and where in its source each begins.
class PatchKind final : public Kind {
 public:
  PatchKind() {
    facts_.outputs.push_back({.name = "data", .dtype = DType::u8, .shape = {6}});
    facts_.outputs.push_back({.name = "corners", .dtype = DType::i64, .shape = {2}});
  }

  RowResult measure(codec::Bytes, std::uint64_t&) const noexcept override { return {}; }
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t&, Scratch&,
                 SeekStore*) const noexcept override {
    if (key.parts.size() != 2 || key.parts[0].bytes + key.parts[1].bytes != bytes.size() || bytes.size() != 6)
      return bad(failed(Code::mismatch, "the bytes are not those of two parts"));
    std::memcpy(slot.outputs[0], bytes.data(), bytes.size());
    for (std::size_t i = 0; i < 2; ++i) {
      const auto corner = static_cast<std::int64_t>(key.parts[i].offset);
      std::memcpy(slot.outputs[1] + i * sizeof corner, &corner, sizeof corner);
    }
    return {};
  }
};

TEST(AKindOfPatches, LearnsFromThePartsWhereItsBytesLay) {
  const PatchKind kind;
  const std::array parts = {storage::Location::in_source(nullptr, 100, 2),
                            storage::Location::in_source(nullptr, 40, 4)};
  std::array<std::byte, 6> data{};
  std::array<std::int64_t, 2> corners{};
  Slot slot;
  slot.outputs[0] = data.data();
  slot.outputs[1] = reinterpret_cast<std::byte*>(corners.data());
  std::uint64_t length = 0;
  Scratch scratch;
  const std::string bytes = "abcdef";
  EXPECT_TRUE(kind.make(bytes_of(bytes), {.parts = parts}, slot, length, scratch, nullptr).result.ok());
  EXPECT_EQ(corners, (std::array<std::int64_t, 2>{100, 40}));
  EXPECT_EQ(std::memcmp(data.data(), "abcdef", 6), 0);
  EXPECT_EQ(kind.make(bytes_of(bytes), {}, slot, length, scratch, nullptr).result.code, Code::mismatch);
}

}  // namespace
}  // namespace stoker::loader
