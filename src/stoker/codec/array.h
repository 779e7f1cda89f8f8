// What npz.cc needs of npy.cc. Private to this folder; safe from any thread.
#pragma once

#include <cstddef>

#include "stoker/codec/codec.h"

namespace stoker::codec {

Result decode_npy(Bytes bytes, const ArrayInfo& info, std::byte* into, Scratch& scratch) noexcept;

}  // namespace stoker::codec
