// Our own decoder for the JPEG files that people train on: baseline, gray or YCbCr, 8 bits. It gives libjpeg-turbo's
// pixels, to the bit, in about half its time: those it gives by default, and with `fast` those it gives at that scale
// without its fancy upsampling. It declines whatever it is not certain of. Pure; safe from any thread.
#pragma once

#include "stoker/codec/codec.h"
#include "stoker/codec/jpeg/kernels.h"

namespace stoker::codec::jpeg {

// As decode_image. False: declined, for whatever reason (another kind of file, damage, a request that does not fit, no
// memory); `into` may have been written to, and libjpeg-turbo has to say what is right. `index`, if there is one, is
// used and extended; after a decline it is not to be used again.
bool decode_baseline(Bytes bytes, const ImageOptions& options, const Rect& region, const Pixels& into, Scratch& scratch,
                     SeekIndex* index = nullptr, const Kernels& kernels = kAvx2Kernels) noexcept;

}  // namespace stoker::codec::jpeg
