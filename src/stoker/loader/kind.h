// How samples of one kind become rows of a batch. A kind learns from the first sample that can be read, compiles the
// transforms for it, and then makes rows on the workers. image_kind.h, audio_kind.h, array_kind.h and volume_kind.h are
// the kinds of decoded samples, encoded_kind.h is for callers who decode. Recipe chooses one for a data set. Immutable
// but for its notes; safe from any thread (one Scratch each).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/base/scratch.h"
#include "stoker/base/text.h"
#include "stoker/codec/whole.h"
#include "stoker/loader/kind_facts.h"
#include "stoker/loader/options.h"
#include "stoker/loader/seek_store.h"
#include "stoker/storage/location.h"
#include "stoker/transform/pass_times.h"

namespace stoker::loader {

class ChunkReader;
class ChunkStore;

inline constexpr std::size_t kMaxOutputs = 8;
inline constexpr std::size_t kMaxValues = 4;

// Where the row of one sample lies: one address per output.
struct Slot {
  std::array<std::byte*, kMaxOutputs> outputs{};
  std::uint64_t length = 0;  // elements of the last dimension, where it varies with the batch
  bool past_cache = false;   // the batch is larger than caches: what is only copied goes past them
};

// What volumes of chunks use.
struct Chunks {
  ChunkStore* store = nullptr;    // where decoded ones are kept; null: nowhere
  ChunkReader* reader = nullptr;  // who reads those of stores; null: the worker
};

// How long a worker waited for bytes while it made a row. They count as fetching.
struct Waits {
  std::int64_t ns = 0, until_ns = 0;  // in all, and when the last wait ended; 0: there was none
};

// What is known of a sample beside its bytes: its random key, and its values from the index, which are those of
// KindFacts::columns in that order.
struct SampleKey {
  std::uint64_t seed = 0, epoch = 0, id = 0;
  std::array<double, kMaxValues> values{};
  // Where a row is made of several parts: the source, offset and length of each, in the order in which their bytes
  // follow one another. A kind of patches derives its coordinates from them. Borrowed for the call; without names.
  std::span<const storage::Location> parts{};
  // KindFacts::takes_parts: the bytes of each of them, where they lie. Empty: they follow one another in `bytes`.
  std::span<const codec::Bytes> part_bytes{};
  std::uint64_t base_index = 0;  // of a row with parts: see Dataset::base_index
  Chunks chunks{};
  Waits* waits = nullptr;  // null: nobody wants to know
};

// What became of one row.
struct RowResult {
  Result result;
  const char* stage = "decode";  // "decode" or "transform"
  // Of Code::no_memory: the working memory that is enough for any crop of the sample. 0: what it asked for is enough.
  std::uint64_t most_bytes = 0;
};

Text cause_of(const Result& result);  // for people: the cause, and what they may change

inline RowResult bad(Result result, const char* stage = "decode") noexcept {
  return {result, stage, 0};
}

inline constexpr Result kNoRoom = failed(Code::no_memory, "no working memory for it");

// What a kind learns from.
struct FirstSample {
  std::string name;
  codec::Bytes bytes;
  codec::Head head;
  std::optional<codec::ArrayInfo> row;  // samples are rows of one array: dtype and shape of each; there are no bytes
};

class Kind {
 public:
  virtual ~Kind() = default;

  const KindFacts& facts() const noexcept { return facts_; }
  // Things worth saying once. They grow while rows are made.
  virtual std::vector<std::string> notes() const { return {}; }

  // What runs together over the pixels of a sample, and how long it took for one sample in 16. Empty: not an image.
  virtual std::vector<transform::Pass> passes() const { return {}; }

  // The row is planned: what it needs beside its parts can be asked for. From an I/O thread.
  virtual void announce(const SampleKey& key) const noexcept { (void)key; }

  // The row length of a sample, where it varies.
  virtual RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept = 0;
  // Writes the row; `length` is the true count of frames or bytes where rows have lengths. `seek` may be null.
  virtual RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length,
                         Scratch& scratch, SeekStore* seek) const noexcept = 0;

 protected:
  KindFacts facts_;
};

}  // namespace stoker::loader
