// A sample of any kind, looked at or decoded whole and as it is stored: for tools that check, describe and pack.
// As codec.h: no exceptions, no memory but the caller's, safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "stoker/codec/codec.h"

namespace stoker::codec {

// What the head of a file says. One of the three is filled, by the media's kind.
struct Head {
  Media media;
  ImageInfo image;
  AudioInfo audio;
  ArrayInfo array;
};

// Finds the media by content. A file that no codec reads is `unsupported`, an empty one `truncated`.
Result probe(Bytes bytes, Head& head, Scratch& scratch) noexcept;

// Bytes of the sample decoded: an image in the channels and depth it has, audio as float32, an array as it is.
std::uint64_t decoded_bytes(const Head& head) noexcept;

// Decodes into decoded_bytes() bytes at `into`. Damage that decoders otherwise tolerate is `corrupt` with `strict`.
Result decode(Bytes bytes, const Head& head, bool strict, std::byte* into, Scratch& scratch) noexcept;

}  // namespace stoker::codec
