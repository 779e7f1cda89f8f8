// The floor under wav-files: threads that open, read, close and convert 16-bit mono WAV files into float32 rows, with
// nothing of a loader around it. usage: bare_wav_loop FOLDER FRAMES BATCH THREADS EPOCHS
// Says "ready", waits for a line, works, prints one line of JSON, as the contestants of bench/peers do.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

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

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string folder = argv[1];
  const std::size_t frames = std::strtoul(argv[2], nullptr, 10), batch = std::strtoul(argv[3], nullptr, 10);
  const std::size_t threads = std::strtoul(argv[4], nullptr, 10), epochs = std::strtoul(argv[5], nullptr, 10);
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();

  const double cpu_before = cpu_seconds();
  const auto started = std::chrono::steady_clock::now();
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::atomic<std::size_t> next{0}, failures{0};
  const std::size_t total = paths.size() * epochs;
  std::vector<std::thread> crew;
  for (std::size_t t = 0; t < threads; ++t) {
    crew.emplace_back([&] {
      std::vector<float> rows(frames * batch);
      std::vector<unsigned char> bytes(1 << 20);
      for (std::size_t first; (first = next.fetch_add(batch)) < total;) {
        for (std::size_t i = first; i < std::min(first + batch, total); ++i) {
          const int fd = open(paths[i % paths.size()].c_str(), O_RDONLY | O_CLOEXEC);
          const ssize_t got = fd < 0 ? -1 : read(fd, bytes.data(), bytes.size());
          if (fd >= 0) close(fd);
          if (got < 0) {
            ++failures;
          } else {
            convert(bytes.data(), static_cast<std::size_t>(got), rows.data() + (i - first) * frames, frames);
          }
        }
      }
    });
  }
  for (auto& worker : crew) worker.join();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"items\": %zu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"memory_bytes\": %ld, \"failures\": %zu, "
      "\"versions\": {}}\n",
      total, seconds, cpu_seconds() - cpu_before, usage.ru_maxrss * 1024, failures.load());
  return failures == 0 ? 0 : 1;
}
