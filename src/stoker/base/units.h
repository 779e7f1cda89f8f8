// Bytes, durations and counts as people write and read them. Sizes print in powers of 1024 (KiB, MiB, GiB);
// rates in powers of 1000 (MB/s). On input "4GB" is 4 * 10^9 and "4GiB" is 4 * 2^30.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

std::uint64_t parse_bytes(std::string_view text);                // "512", "64MB", "1.5 GiB"; throws Error(usage)
std::chrono::nanoseconds parse_duration(std::string_view text);  // "250ms", "10m", "15d", "1.5" (seconds)

std::string format_bytes(std::uint64_t bytes);            // "7.1 KiB"
std::string format_count(std::uint64_t count);            // "1,234,567"
std::string format_rate(double per_second);               // "121,400" / "3.52" : three significant digits or whole
std::string format_duration(std::chrono::nanoseconds t);  // "840 us", "1.24 s", "3 min 20 s", "2 h 5 min"

}  // namespace stoker
