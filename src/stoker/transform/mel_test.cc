// Spectrograms and the operations around them. python/tests/test_audio_transforms.py compares the values with
// torchaudio's.
#include "stoker/transform/mel.h"

#include <cmath>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "stoker/base/random.h"
#include "stoker/transform/audio_plan.h"
#include "stoker/transform/plans_test.h"
#include "stoker/transform/without_wide_kernels_test.h"

namespace stoker::transform {
namespace {

std::vector<float> white_noise(std::uint64_t count, std::uint64_t seed = 1) {
  Random random(seed, 0, 0);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

struct MadeSound {
  Result result;
  std::vector<float> values;
  std::uint64_t written = 0;
};

MadeSound make_sound(std::string_view text, const std::vector<float>& planar, std::uint32_t channels = 1,
                     AudioChance chance = {}) {
  const AudioPlan plan = compile(text, audio(channels, 16000));
  const std::uint64_t frames = planar.size() / channels;
  const AudioWindow window = plan.window(frames, 16000, chance);
  const std::uint64_t room = plan.output_frames(frames, 16000);
  MadeSound sound;
  sound.values.assign(room * plan.output_rows(), -9.0F);
  Scratch scratch;
  sound.result =
      plan.apply(planar.data() + window.first, frames, window.count, 16000,
                 reinterpret_cast<std::byte*>(sound.values.data()), room, sound.written, scratch, channels, chance);
  return sound;
}

std::vector<float> sound_of(std::string_view text, const std::vector<float>& planar, AudioChance chance = {}) {
  const MadeSound all = make_sound(text, planar, 1, chance);
  EXPECT_TRUE(all.result.ok()) << all.result.cause;
  return all.values;
}

TEST(Mel, HasOneStepPerHopAndReflectsTheEnds) {
  const std::vector<float> wave = white_noise(1600);
  const MadeSound mel = make_sound("mel:16000:400:hop_length=160:n_mels=40", wave);
  ASSERT_TRUE(mel.result.ok()) << mel.result.cause;
  EXPECT_EQ(mel.values.size(), 40u * 11);
  EXPECT_EQ(mel.written, 11u);
  // The first step sees the audio mirrored around its first sample.
  std::vector<float> mirrored(wave.begin() + 1, wave.begin() + 201);
  std::reverse(mirrored.begin(), mirrored.end());
  mirrored.insert(mirrored.end(), wave.begin(), wave.begin() + 200);
  const std::vector<float> alone = sound_of("mel:16000:400:hop_length=160:n_mels=40:center=false", mirrored);
  ASSERT_EQ(alone.size(), 40u);
  for (std::size_t band = 0; band < 40; ++band) ASSERT_EQ(alone[band], mel.values[band * 11]);
}

TEST(Mel, IsTheSameWithAndWithoutWideKernelsAndForAnyNumberOfSteps) {
  const std::vector<float> wave = white_noise(5000);
  for (const char* text : {"mel:16000:400:hop_length=160:n_mels=80,db:power:80", "mel:16000:101:n_mels=10", "mfcc"}) {
    const std::vector<float> wide = sound_of(text, wave);
    const WithoutWideKernels plain;
    ASSERT_EQ(wide, sound_of(text, wave)) << text;
  }
  const std::vector<float> all = sound_of("mel:16000:400:center=false:n_mels=8", wave);
  const std::size_t steps = all.size() / 8;
  for (std::size_t count = 1; count < steps; ++count) {
    const std::vector<float> part = sound_of("mel:16000:400:center=false:n_mels=8",
                                             {wave.begin(), wave.begin() + 400 + 200 * static_cast<int>(count - 1)});
    ASSERT_EQ(part.size(), 8 * count);
    for (std::size_t band = 0; band < 8; ++band) {
      ASSERT_EQ(part[band * count + count - 1], all[band * steps + count - 1]) << count;
    }
  }
}

TEST(Mel, SilenceIsTheFloorOfDecibels) {
  for (const float value : sound_of("mel,db", std::vector<float>(800))) ASSERT_NEAR(value, -100, 1e-4);
}

TEST(Mel, DecibelsAreExactToFloatPrecision) {
  std::vector<float> values;
  for (double x = 1e-12; x < 1e12; x *= 1.37) values.push_back(static_cast<float>(x));
  std::vector<float> decibels = values;
  to_decibel({decibels.data(), 1, decibels.size(), decibels.size()}, 10, -1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double exact = 10 * std::log10(std::max(static_cast<double>(values[i]), static_cast<double>(1e-10F)));
    ASSERT_NEAR(decibels[i], exact, 1e-5 + 2e-7 * std::abs(exact)) << values[i];
  }
}

TEST(AudioSteps, RandomTrimTakesEveryPlaceAndThePlanDecodesNoMore) {
  std::vector<float> ramp(1000);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  const AudioPlan plan = compile("random_trim:100", audio(1, 16000));
  std::vector<bool> seen(901);
  for (std::uint64_t id = 0; id < 9000; ++id) {
    const AudioWindow window = plan.window(1000, 16000, {.seed = 3, .id = id});
    ASSERT_EQ(window.count, 100u);
    ASSERT_LE(window.first, 900u);
    seen[window.first] = true;
  }
  EXPECT_GT(std::count(seen.begin(), seen.end(), true), 880);
  const AudioChance chance{.seed = 3, .id = 5};
  const std::vector<float> part = sound_of("random_trim:100", ramp, chance);
  EXPECT_EQ(part.front(), static_cast<float>(plan.window(1000, 16000, chance).first));
  EXPECT_EQ(part.back(), part.front() + 99);
  EXPECT_EQ(sound_of("random_trim:5", {1, 2, 3}), (std::vector<float>{1, 2, 3, 0, 0}));
  EXPECT_EQ(make_sound("random_trim:5", {1, 2, 3}).written, 3u);
}

TEST(AudioSteps, AreDrawnFromTheSampleAlone) {
  const std::vector<float> wave = white_noise(3000);
  const char* const text =
      "random_trim:2000,gain,polarity_inversion,shift:p=1,mel:16000:400:n_mels=20,time_mask:5,freq_mask:5";
  const std::vector<float> once = sound_of(text, wave, {1, 2, 3});
  EXPECT_EQ(sound_of(text, wave, {1, 2, 3}), once);
  EXPECT_NE(sound_of(text, wave, {1, 2, 4}), once);
  EXPECT_NE(sound_of(text, wave, {1, 3, 3}), once);
  EXPECT_NE(sound_of(text, wave, {2, 2, 3}), once);
}

TEST(AudioSteps, VolClipsAndGainDoesNot) {
  EXPECT_EQ(sound_of("vol:4", {0.5F, -0.5F, 0.1F}), (std::vector<float>{1, -1, 0.4F}));
  EXPECT_EQ(sound_of("vol:4:power", {0.25F}), (std::vector<float>{0.5F}));
  EXPECT_NEAR(sound_of("vol:-20:db", {0.5F})[0], 0.05F, 1e-7);
  EXPECT_NEAR(sound_of("gain:20:20:1", {0.5F})[0], 5, 1e-5);
  EXPECT_EQ(sound_of("gain:20:20:0", {0.5F})[0], 0.5F);
  EXPECT_EQ(sound_of("polarity_inversion:1", {0.5F}), (std::vector<float>{-0.5F}));
}

TEST(AudioSteps, ShiftRollsOrClears) {
  const std::vector<float> five{1, 2, 3, 4, 5};
  EXPECT_EQ(sound_of("shift:0.4:0.4:p=1", five), (std::vector<float>{4, 5, 1, 2, 3}));
  EXPECT_EQ(sound_of("shift:-0.4:-0.4:p=1", five), (std::vector<float>{3, 4, 5, 1, 2}));
  EXPECT_EQ(sound_of("shift:0.4:0.4:false:1", five), (std::vector<float>{0, 0, 1, 2, 3}));
  EXPECT_EQ(sound_of("shift:-0.4:-0.4:false:1", five), (std::vector<float>{3, 4, 5, 0, 0}));
  // Before the trimming it moves what the trimming sees; after it, only what is left.
  EXPECT_EQ(sound_of("shift:0.4:0.4:p=1,pad:2", five), (std::vector<float>{4, 5}));
  EXPECT_EQ(sound_of("pad:2,shift:0.5:0.5:p=1", five), (std::vector<float>{2, 1}));
  EXPECT_EQ(sound_of("shift:0.4:0.4:p=1,pad:7", five), (std::vector<float>{4, 5, 1, 2, 3, 0, 0}));
}

TEST(AudioSteps, MasksCoverNeighboursAndNoMoreThanAsked) {
  const std::vector<float> wave = white_noise(8000);
  const std::vector<float> whole = sound_of("mel:16000:400:n_mels=20", wave);
  const std::size_t steps = whole.size() / 20;
  std::size_t most = 0;
  for (std::uint64_t id = 0; id < 200; ++id) {
    const std::vector<float> masked = sound_of("mel:16000:400:n_mels=20,time_mask:10", wave, {.id = id});
    std::size_t first = steps, last = 0, count = 0;
    for (std::size_t t = 0; t < steps; ++t) {
      if (masked[t] == 0) first = std::min(first, t), last = t, ++count;
      for (std::size_t band = 0; band < 20; ++band) {
        ASSERT_EQ(masked[band * steps + t], masked[t] == 0 ? 0 : whole[band * steps + t]);
      }
    }
    ASSERT_TRUE(count == 0 || last - first + 1 == count);
    most = std::max(most, count);
  }
  EXPECT_EQ(most, 9u);
  const std::vector<float> none = sound_of("mel:16000:400:n_mels=20,time_mask:10:p=0.001,freq_mask:0", wave);
  EXPECT_EQ(none, whole);
}

TEST(AudioSteps, ChannelsHaveSpectrogramsOfTheirOwn) {
  const std::vector<float> left = white_noise(2000, 1), right = white_noise(2000, 2);
  std::vector<float> both = left;
  both.insert(both.end(), right.begin(), right.end());
  const MadeSound stereo = make_sound("mel:16000:400:n_mels=20", both, 2);
  ASSERT_TRUE(stereo.result.ok()) << stereo.result.cause;
  std::vector<float> apart = sound_of("mel:16000:400:n_mels=20", left);
  const std::vector<float> other = sound_of("mel:16000:400:n_mels=20", right);
  apart.insert(apart.end(), other.begin(), other.end());
  EXPECT_EQ(stereo.values, apart);
  EXPECT_EQ(compile("mel:16000:400:n_mels=20", audio(2, 16000)).output().shape, (std::vector<std::uint64_t>{2, 20, 0}));
}

TEST(AudioSteps, OfImpossibleListsAreRefusedInOneSentence) {
  const auto refusal = [](std::string_view text, std::uint64_t frames = 0) -> std::string {
    try {
      AudioPlan::compile(parse_ops(text), {1, 16000, frames});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [&](std::string_view text, std::string_view wanted, std::uint64_t frames = 0) {
    const std::string refused = refusal(text, frames);
    EXPECT_NE(refused.find(wanted), std::string::npos) << text << ": " << refused;
  };
  says("mel:8000", "sample_rate is 8000, but the audio has 16000 Hz");
  says("pad:150,mel", "n_fft = 400 needs at least 201 frames, and PadOrTrim leaves 150");
  says("mel", "needs at least 201 frames, and the first audio has 150", 150);
  says("time_mask:5", "it takes a spectrogram");
  says("mel,pad:100", "it takes a waveform, and MelSpectrogram comes before it");
  says("gain,mono", "it cannot come after Gain");
  says("random_trim:5,pad:5", "RandomTrim says the length already");
  says("mfcc,db", "MFCC takes decibels already");
  says("mel,mfcc", "there is a spectrogram already");
  says("mel:16000:1", "n_fft = 1 is not between 2 and 65536");
  says("mel:16000:400:500", "win_length = 500 is not between 1 and n_fft = 400");
  says("mel:win_length=0", "win_length = 0 is not between 1 and 65536");
  says("mel:hop_length=0", "hop_length = 0 is not between 1 and 1048576");
  says("mel:f_max=0", "f_max = 0 is not above 0");
  says("mfcc:hop_length=0", "hop_length = 0 is not between 1 and 1048576");
  says("mel:f_max=9000", "f_max = 9000 is above half the sample rate, 8000");
  says("mfcc:16000:200", "n_mfcc = 200 is not between 1 and n_mels = 128");
  says("vol:0:power", "gain = 0 is not above 0");
  says("gain:6:-6", "min_gain_in_db = 6 is above max_gain_in_db = -6");
  says("random_apply[gain]", "it is for images, and these are audio");
}

}  // namespace
}  // namespace stoker::transform
