#include "stoker/transform/audio_plan.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/transform/golden_test.h"
#include "stoker/transform/plans_test.h"

namespace stoker::transform {
namespace {

std::vector<float> make_audio(const AudioPlan& plan, const std::vector<float>& planar, std::uint32_t channels,
                              std::uint32_t rate_hz, std::uint64_t slot_frames, std::uint64_t& written) {
  const std::uint64_t frames = planar.size() / channels;
  std::vector<float> slot(slot_frames * plan.output_channels(), -9);
  Scratch scratch;
  const Result result = plan.apply(planar.data(), frames, frames, rate_hz, reinterpret_cast<std::byte*>(slot.data()),
                                   slot_frames, written, scratch, channels);
  EXPECT_TRUE(result.ok()) << result.cause;
  return slot;
}

TEST(AudioPlan, ResamplesAsTorchaudioDoes) {
  for (const GoldenAudio& g : kAudio) {
    const AudioPlan plan = compile("resample:" + std::to_string(g.to_hz), audio(1, g.from_hz));
    ASSERT_EQ(plan.output_frames(g.frames, g.from_hz), g.frames_out);
    std::uint64_t written = 0;
    const auto out = make_audio(plan, make_waveform(g.seed, g.frames), 1, g.from_hz, g.frames_out, written);
    EXPECT_EQ(written, g.frames_out);
    for (const auto& [place, value] : g.values) EXPECT_NEAR(out[place], value, 1e-6) << g.from_hz << " at " << place;
    // A rate that is not the first sample's gives the same numbers.
    const AudioPlan other = compile("resample:" + std::to_string(g.to_hz), audio(1, 12345));
    EXPECT_EQ(make_audio(other, make_waveform(g.seed, g.frames), 1, g.from_hz, g.frames_out, written), out);
  }
}

TEST(AudioPlan, MixesPadsAndTrims) {
  const AudioPlan plan = compile("mono,pad:5", audio(2, 8000));
  EXPECT_EQ(plan.output_channels(), 1u);
  EXPECT_EQ(plan.output().shape, (std::vector<std::uint64_t>{5}));
  std::uint64_t written = 0;
  EXPECT_EQ(make_audio(plan, {1, 2, 3, 3, 4, 5}, 2, 8000, 5, written), (std::vector<float>{2, 3, 4, 0, 0}));
  EXPECT_EQ(written, 3u);
  EXPECT_EQ(make_audio(plan, {1, 2, 3, 4, 5, 6, 7}, 1, 8000, 5, written), (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(written, 5u);
  EXPECT_EQ(make_audio(plan, {3, 0, 6, 9, 0, 0}, 3, 8000, 5, written), (std::vector<float>{3, 3, 0, 0, 0}));
}

TEST(AudioPlan, TrimmingComputesTheSameStartAsTheWholeAudio) {
  const AudioPlan whole = compile("resample:8000", audio(1, 44100)),
                  trimmed = compile("resample:8000,pad:100", audio(1, 44100));
  const auto tone = make_waveform(4, 5000);
  std::uint64_t written = 0;
  auto all = make_audio(whole, tone, 1, 44100, whole.output_frames(5000, 44100), written);
  EXPECT_EQ(written, 908u);
  all.resize(100);
  EXPECT_EQ(make_audio(trimmed, tone, 1, 44100, 100, written), all);
  EXPECT_EQ(written, 100u);
}

TEST(AudioPlan, KeepsChannelsInRowsOfTheSlotAndConverts) {
  const AudioPlan plan = compile("", audio(2, 8000), DType::bf16);
  EXPECT_FALSE(plan.is_direct());
  EXPECT_TRUE(plan.output().varies);
  const std::vector<float> planar = {1, 2, -3, 0.5F};
  std::vector<std::uint16_t> slot(6, 0xFFFF);
  Scratch scratch;
  std::uint64_t written = 0;
  ASSERT_TRUE(
      plan.apply(planar.data(), 2, 2, 8000, reinterpret_cast<std::byte*>(slot.data()), 3, written, scratch).ok());
  EXPECT_EQ(slot, (std::vector<std::uint16_t>{0x3F80, 0x4000, 0, 0xC040, 0x3F00, 0}));
  EXPECT_EQ(plan.apply(planar.data(), 2, 2, 8000, reinterpret_cast<std::byte*>(slot.data()), 1, written, scratch).code,
            Code::too_large);
}

TEST(AudioPlan, NamesTheRemedyForMixedAudio) {
  const AudioPlan plain = compile("pad:5", audio(1, 8000));
  EXPECT_TRUE(plain.check(1, 8000).ok());
  EXPECT_NE(std::string(plain.check(2, 8000).cause).find("add Mono()"), std::string::npos);
  EXPECT_NE(std::string(plain.check(1, 16000).cause).find("add Resample(hz)"), std::string::npos);
  EXPECT_EQ(plain.check(1, 16000).code, Code::mismatch);
  EXPECT_EQ(plain.check(0, 8000).code, Code::corrupt);
  const AudioPlan both = compile("mono,resample:8000", audio(1, 8000));
  EXPECT_TRUE(both.check(6, 48000).ok());
  EXPECT_EQ(both.check(1, 4294967291u).code, Code::unsupported);
}

TEST(AudioPlan, SoundIsDirectWhenOnlyPaddedOrTrimmed) {
  EXPECT_TRUE(compile("", audio(1, 8000)).is_direct());
  EXPECT_TRUE(compile("pad:100", audio(2, 8000)).is_direct());
  EXPECT_FALSE(compile("mono", audio(1, 8000)).is_direct());
  EXPECT_FALSE(compile("resample:8000", audio(1, 8000)).is_direct());
  EXPECT_FALSE(compile("pad:100", audio(1, 8000), DType::f16).is_direct());
}

TEST(AudioPlan, SoundAsInt16IsWhatTheFileHadAndClipped) {
  const AudioPlan plan = compile("pad:11", audio(1, 8000), DType::i16);
  EXPECT_TRUE(plan.is_int16());
  EXPECT_FALSE(compile("mono,pad:11", audio(2, 8000), DType::i16).is_int16());
  const std::vector<float> from = {0,    1 / 32768.0F, -1 / 32768.0F, 32767 / 32768.0F, -1, 1.0F, -1.5F,
                                   1e9F, 0.5F,         -0.25F};
  std::vector<std::int16_t> slot(11, 99);
  Scratch scratch;
  std::uint64_t written = 0;
  ASSERT_TRUE(
      plan.apply(from.data(), 10, 10, 8000, reinterpret_cast<std::byte*>(slot.data()), 11, written, scratch).ok());
  EXPECT_EQ(slot, (std::vector<std::int16_t>{0, 1, -1, 32767, -32768, 32767, -32768, 32767, 16384, -8192, 0}));
}

TEST(AudioPlan, OneListServesAudioAndRowsOfItsPack) {
  const std::int16_t from[] = {-32768, 0, 16384, 32767};
  const char* const list = "mono,pad:4,tofloat";
  float packed[4], decoded[4];
  const ArrayPlan of_pack = compile(list, arrays(DType::i16, {4}));
  ASSERT_TRUE(of_pack.apply(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(packed)).ok());
  const AudioPlan of_audio = compile(list, audio(1, 8000));
  float source[4];
  for (int i = 0; i < 4; ++i) source[i] = static_cast<float>(from[i]) / 32768.0F;  // as the WAV decoder does
  Scratch scratch;
  std::uint64_t written = 0;
  ASSERT_TRUE(of_audio.apply(source, 4, 4, 8000, reinterpret_cast<std::byte*>(decoded), 4, written, scratch).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(decoded[i], packed[i]);
  EXPECT_NE(refusal("pad:5", arrays(DType::i16, {4})), "") << "another length";
  EXPECT_NE(refusal("mono", arrays(DType::i16, {2, 4})), "") << "two channels";
  EXPECT_TRUE(compile("tofloat", audio(1, 8000)).is_direct());
}

TEST(AudioPlan, RefusesImpossibleAudioLists) {
  const AudioInput tone = audio(1, 8000);
  EXPECT_EQ(refusal("rrc:224", tone),
            "cannot use transform `RandomResizedCrop`: it is for images, and these are audio");
  EXPECT_EQ(
      refusal("pad:5,resample:16000", tone),
      "cannot use transform `Resample`: it cannot come after PadOrTrim, which counts frames at the rate that leaves");
  EXPECT_EQ(refusal("pad:5,pad:6", tone), "cannot use transform `PadOrTrim`: it is given twice");
  EXPECT_EQ(refusal("tofloat,tofloat", tone), "cannot use transform `ToFloat`: it is given twice");
  EXPECT_EQ(refusal("tofloat", tone, DType::i16), "cannot give audio as int16: ToFloat makes it float");
  EXPECT_EQ(refusal("", tone, DType::u8), "cannot give audio as uint8");
  EXPECT_EQ(refusal("views(a=1[mono])", tone), "cannot use transform `Views`: it is for images, and these are audio");
  EXPECT_EQ(refusal("resample:9999991", audio(1, 9999973)),
            "cannot use transform `Resample`: 9999973 Hz and 9999991 Hz have too little in common");
}

TEST(AudioPlan, DescribesItselfInOneLine) {
  EXPECT_EQ(compile("mono,resample:8000", audio(2, 16000)).describe(),
            "mono -> resample to 8000 Hz -> float32 [frames]");
  EXPECT_EQ(compile("pad:80", audio(2, 16000), DType::f16).describe(), "pad or trim to 80 frames -> float16 [2, 80]");
}

}  // namespace
}  // namespace stoker::transform
