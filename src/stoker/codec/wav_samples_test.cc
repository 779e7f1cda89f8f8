#include "stoker/codec/wav_samples.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "stoker/base/random.h"

namespace stoker::codec {
namespace {

constexpr SampleFormat kFormats[] = {SampleFormat::u8,  SampleFormat::s16, SampleFormat::s24,
                                     SampleFormat::s32, SampleFormat::f32, SampleFormat::f64};

using Raw = std::vector<std::byte>;

// Bytes of any value: floats among them are of all sizes, infinite, and not numbers.
Raw draw_bytes(Random& random, std::size_t count) {
  Raw raw(count);
  for (std::byte& byte : raw) byte = static_cast<std::byte>(random.below(256));
  return raw;
}

// As libsndfile words it: the integer, scaled to a range of one on both sides of zero.
float widened(SampleFormat format, const std::byte* at) {
  const std::size_t bytes = bytes_of(format);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  if (format == SampleFormat::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(value));
  if (format == SampleFormat::f64) return static_cast<float>(std::bit_cast<double>(value));
  const int bits = 8 * static_cast<int>(bytes);
  const std::int64_t range = std::int64_t{1} << (bits - 1);
  const auto stored = static_cast<std::int64_t>(value);
  const std::int64_t centred = format == SampleFormat::u8 ? stored - range
                               : stored < range           ? stored
                                                          : stored - 2 * range;
  return static_cast<float>(std::ldexp(static_cast<double>(centred), 1 - bits));
}

std::vector<float> widened(SampleFormat format, const std::byte* from, std::size_t count, std::size_t step) {
  std::vector<float> floats(count);
  for (std::size_t i = 0; i < count; ++i) floats[i] = widened(format, from + i * step);
  return floats;
}

bool same_bits(const float* a, const std::vector<float>& b) {
  return std::memcmp(a, b.data(), b.size() * sizeof(float)) == 0;
}

TEST(WavSamples, AreWidenedAlikeForEveryFormatLengthStepAndAlignment) {
  std::uint64_t number = 0;
  for (const SampleFormat format : kFormats) {
    const std::size_t bytes = bytes_of(format);
    for (const std::size_t channels : {1, 2, 3, 7}) {
      const std::size_t step = channels * bytes;
      for (std::size_t count = 1; count <= 70; ++count) {
        Random random(5, 0, number++);
        const Raw samples = draw_bytes(random, (count - 1) * step + bytes);
        const std::vector<float> expected = widened(format, samples.data(), count, step);
        for (std::size_t place = 0; place < 32; ++place) {
          // Without a byte to spare behind the last sample, so that ASan sees every step beyond.
          Raw room(place);
          room.insert(room.end(), samples.begin(), samples.end());
          const std::size_t gap = 1 + place % 8;
          for (const bool portable : {false, true}) {
            std::vector<float> into(gap + count + 1, -9.0F);
            (portable ? widen_portable : widen)(format, room.data() + place, count, step, into.data() + gap);
            ASSERT_TRUE(same_bits(into.data() + gap, expected))
                << "format " << static_cast<int>(format) << ", " << count << " samples, step " << step << ", place "
                << place << ", portable " << portable;
            ASSERT_EQ(std::count(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(gap), -9.0F), gap);
            ASSERT_EQ(into.back(), -9.0F) << "wrote behind the last sample";
          }
        }
      }
    }
  }
}

TEST(WavSamples, EveryValueOfSixteenBitsIsWidenedAlike) {
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  const auto* const from = reinterpret_cast<const std::byte*>(words.data());
  const std::vector<float> expected = widened(SampleFormat::s16, from, words.size(), 2);
  for (const auto widen_by : {widen, widen_portable}) {
    std::vector<float> into(words.size());
    widen_by(SampleFormat::s16, from, words.size(), 2, into.data());
    EXPECT_TRUE(same_bits(into.data(), expected));
  }
}

}  // namespace
}  // namespace stoker::codec
