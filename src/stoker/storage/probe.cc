#include "stoker/storage/probe.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/random.h"
#include "stoker/base/units.h"
#include "stoker/os/arena.h"

namespace stoker::storage {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAtOnce = 32;
constexpr std::uint64_t kLargeRead = kMiB;
constexpr double kMuchFaster = 2;  // below this, blocks are not worth their coarser mixing

// Reads of `bytes` at the offsets that `next` gives, until time is up.
template <typename Next>
double rate_of(const Source& source, std::uint64_t bytes, std::chrono::nanoseconds budget, std::uint64_t& reads,
               Next next) {
  const os::Arena arena(kAtOnce * bytes);
  std::vector<Read> batch(kAtOnce);
  const Clock::time_point began = Clock::now();
  std::uint64_t total = 0;
  std::chrono::nanoseconds spent{0};
  do {
    for (std::size_t i = 0; i < kAtOnce; ++i) batch[i] = Read{next(), arena.bytes().subspan(i * bytes, bytes)};
    source.read(batch);
    total += kAtOnce * bytes;
    reads += kAtOnce;
    spent = Clock::now() - began;
  } while (spent < budget);
  return static_cast<double>(total) / std::chrono::duration<double>(spent).count();
}

}  // namespace

DiskRates probe_disk(const Source& source, std::uint64_t sample_bytes, std::chrono::nanoseconds budget) {
  DiskRates rates;
  const std::uint64_t size = source.size_bytes();
  if (size == 0) return rates;
  const std::uint64_t single = std::clamp<std::uint64_t>(sample_bytes, 1, std::min(size, kLargeRead));
  const std::uint64_t large = std::min(size, kLargeRead);
  Random random(0x70726F6265, size, 0);
  rates.single_bytes_per_s = rate_of(source, single, budget / 2, rates.reads, [&] {
    const std::uint64_t places = (size - single) / single + 1;
    return (std::uint64_t{random.next()} << 32 | random.next()) % places * single;
  });
  // From somewhere in the middle, so that it is not what was read when the file was opened.
  std::uint64_t at = size / 2;
  rates.neighbour_bytes_per_s = rate_of(source, large, budget / 2, rates.reads, [&] {
    if (at + large > size) at = 0;
    return std::exchange(at, at + large);
  });
  return rates;
}

Text DiskRates::describe(bool shuffled) const {
  const auto rate = [](double bytes_per_s) { return fmt::format("{:.0f} MB/s", bytes_per_s / 1e6); };
  const std::string text = fmt::format("this disk gives {} of single samples and {} of neighbours",
                                       rate(single_bytes_per_s), rate(neighbour_bytes_per_s));
  const double times = single_bytes_per_s > 0 ? neighbour_bytes_per_s / single_bytes_per_s : 0;
  if (!shuffled || times < kMuchFaster) return text;
  return format_text("{}; {} would read up to {:.1f} times as fast", text, option("shuffle", "blocks"), times);
}

}  // namespace stoker::storage
