// What npy.cc and npz.cc offer codec.cc. Private to this folder; safe from any thread.
#pragma once

#include <cstddef>

#include "stoker/codec/codec.h"

namespace stoker::codec {

Result decode_npy(Bytes bytes, const ArrayInfo& info, std::byte* into) noexcept;
Result decode_npz(Bytes bytes, const ArrayInfo& info, std::byte* into, Scratch& scratch) noexcept;

}  // namespace stoker::codec
