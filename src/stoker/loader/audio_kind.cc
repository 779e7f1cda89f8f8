#include "stoker/loader/audio_kind.h"

#include <algorithm>
#include <cstring>

namespace stoker::loader {

AudioKind::AudioKind(const FirstSample& first, const LoaderOptions& options)
    : plan_(transform::AudioPlan::compile(options.transform, {first.head.audio.channels, first.head.audio.rate_hz},
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
  facts_.is_heavy = info.working_bytes != 0;
  facts_.scratch_estimate = info.working_bytes;
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

RowResult AudioKind::make(codec::Bytes bytes, const SampleKey&, const Slot& slot, std::uint64_t& length,
                          Scratch& scratch, SeekStore*) const noexcept {
  codec::Media media;
  codec::AudioInfo info;
  if (const RowResult probed = probe(bytes, media, info); !probed.result.ok()) return probed;
  const std::uint64_t room = facts_.varies ? slot.length : plan_.output_frames(info.frames, info.rate_hz);
  if (info.frames == 0) {  // padding is all of it: there is nothing to decode, and no working memory to take
    length = 0;
    std::memset(slot.outputs[0], 0, room * plan_.output_channels() * size_of(plan_.output().dtype));
    return {};
  }
  if (plan_.is_direct()) {
    length = std::min(info.frames, room);
    float* const into = reinterpret_cast<float*>(slot.outputs[0]);
    const Result result = codec::decode_audio(media, bytes, info, 0, length, into, room, scratch);
    if (!result.ok()) return bad(result);
    for (std::uint32_t c = 0; c < info.channels; ++c) {
      std::memset(into + c * room + length, 0, (room - length) * sizeof(float));
    }
    return {};
  }
  const bool is_stored_so = info.format == codec::SampleFormat::s16 && info.channels == 1 && info.data_offset != 0;
  if (plan_.is_int16() && is_stored_so) {
    length = std::min(info.frames, room);
    std::memcpy(slot.outputs[0], bytes.data() + info.data_offset, length * 2);
    std::memset(slot.outputs[0] + length * 2, 0, (room - length) * 2);
    return {};
  }
  const std::uint64_t decoded_bytes = info.frames * info.channels * sizeof(float);
  const std::uint64_t transform_bytes = plan_.working_bytes(info.frames, info.rate_hz, info.channels);
  if (!scratch.expect(Scratch::rounded(decoded_bytes) + std::max(info.working_bytes, transform_bytes))) {
    return bad(kNoRoom);
  }
  const std::span<std::byte> memory = scratch.take(decoded_bytes);
  if (memory.empty()) return bad(kNoRoom);
  float* const planar = reinterpret_cast<float*>(memory.data());
  const Result result = codec::decode_audio(media, bytes, info, 0, info.frames, planar, info.frames, scratch);
  if (!result.ok()) return bad(result);
  return bad(plan_.apply(planar, info.frames, info.frames, info.rate_hz, slot.outputs[0], room, length, scratch,
                         info.channels),
             "transform");
}

}  // namespace stoker::loader
