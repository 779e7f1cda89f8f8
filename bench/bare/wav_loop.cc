// The floor under wav-files: threads that open, read, close and convert 16-bit mono WAV files into float32 rows, with
// nothing of a loader around it; the list of files is made before the time starts.
// usage: bare_wav_loop FOLDER FRAMES BATCH EPOCHS THREADS in-order|shuffled DEPTH
// DEPTH 0 is open, read, close, one after the other; else one io_uring per thread opens, reads and closes DEPTH files
// at a time.
// Says "ready", waits for a line, works, prints one line of JSON, as the contestants of bench/peers do.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include "contestant.h"

namespace {

constexpr std::size_t kFileBytes = 1 << 17;  // a larger file counts as a failure

struct Job {
  std::vector<std::string> paths;
  std::size_t frames = 0, batch = 0, total = 0, depth = 0;
  std::atomic<std::size_t> next{0}, failures{0};

  const char* path(std::size_t i) const { return paths[i % paths.size()].c_str(); }
};

// Converts the samples of a canonical file (44-byte header) and clears the rest of the row.
void convert(const unsigned char* bytes, std::size_t size, float* row, std::size_t frames) {
  const std::size_t held = size > 44 ? (size - 44) / 2 : 0;
  const std::size_t count = std::min(frames, held);
  for (std::size_t i = 0; i < count; ++i) {
    std::int16_t sample;
    std::memcpy(&sample, bytes + 44 + 2 * i, 2);
    row[i] = static_cast<float>(sample) * (1.0f / 32768.0f);
  }
  std::fill(row + count, row + frames, 0.0f);
}

// `got` is what a read returned.
void convert_or_fail(Job& job, const unsigned char* bytes, std::int64_t got, float* row) {
  if (got < 0 || static_cast<std::size_t>(got) == kFileBytes) {
    ++job.failures;
  } else {
    convert(bytes, static_cast<std::size_t>(got), row, job.frames);
  }
}

void work_by_read(Job& job) {
  std::vector<float> rows(job.frames * job.batch);
  std::vector<unsigned char> bytes(kFileBytes);
  for (std::size_t first; (first = job.next.fetch_add(job.batch)) < job.total;) {
    for (std::size_t i = first; i < std::min(first + job.batch, job.total); ++i) {
      const int fd = open(job.path(i), O_RDONLY | O_CLOEXEC);
      const ssize_t got = fd < 0 ? -1 : read(fd, bytes.data(), bytes.size());
      if (fd >= 0) close(fd);
      convert_or_fail(job, bytes.data(), got, rows.data() + (i - first) * job.frames);
    }
  }
}

// Submits what was prepared and gives the results of all `count` of them, in any order, to `done(slot, result)`.
template <typename Done>
void complete(io_uring& ring, std::size_t count, Done done) {
  io_uring_submit(&ring);
  for (std::size_t i = 0; i < count; ++i) {
    io_uring_cqe* cqe = nullptr;
    if (io_uring_wait_cqe(&ring, &cqe) != 0) std::abort();
    done(io_uring_cqe_get_data64(cqe), cqe->res);
    io_uring_cqe_seen(&ring, cqe);
  }
}

void work_by_ring(Job& job) {
  io_uring ring{};
  if (io_uring_queue_init(static_cast<unsigned>(job.depth), &ring, 0) != 0 ||
      io_uring_register_files_sparse(&ring, static_cast<unsigned>(job.depth)) != 0)
    std::abort();
  std::vector<float> rows(job.frames * job.batch);
  const auto bytes = std::make_unique_for_overwrite<unsigned char[]>(job.depth * kFileBytes);  // touched as far as used
  for (std::size_t first; (first = job.next.fetch_add(job.depth)) < job.total;) {
    const std::size_t count = std::min(job.depth, job.total - first);
    const auto prepare_each = [&](auto prepare) {
      for (unsigned slot = 0; slot < count; ++slot) {
        io_uring_sqe* sqe = io_uring_get_sqe(&ring);
        prepare(sqe, slot);
        io_uring_sqe_set_data64(sqe, slot);
      }
    };
    prepare_each([&](io_uring_sqe* sqe, unsigned slot) {
      io_uring_prep_openat_direct(sqe, AT_FDCWD, job.path(first + slot), O_RDONLY, 0, slot);
    });
    complete(ring, count, [](std::uint64_t, int) {});  // a file that did not open fails its read
    prepare_each([&](io_uring_sqe* sqe, unsigned slot) {
      io_uring_prep_read(sqe, static_cast<int>(slot), bytes.get() + slot * kFileBytes, kFileBytes, 0);
      sqe->flags |= IOSQE_FIXED_FILE;
    });
    complete(ring, count, [&](std::uint64_t slot, int got) {
      convert_or_fail(job, bytes.get() + slot * kFileBytes, got, rows.data() + (first + slot) % job.batch * job.frames);
    });
    prepare_each([](io_uring_sqe* sqe, unsigned slot) { io_uring_prep_close_direct(sqe, slot); });
    complete(ring, count, [](std::uint64_t, int) {});
  }
  io_uring_queue_exit(&ring);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
  const std::size_t epochs = number(4), threads = number(5);
  Job job;
  job.frames = number(2);
  job.batch = number(3);
  job.depth = number(7);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (entry.is_regular_file()) job.paths.push_back(entry.path().string());
  }
  std::sort(job.paths.begin(), job.paths.end());
  if (std::string(argv[6]) == "shuffled") std::shuffle(job.paths.begin(), job.paths.end(), std::mt19937(42));
  job.total = job.paths.size() * epochs;
  bare::wait_for_go();

  const bare::Stopwatch stopwatch;
  std::vector<std::thread> crew;
  for (std::size_t t = 0; t < threads; ++t)
    crew.emplace_back(job.depth > 0 ? work_by_ring : work_by_read, std::ref(job));
  for (auto& worker : crew) worker.join();
  stopwatch.print(job.total);
  return job.failures == 0 ? 0 : 1;
}
