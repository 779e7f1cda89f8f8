// The ceiling over npy-copy: memcpy of rows in random order from a mapped, warm file into a ring of three batches.
// usage: bare_copy_rows FILE DATA_OFFSET ROW_BYTES ROWS BATCH THREADS EPOCHS
// Says "ready", waits for a line, works, prints one line of JSON, as the contestants of bench/peers do.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contestant.h"

namespace {

constexpr std::size_t kSlabs = 3;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
  const std::size_t offset = number(2), row_bytes = number(3), rows = number(4), batch = number(5), threads = number(6),
                    epochs = number(7);
  bare::wait_for_go();

  const bare::Stopwatch stopwatch;
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) < offset + rows * row_bytes)
    return 1;
  const auto* file =
      static_cast<const char*>(mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, fd, 0));
  auto* ring = static_cast<char*>(
      mmap(nullptr, kSlabs * batch * row_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (file == MAP_FAILED || ring == MAP_FAILED) return 1;
  madvise(ring, kSlabs * batch * row_bytes, MADV_HUGEPAGE);

  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 random(42);
  const std::size_t total = rows * epochs;
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> crew;
    for (std::size_t t = 0; t < threads; ++t) {
      crew.emplace_back([&] {
        for (std::size_t i; (i = next.fetch_add(1)) < rows;) {
          std::memcpy(ring + (i % (kSlabs * batch)) * row_bytes, file + offset + order[i] * row_bytes, row_bytes);
        }
      });
    }
    for (auto& worker : crew) worker.join();
  }
  stopwatch.print(total);
  return 0;
}
