#include "stoker/loader/audio_kind.h"

#include <algorithm>
#include <cstring>

namespace stoker::loader {

AudioKind::AudioKind(const FirstSample& first, const LoaderOptions& options)
    : plan_(transform::AudioPlan::compile(
          options.transform, {first.head.audio.channels, first.head.audio.rate_hz, first.head.audio.frames},
          options.output)) {
  const codec::AudioInfo& info = first.head.audio;
  facts_.kind = SampleKind::audio;
  facts_.outputs = {plan_.output()};
  facts_.description = plan_.describe();
  facts_.varies = plan_.output().varies;
  facts_.has_lengths = true;
  facts_.first_length = plan_.output_frames(info.frames, info.rate_hz);
  facts_.first_bytes = std::max<std::uint64_t>(1, first.bytes.size());
  facts_.channels = plan_.output_channels();
  facts_.rate_hz = plan_.output_rate_hz();
  facts_.is_heavy = info.working_bytes != 0 || plan_.has_spectrogram();
  facts_.scratch_estimate = info.working_bytes;
  if (!plan_.is_direct()) {
    const transform::AudioWindow window = plan_.window(info.frames, info.rate_hz, {});
    facts_.scratch_estimate +=
        window.count * info.channels * sizeof(float) + plan_.working_bytes(window.count, info.rate_hz, info.channels);
  }
}

bool AudioKind::is_too_short(const FirstSample& first, const LoaderOptions& options) {
  const codec::AudioInfo& info = first.head.audio;
  const auto plan = transform::AudioPlan::compile(options.transform, {info.channels, info.rate_hz, 0}, options.output);
  return plan.has_spectrogram() && plan.output_frames(info.frames, info.rate_hz) == 0;
}

RowResult AudioKind::probe(codec::Bytes bytes, codec::Media& media, codec::AudioInfo& info) const noexcept {
  media = codec::sniff(bytes);
  if (const Result result = codec::probe_audio(media, bytes, info); !result.ok()) return bad(result);
  return bad(plan_.check(info.channels, info.rate_hz), "transform");
}

RowResult AudioKind::measure(codec::Bytes bytes, std::uint64_t& length) const noexcept {
  codec::Media media;
  codec::AudioInfo info;
  const RowResult probed = probe(bytes, media, info);
  if (probed.result.ok()) length = plan_.output_frames(info.frames, info.rate_hz);
  return probed;
}

RowResult AudioKind::make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length,
                          Scratch& scratch, SeekStore*) const noexcept {
  codec::Media media;
  codec::AudioInfo info;
  if (const RowResult probed = probe(bytes, media, info); !probed.result.ok()) return probed;
  const std::uint64_t room = facts_.varies ? slot.length : plan_.output_frames(info.frames, info.rate_hz);
  if (info.frames == 0 && !plan_.has_spectrogram()) {  // padding is all of it: there is nothing to decode
    length = 0;
    std::memset(slot.outputs[0], 0, room * plan_.output_channels() * size_of(plan_.output().dtype));
    return {};
  }
  const transform::AudioChance chance{key.seed, key.epoch, key.id};
  const transform::AudioWindow window = plan_.window(info.frames, info.rate_hz, chance);
  if (plan_.is_direct()) {
    length = std::min(window.count, room);
    float* const into = reinterpret_cast<float*>(slot.outputs[0]);
    const Result result = codec::decode_audio(media, bytes, info, window.first, length, into, room, scratch);
    if (!result.ok()) return bad(result);
    for (std::uint32_t c = 0; c < info.channels; ++c) {
      std::memset(into + c * room + length, 0, (room - length) * sizeof(float));
    }
    return {};
  }
  const bool is_stored_so = info.format == codec::SampleFormat::s16 && info.channels == 1 && info.data_offset != 0;
  if (plan_.is_int16() && is_stored_so) {
    length = std::min(window.count, room);
    std::memcpy(slot.outputs[0], bytes.data() + info.data_offset + window.first * 2, length * 2);
    std::memset(slot.outputs[0] + length * 2, 0, (room - length) * 2);
    return {};
  }
  const std::uint64_t decoded_bytes = window.count * info.channels * sizeof(float);
  const std::uint64_t transform_bytes = plan_.working_bytes(window.count, info.rate_hz, info.channels);
  if (!scratch.expect(Scratch::rounded(decoded_bytes) + std::max(info.working_bytes, transform_bytes))) {
    return bad(kNoRoom);
  }
  const std::span<std::byte> memory = scratch.take(decoded_bytes);
  if (memory.data() == nullptr) return bad(kNoRoom);
  float* const planar = reinterpret_cast<float*>(memory.data());
  const Result result =
      codec::decode_audio(media, bytes, info, window.first, window.count, planar, window.count, scratch);
  if (!result.ok()) return bad(result);
  return bad(plan_.apply(planar, window.count, window.count, info.rate_hz, slot.outputs[0], room, length, scratch,
                         info.channels, chance),
             "transform");
}

}  // namespace stoker::loader
