// The ceiling over volumes: random 72x136x136 patches of a mapped, warm uint8 volume, z-scored to float32, into a ring
// of batches. Two passes over each patch, both plain loops that the compiler vectorises. usage: bare_patches FILE
// DATA_OFFSET DEPTH HEIGHT WIDTH PATCHES THREADS Says "ready", waits for a line, works, prints one line of JSON, as the
// contestants of bench/peers do.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contestant.h"

namespace {

constexpr std::size_t kDepth = 72, kHeight = 136, kWidth = 136, kElements = kDepth * kHeight * kWidth;
constexpr std::size_t kSlots = 10;  // patches in the ring, as a loader with batches of 2 has

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto number = [&](int i) { return static_cast<std::size_t>(std::strtoull(argv[i], nullptr, 10)); };
  const std::size_t offset = number(2), depth = number(3), height = number(4), width = number(5), patches = number(6),
                    threads = number(7);
  bare::wait_for_go();

  const bare::Stopwatch stopwatch;
  const int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) < offset + depth * height * width)
    return 1;
  const auto* const file = static_cast<const std::uint8_t*>(
      mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, fd, 0));
  const std::size_t ring_bytes = kSlots * kElements * sizeof(float);
  auto* const ring =
      static_cast<float*>(mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (file == MAP_FAILED || ring == MAP_FAILED) return 1;
  madvise(ring, ring_bytes, MADV_HUGEPAGE);

  std::atomic<std::size_t> next{0};
  std::vector<std::thread> crew;
  for (std::size_t t = 0; t < threads; ++t) {
    crew.emplace_back([&, t] {
      std::mt19937_64 random(42 + t);
      for (std::size_t i; (i = next.fetch_add(1)) < patches;) {
        const std::size_t z = random() % (depth - kDepth + 1), y = random() % (height - kHeight + 1),
                          x = random() % (width - kWidth + 1);
        const std::uint8_t* const first = file + offset + (z * height + y) * width + x;
        std::uint64_t sum = 0, squares = 0;
        for (std::size_t plane = 0; plane < kDepth; ++plane) {
          for (std::size_t line = 0; line < kHeight; ++line) {
            const std::uint8_t* const row = first + (plane * height + line) * width;
            std::uint32_t row_sum = 0, row_squares = 0;
            for (std::size_t c = 0; c < kWidth; ++c) {
              row_sum += row[c];
              row_squares += std::uint32_t{row[c]} * row[c];
            }
            sum += row_sum;
            squares += row_squares;
          }
        }
        const double mean = static_cast<double>(sum) / kElements;
        const double deviation = std::sqrt(static_cast<double>(squares) / kElements - mean * mean);
        const float shift = static_cast<float>(mean), scale = deviation > 0 ? static_cast<float>(1 / deviation) : 0;
        float* out = ring + i % kSlots * kElements;
        for (std::size_t plane = 0; plane < kDepth; ++plane) {
          for (std::size_t line = 0; line < kHeight; ++line, out += kWidth) {
            const std::uint8_t* const row = first + (plane * height + line) * width;
            for (std::size_t c = 0; c < kWidth; ++c) out[c] = (static_cast<float>(row[c]) - shift) * scale;
          }
        }
      }
    });
  }
  for (auto& worker : crew) worker.join();
  stopwatch.print(patches);
  return 0;
}
