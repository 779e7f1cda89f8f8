// What a loader is asked to do. Plain values; the words, units and defaults are the same in Python and on the command
// line. option_table.h says of each option which values it takes; a new option is a field here and a row there.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "stoker/codec/codec.h"
#include "stoker/dataset/order.h"
#include "stoker/os/shared_region.h"
#include "stoker/storage/source.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/output.h"

namespace stoker::loader {

enum class OnError : std::uint8_t {
  raise,    // the batch that holds the sample throws
  skip,     // the batch is one shorter
  replace,  // another sample takes its place, the same one on every run
  zero,     // the row is zeros and marked not valid
};

enum class Decode : std::uint8_t {
  exact,  // the pixels that Pillow gives
  fast,   // close to them: JPEG decoded at a fraction of its size, chroma not smoothed, plain bilinear resize
  none,   // batches of encoded bytes, uint8 [batch, longest], with lengths: the caller decodes
};

// Whether places inside JPEG files are noted, so that later crops decode only what they touch: see seek_store.h.
enum class UseSeekIndex : std::uint8_t {
  automatic,  // kept in memory, within memory_limit, and saved where the data set has a cache folder
  memory,     // kept in memory only
  off,
};

// Files of arrays whose shapes differ.
enum class Shapes : std::uint8_t {
  equal,  // all have the shape of the first; another one is a bad sample
  pad,    // rows are packed, and the face pads them to the largest of the batch: see ragged_kind.h
  list,   // rows are packed, and the face gives a list of arrays
};

inline constexpr int kAuto = -1;

struct LoaderOptions {
  std::uint64_t batch_size = 1;  // per rank
  dataset::Shuffle shuffle{};    // blocks: what is left open is chosen from the data
  std::uint64_t seed = 0;
  dataset::LastBatch last_batch = dataset::LastBatch::keep;
  std::uint64_t rank = 0, world_size = 1;
  std::uint64_t epochs = 0;  // of the whole run, from epoch 0 on: nothing is read ahead of the last; 0: not known

  transform::Ops transform;
  codec::Color color = codec::Color::rgb;
  Decode decode = Decode::exact;
  bool exif_orientation = false;  // turn images as their Exif says, before all else; as Pillow's exif_transpose
  transform::OutputOptions output;
  std::vector<std::string> arrays;  // of .npz files: the arrays that are loaded, by name; empty: the only one
  Shapes shapes = Shapes::equal;
  UseSeekIndex seek_index = UseSeekIndex::automatic;

  int num_workers = kAuto;  // kAuto: effective cores, fewer while the consumer is the limit; 0: decode in next()
  std::uint64_t prefetch_factor = 2;  // ready batches beyond the one in use, in total
  std::uint64_t memory_limit = 0;     // bytes, hard; 0: default_memory_limit()
  storage::Storage storage = storage::Storage::buffered;
  std::uint64_t io_depth = 0;    // requests in flight per I/O thread, to a store of all threads together; 0: auto
  std::uint64_t io_batch = 0;    // requests per submission; 0: auto
  std::uint64_t read_ahead = 0;  // bytes fetched beyond the ready batches; 0: auto
  int io_threads = kAuto;
  std::uint64_t cache_limit = 0;  // bytes of objects of a store that are kept on disk; 0: none are
  std::string cache_dir;          // where they are kept; empty: $XDG_CACHE_HOME/stoker or ~/.cache/stoker

  OnError on_error = OnError::raise;
  double max_errors = 0;  // per epoch; below 1: share of the data set; from 1: count; 0: no limit
  std::chrono::nanoseconds timeout =
      std::chrono::minutes(5);  // without any progress: an error naming the sample; 0: never
  bool pin_memory = false;      // register slabs with the device runtime, where there is one

  // Not in the table of options: slabs lie here, where other processes may map them; null: in memory of this process.
  std::shared_ptr<os::SharedRegion> shared_region;
};

// The words of each, in the order of the enumerators.
inline constexpr std::array<std::string_view, 4> kOnErrorWords = {"raise", "skip", "replace", "zero"};
inline constexpr std::array<std::string_view, 3> kDecodeWords = {"exact", "fast", "none"};
inline constexpr std::array<std::string_view, 3> kShapesWords = {"equal", "pad", "list"};
inline constexpr std::array<std::string_view, 3> kColorWords = {"rgb", "gray", "keep"};
inline constexpr std::array<std::string_view, 3> kSeekIndexWords = {"auto", "memory", "off"};
inline constexpr std::array<std::string_view, 3> kLayoutWords = {"NCHW", "NHWC", "channels_last"};
inline constexpr std::array<std::string_view, 3> kLastBatchWords = {"keep", "drop", "pad"};

OnError parse_on_error(std::string_view text);  // these throw Error(usage), offering the nearest word
Decode parse_decode(std::string_view text);
Shapes parse_shapes(std::string_view text);
codec::Color parse_color(std::string_view text);
UseSeekIndex parse_seek_index(std::string_view text);
transform::Layout parse_layout(std::string_view text);
dataset::LastBatch parse_last_batch(std::string_view text);

// min(25 % of the cgroup or host limit, divided by the processes of a job that share the machine; 8 GB)
std::uint64_t default_memory_limit(int processes = 1);

std::string_view name(OnError on_error) noexcept;
std::string_view name(Decode decode) noexcept;
std::string_view name(Shapes shapes) noexcept;
std::string_view name(codec::Color color) noexcept;
std::string_view name(UseSeekIndex use) noexcept;
std::string_view name(transform::Layout layout) noexcept;
std::string_view name(dataset::LastBatch last_batch) noexcept;

}  // namespace stoker::loader
