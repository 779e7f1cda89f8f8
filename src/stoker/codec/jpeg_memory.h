// libjpeg's memory for decoding, taken from a Scratch instead of malloc: what an image needs is admitted piece by
// piece, and is gone when the scratch is reset. Reading the headers still uses malloc, for some 20 KB. Private to this
// folder; as thread-safe as the scratch.
#pragma once

#include <cstdio>

// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

#include "stoker/base/scratch.h"

namespace stoker::codec {

struct JpegMemory {
  jpeg_memory_mgr pub{};           // what libjpeg sees; the first member
  jpeg_memory_mgr* own = nullptr;  // libjpeg's
  Scratch* scratch = nullptr;
};

// From here on `jpeg` takes its memory from `scratch`. A refusal ends in error_exit with JERR_OUT_OF_MEMORY.
void take_from_scratch(jpeg_decompress_struct& jpeg, JpegMemory& memory, Scratch& scratch) noexcept;
// Must come before jpeg_destroy_decompress, which frees what libjpeg allocated itself.
void give_back_own_memory(jpeg_decompress_struct& jpeg, const JpegMemory& memory) noexcept;

}  // namespace stoker::codec
