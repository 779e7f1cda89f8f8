#include "stoker/prepare/sample_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/round.h"
#include "stoker/base/scratch.h"
#include "stoker/base/units.h"
#include "stoker/codec/whole.h"
#include "stoker/dataset/read_sample.h"
#include "stoker/os/cpu.h"
#include "stoker/storage/backend.h"

namespace stoker::prepare {
namespace {

constexpr std::uint64_t kMostPerChunk = 512;
constexpr std::size_t kDepth = 128;
constexpr auto kWait = std::chrono::milliseconds(200);

}  // namespace

// One thread's way to bytes: a fetcher of its own.
class Reader {
 public:
  Reader(const dataset::Dataset& dataset, storage::Storage storage)
      : fetcher_(storage::make_fetcher({.storage = storage, .depth = kDepth, .io_batch = 32}, dataset.backends())) {}

  void read(const dataset::Dataset& dataset, SampleStream::Chunk& chunk) {
    std::vector<StreamedSample>& samples = chunk.samples;
    const std::size_t align = std::max<std::size_t>(64, fetcher_->alignment());
    std::size_t total = align;
    for (const StreamedSample& sample : samples) {
      const storage::Location where = dataset.location(sample.index);
      if (!storage::has_view(where)) total += round_up(fetcher_->buffer_bytes(where.bytes), align);
    }
    if (chunk.capacity < total) {
      chunk.memory = std::make_unique_for_overwrite<std::byte[]>(total);
      chunk.capacity = total;
    }
    std::byte* at = chunk.memory.get() + (align - reinterpret_cast<std::uintptr_t>(chunk.memory.get()) % align) % align;
    std::size_t next = 0, out = 0;
    std::array<storage::Fetched, 64> finished;
    while (next < samples.size() || out > 0) {
      while (next < samples.size() && fetcher_->room() > 0 && out < kDepth) {
        StreamedSample& sample = samples[next];
        const storage::Location where = dataset.locate(sample.index, text_);
        std::optional<storage::Fetch> fetch = storage::fetch_of(where, next);
        if (!fetch) {
          sample.fault = std::strerror(ENAMETOOLONG);
          ++next;
          continue;
        }
        if (!storage::has_view(where)) {
          const std::size_t room = round_up(fetcher_->buffer_bytes(where.bytes), align);
          fetch->into = {at, room};
          at += room;
        }
        fetcher_->submit({&*fetch, 1});
        ++next;
        ++out;
      }
      if (out == 0) continue;
      const std::size_t count = fetcher_->wait(finished, kWait);
      out -= count;
      for (std::size_t i = 0; i < count; ++i) take(dataset, finished[i], samples[finished[i].tag]);
    }
    chunk.others.clear();
    Scratch scratch;
    for (StreamedSample& sample : samples) {
      if (!sample.changed || !dataset.location(sample.index).is_file()) continue;
      scratch.reset();
      const storage::WholeRead now = dataset::read_sample(dataset, sample.index, scratch);
      if (!now.ok() || now.bytes.empty()) continue;
      chunk.others.emplace_back(now.bytes.begin(), now.bytes.end());
      sample.bytes = chunk.others.back();
      sample.fault.clear();
      sample.changed = false;
    }
  }

 private:
  static void take(const dataset::Dataset& dataset, const storage::Fetched& fetched, StreamedSample& sample) {
    switch (fetched.code) {
      case storage::FetchCode::ok:
        sample.bytes = fetched.data;
        break;
      case storage::FetchCode::failed:
        sample.fault = fetched.why().text;
        break;
      case storage::FetchCode::size_changed:
        sample.changed = true;
        sample.fault = dataset::size_changed_cause(dataset.location(sample.index).bytes, fetched.actual_bytes);
        break;
    }
  }

  std::unique_ptr<storage::Fetcher> fetcher_;
  std::array<char, storage::kLocationText> text_;
};

SampleStream::SampleStream(const dataset::Dataset& dataset, std::vector<std::uint64_t> indices, StreamOptions options)
    : dataset_(dataset), indices_(std::move(indices)), options_(std::move(options)) {
  if (dataset.facts().most_parts > 1) {
    throw Error(ErrorKind::unsupported,
                fmt::format("cannot read `{}` sample by sample: each has several parts", dataset.facts().address));
  }
  const int threads = options_.threads > 0 ? options_.threads : os::effective_cores().whole() + 1;
  window_ = static_cast<std::uint64_t>(threads) + 2;
  chunk_bytes_ = std::max<std::uint64_t>(options_.memory_bytes / window_, 64 * kKiB);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { read_loop(); });
}

