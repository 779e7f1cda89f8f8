// What a plan makes of each sample: the tensors of the batch. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/dtype.h"

namespace stoker::transform {

enum class Layout : std::uint8_t { nchw, nhwc, channels_last };  // channels_last: NCHW shape, NHWC strides

struct OutputOptions {
  std::optional<DType> dtype;  // none: uint8 (uint16 where bits are kept) for images until something makes them
                               // float; float32 for audio (int16 is possible); as stored for arrays
  Layout layout = Layout::nchw;
};

// One tensor of the batch.
// A column of the index whose value, of each sample, an operation reads.
struct IndexColumn {
  std::string name;
  std::string when_missing;  // what to say where a data set has no such column: its value is then 0
};

struct Output {
  std::string name;        // "data", or the name of the group of views
  bool is_coords = false;  // where the row lies in its sample, not a part of the data
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;  // of one view of one sample, logical order (C,H,W or H,W,C); without the batch
  Layout layout = Layout::nchw;      // how an image lies in memory
  std::uint32_t views = 1;           // the tensor is [batch, shape...] for 1, else [batch, views, shape...]
  std::uint32_t first_view = 0;      // number of its first view, over all outputs
  std::size_t view_bytes = 0;        // of one view of one sample; 0 where frames are only known per batch
  bool varies = false;               // audio without PadOrTrim: the last dimension is the batch's longest
};

// "resize 8x8 -> uint8 [8, 8]": what is done, if anything, and what leaves; one line for people. `layout` is the word
// for how images lie in memory, " NCHW", or nothing.
std::string describe(const std::string& words, const Output& output, std::string_view layout = {});

}  // namespace stoker::transform
