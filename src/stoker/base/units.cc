#include "stoker/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/ascii.h"
#include "stoker/base/error.h"

namespace stoker {
namespace {

struct Unit {
  std::string_view suffix;
  double factor;
};

constexpr std::array kByteUnits = {
    Unit{"", 1},       Unit{"b", 1},      Unit{"k", 1e3},    Unit{"kb", 1e3},           Unit{"m", 1e6},
    Unit{"mb", 1e6},   Unit{"g", 1e9},    Unit{"gb", 1e9},   Unit{"t", 1e12},           Unit{"tb", 1e12},
    Unit{"kib", 1024}, Unit{"mib", kMiB}, Unit{"gib", kGiB}, Unit{"tib", 1024.0 * kGiB}};
constexpr std::array kTimeUnits = {Unit{"", 1},   Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1},
                                   Unit{"m", 60}, Unit{"min", 60},  Unit{"h", 3600},  Unit{"d", 86400}};

template <std::size_t N>
double parse(std::string_view text, const std::array<Unit, N>& units, std::string_view what, std::string_view example) {
  const char* const end = text.data() + text.size();
  double number = 0;
  const auto [after, code] = std::from_chars(text.data(), end, number);
  std::string suffix;
  for (const char* p = after; p != end; ++p) {
    if (*p != ' ') suffix += to_lower(*p);
  }
  if (code == std::errc{} && number >= 0 && std::isfinite(number)) {
    for (const Unit& unit : units) {
      if (unit.suffix == suffix) return number * unit.factor;
    }
  }
  throw Error(ErrorKind::usage, fmt::format("`{}` is not {}", text, what), fmt::format("write it like {}", example));
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  const double bytes = parse(text, kByteUnits, "a size in bytes", "4GB, 512MiB or 65536");
  if (bytes >= 18e18) throw Error(ErrorKind::usage, fmt::format("`{}` is more bytes than any machine has", text));
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::chrono::nanoseconds parse_duration(std::string_view text) {
  const double seconds = parse(text, kTimeUnits, "a duration", "20ms, 1.5s, 10m, 2h or 15d");
  if (seconds > 9e9) throw Error(ErrorKind::usage, fmt::format("`{}` is too long a time", text));
  return std::chrono::nanoseconds(std::llround(seconds * 1e9));
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < names.size()) value /= 1024, ++unit;
  return fmt::format("{:.1f} {}", value, names[unit]);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string format_rate(double per_second) {
  if (!std::isfinite(per_second) || per_second < 0) return "-";
  if (per_second >= 99.5) return format_count(static_cast<std::uint64_t>(std::llround(per_second)));
  return per_second >= 9.95 ? fmt::format("{:.1f}", per_second) : fmt::format("{:.2f}", per_second);
}

std::string format_duration(std::chrono::nanoseconds t) {
  const double s = std::chrono::duration<double>(t).count();
  if (s < 0) return "-" + format_duration(-t);
  if (s < 1e-6) return fmt::format("{} ns", t.count());
  if (s < 0.9995e-3) return fmt::format("{:.0f} us", s * 1e6);
  if (s < 0.9995) return s < 0.01 ? fmt::format("{:.1f} ms", s * 1e3) : fmt::format("{:.0f} ms", s * 1e3);
  if (s < 59.95) return s < 9.995 ? fmt::format("{:.2f} s", s) : fmt::format("{:.1f} s", s);
  const auto whole = static_cast<std::uint64_t>(std::llround(s));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

}  // namespace stoker