SampleStream::~SampleStream() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SampleStream::read_loop() {
  try {
    Reader reader(dataset_, options_.storage);
    while (true) {
      std::uint64_t begin = 0, end = 0, serial = 0;
      std::unique_ptr<Chunk> chunk;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || planned_ == indices_.size() || serial_ < delivered_ + window_; });
        if (stopping_ || planned_ == indices_.size()) return;
        begin = end = planned_;
        std::uint64_t bytes = 0;
        while (end < indices_.size() && end - begin < kMostPerChunk) {
          bytes += dataset_.location(indices_[end]).bytes;
          if (bytes > chunk_bytes_ && end > begin) break;
          ++end;
        }
        planned_ = end;
        serial = serial_++;
        if (!free_.empty()) {
          chunk = std::move(free_.back());
          free_.pop_back();
        }
      }
      if (!chunk) chunk = std::make_unique<Chunk>();
      chunk->samples.assign(end - begin, {});
      for (std::uint64_t i = begin; i < end; ++i) chunk->samples[i - begin].index = indices_[i];
      reader.read(dataset_, *chunk);
      if (options_.work) {
        for (StreamedSample& sample : chunk->samples) {
          if (sample.fault.empty()) options_.work(sample);
        }
      }
      {
        const std::scoped_lock lock(mutex_);
        done_[serial] = std::move(chunk);
      }
      changed_.notify_all();
    }
  } catch (const Error& error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = error;
  } catch (const std::exception& error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = Error(ErrorKind::unavailable, fmt::format("cannot read samples: {}", error.what()));
  }
  changed_.notify_all();
}

std::unique_ptr<SampleStream::Chunk> SampleStream::next(const std::function<bool()>& keep_going) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (error_) throw *error_;
    if (const auto found = done_.find(delivered_); found != done_.end()) {
      std::unique_ptr<Chunk> chunk = std::move(found->second);
      done_.erase(found);
      ++delivered_;
      lock.unlock();
      changed_.notify_all();
      return chunk;
    }
    if (planned_ == indices_.size() && delivered_ == serial_) return nullptr;
    if (changed_.wait_for(lock, std::chrono::milliseconds(50)) == std::cv_status::timeout && keep_going) {
      lock.unlock();
      if (!keep_going()) return nullptr;
      lock.lock();
    }
  }
}

void SampleStream::give_back(std::unique_ptr<Chunk> chunk) {
  const std::scoped_lock lock(mutex_);
  if (chunk && chunk->capacity <= 2 * chunk_bytes_ + 64 * kKiB) free_.push_back(std::move(chunk));
}

namespace {

Result look_at(codec::Bytes bytes, codec::Head& head, Scratch& scratch) noexcept {
  scratch.reset();
  return codec::probe(bytes, head, scratch);
}

Scratch& scratch_of_thread() {
  thread_local Scratch scratch;
  return scratch;
}

std::string text_of(const Result& result) {
  if (result.ok()) return {};
  return result.offset == kNoOffset ? std::string(result.cause)
                                    : fmt::format("{} at byte {}", result.cause, result.offset);
}

}  // namespace

void describe(StreamedSample& sample) {
  codec::Head head;
  sample.problem = text_of(look_at(sample.bytes, head, scratch_of_thread()));
  sample.media = head.media;
  if (!sample.problem.empty()) return;
  sample.height = head.image.height, sample.width = head.image.width;
  sample.frames = head.audio.frames, sample.rate_hz = head.audio.rate_hz;
  sample.channels = head.image.channels + head.audio.channels;  // only one of them is not 0
}

std::string head_problem(codec::Bytes bytes) {
  codec::Head head;
  return text_of(look_at(bytes, head, scratch_of_thread()));
}

std::string decode_problem(codec::Bytes bytes) {
  Scratch& scratch = scratch_of_thread();
  codec::Head head;
  if (const Result result = look_at(bytes, head, scratch); !result.ok()) return text_of(result);
  const std::span<std::byte> memory = scratch.take(std::max<std::uint64_t>(1, codec::decoded_bytes(head)));
  if (memory.empty()) return "no memory to decode it";
  return text_of(codec::decode(bytes, head, /*strict=*/true, memory.data(), scratch));
}

}  // namespace stoker::prepare
