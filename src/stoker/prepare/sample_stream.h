// The bytes of many samples, in the order asked for, read and worked on by several threads within a bound of memory.
// One thread takes them; the work runs on the stream's own threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "stoker/base/error.h"
#include "stoker/codec/codec.h"
#include "stoker/dataset/dataset.h"

namespace stoker::prepare {

struct StreamedSample {
  std::uint64_t index = 0;  // in the data set
  codec::Bytes bytes;       // borrowed from the chunk
  std::string fault;        // why the bytes are not there; empty: they are
  bool changed = false;     // it is longer or shorter than the data set says
  // What the work leaves.
  std::uint64_t xxh3 = 0;
  std::uint32_t height = 0, width = 0, channels = 0, rate_hz = 0;
  std::uint64_t frames = 0;
  codec::Media media;
  std::string problem;
  std::vector<std::byte> seek;  // note_places()
};

struct StreamOptions {
  int threads = 0;  // 0: the effective cores and one more, for the thread that waits
  std::uint64_t memory_bytes = std::uint64_t{64}
                               << 20;  // of payloads in flight; one larger sample at a time is let through
  storage::Storage storage = storage::Storage::buffered;
  std::function<void(StreamedSample&)> work;  // on any thread, for samples without a fault; must not throw
};

class SampleStream {
 public:
  struct Chunk {
    std::vector<StreamedSample> samples;
    std::unique_ptr<std::byte[]> memory;  // where their bytes lie
    std::size_t capacity = 0;
    std::vector<std::vector<std::byte>> others;  // files that are longer now than a cached listing says
  };

  // `indices` in the order wanted. The data set must outlive the stream.
  SampleStream(const dataset::Dataset& dataset, std::vector<std::uint64_t> indices, StreamOptions options);
  ~SampleStream();
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;

  // The next samples; null at the end. `keep_going` (if given) is asked now and then while waiting; false gives null
  // early. Throws Error only where no sample is to blame.
  std::unique_ptr<Chunk> next(const std::function<bool()>& keep_going = {});
  void give_back(std::unique_ptr<Chunk> chunk);  // its memory is used again: touching new pages is what costs

 private:
  void read_loop();

  const dataset::Dataset& dataset_;
  std::vector<std::uint64_t> indices_;
  StreamOptions options_;
  std::uint64_t chunk_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t planned_ = 0;    // indices given to chunks
  std::uint64_t serial_ = 0;     // of the next chunk to be read
  std::uint64_t delivered_ = 0;  // chunks taken by next()
  std::uint64_t window_ = 0;     // chunks in flight, at most
  std::map<std::uint64_t, std::unique_ptr<Chunk>> done_;
  std::vector<std::unique_ptr<Chunk>> free_;
  bool stopping_ = false;
  std::optional<Error> error_;
  std::vector<std::thread> threads_;
};

// Looks at the head of a payload: media, height, width, channels, frames, and what is wrong with it (`problem`). Never
// fails: what cannot be told stays 0.
void describe(StreamedSample& sample);
// Looks at the head of the payload, or decodes all of it: an empty text, or what is wrong with it.
std::string head_problem(codec::Bytes bytes);
std::string decode_problem(codec::Bytes bytes);

}  // namespace stoker::prepare
