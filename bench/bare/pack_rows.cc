// Bare loops over the rows of a raw pack's shard, in random order, with nothing of a loader around them.
// usage: bare_pack_rows SHARD OFFSET ROW_BYTES ROWS BATCH EPOCHS THREADS memory|ring|mmap DEPTH
// memory: rows are in memory before the time starts, and are copied into a ring of three batches.
// ring:   each row by one O_DIRECT read of its blocks, DEPTH in flight in one io_uring per thread.
// mmap:   copied out of a mapping with MADV_RANDOM, as it is faulted in.
// Says "ready", waits for a line, works, prints one line of JSON, as the contestants of bench/peers do.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contestant.h"

namespace {

constexpr std::size_t kSlabs = 3, kBlock = 512;

struct Job {
  std::string path;
  std::size_t offset = 0, row_bytes = 0, batch = 0, depth = 0;
  std::vector<std::uint32_t> order;  // of one epoch
  const char* rows = nullptr;        // memory, mmap
  char* slabs = nullptr;
  std::atomic<std::size_t> next{0}, failures{0};
};

void copy_rows(Job& job) {
  for (std::size_t i; (i = job.next.fetch_add(1)) < job.order.size();) {
    std::memcpy(job.slabs + i % (kSlabs * job.batch) * job.row_bytes, job.rows + job.order[i] * job.row_bytes,
                job.row_bytes);
  }
}

void read_rows(Job& job) {
  const int fd = open(job.path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  io_uring ring{};
  if (fd < 0 || io_uring_queue_init(static_cast<unsigned>(job.depth), &ring, 0) != 0) std::abort();
  const std::size_t room = (job.row_bytes + 2 * kBlock + 4095) / 4096 * 4096;
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(4096, job.depth * room)), &std::free);
  std::vector<std::size_t> length(job.depth);
  std::size_t in_flight = 0;
  const auto submit = [&](std::size_t slot) {
    const std::size_t i = job.next.fetch_add(1);
    if (i >= job.order.size()) return;
    const std::size_t at = job.offset + job.order[i] * job.row_bytes, begin = at / kBlock * kBlock;
    length[slot] = (at + job.row_bytes + kBlock - 1) / kBlock * kBlock - begin;
    io_uring_sqe* const sqe = io_uring_get_sqe(&ring);
    io_uring_prep_read(sqe, fd, memory.get() + slot * room, static_cast<unsigned>(length[slot]), begin);
    io_uring_sqe_set_data64(sqe, slot);
    ++in_flight;
  };
  for (std::size_t slot = 0; slot < job.depth; ++slot) submit(slot);
  while (in_flight > 0) {
    if (io_uring_submit_and_wait(&ring, 1) < 0) std::abort();
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring, &cqe) == 0) {
      const std::size_t slot = io_uring_cqe_get_data64(cqe);
      // The last block of the file may be cut short.
      if (cqe->res < static_cast<int>(length[slot] - kBlock)) ++job.failures;
      io_uring_cqe_seen(&ring, cqe);
      --in_flight;
      submit(slot);
    }
  }
  io_uring_queue_exit(&ring);
  close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 10) return 2;
  const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
  Job job;
  job.path = argv[1];
  job.offset = number(2), job.row_bytes = number(3), job.batch = number(5), job.depth = number(9);
  const std::size_t rows = number(4), epochs = number(6), threads = number(7);
  const std::string how = argv[8];
  job.order.resize(rows);
  std::iota(job.order.begin(), job.order.end(), 0u);
  const auto anonymous = [](std::size_t bytes) {
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::abort();
    madvise(at, bytes, MADV_HUGEPAGE);
    return static_cast<char*>(at);
  };
  job.slabs = anonymous(kSlabs * job.batch * job.row_bytes);
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 1;
  if (how == "memory") {
    char* const copy = anonymous(rows * job.row_bytes);
    for (std::size_t at = 0; at < rows * job.row_bytes;) {
      const ssize_t got = pread(fd, copy + at, rows * job.row_bytes - at, static_cast<off_t>(job.offset + at));
      if (got <= 0) return 1;
      at += static_cast<std::size_t>(got);
    }
    job.rows = copy;
  }
  bare::wait_for_go();

  const bare::Stopwatch stopwatch;
  if (how == "mmap") {
    void* const file = mmap(nullptr, job.offset + rows * job.row_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (file == MAP_FAILED) return 1;
    madvise(file, job.offset + rows * job.row_bytes, MADV_RANDOM);
    job.rows = static_cast<const char*>(file) + job.offset;
  }
  std::mt19937 random(42);
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(job.order.begin(), job.order.end(), random);
    job.next = 0;
    std::vector<std::thread> crew;
    for (std::size_t t = 0; t < threads; ++t) crew.emplace_back(how == "ring" ? read_rows : copy_rows, std::ref(job));
    for (auto& worker : crew) worker.join();
  }
  stopwatch.print(rows * epochs);
  return job.failures == 0 ? 0 : 1;
}
