#include "stoker/report/words.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker::report {

std::string_view name(Stage stage) noexcept {
  switch (stage) {
    case Stage::compute:
      return "compute";
    case Stage::h2d:
      return "h2d";
    case Stage::fetch:
      return "fetch";
    case Stage::prep:
      return "prep";
    case Stage::handoff:
      return "hand-off";
    case Stage::wait:
      return "wait";
  }
  return "wait";
}

double SplitBar::total_ms() const noexcept {
  double total = 0;
  for (const auto& [stage, ms] : parts) total += ms;
  return total;
}

std::string per_second(double rate) {
  return format_rate(rate);
}

std::string interval_text(const Figure& figure) {
  if (!figure.low || !figure.high) return "";
  return fmt::format("95 %: {} to {}", per_second(*figure.low), per_second(*figure.high));
}

std::string rate_text(const Figure& figure) {
  const std::string interval = interval_text(figure);
  return fmt::format("{} samples/s{}", per_second(figure.value),
                     interval.empty() ? "" : fmt::format(" ({})", interval));
}

std::string percent(double share) {
  const double value = 100 * share;
  if (value > 0 && value < 0.1) return "below 0.1 %";
  return std::abs(value) >= 9.95 || value == 0 ? fmt::format("{:.0f} %", value) : fmt::format("{:.1f} %", value);
}

std::string milliseconds(double ms) {
  if (ms >= 60'000) return format_duration(std::chrono::nanoseconds(std::llround(std::min(ms, 9e12) * 1e6)));
  if (ms >= 999.5) return fmt::format("{:.2f} s", ms / 1000);
  if (ms >= 99.5) return fmt::format("{:.0f} ms", ms);
  return ms >= 9.95 ? fmt::format("{:.1f} ms", ms) : fmt::format("{:.2f} ms", ms);
}

std::string ratio(double times) {
  return times >= 9.95   ? fmt::format("{:.0f}x", times)
         : times >= 1.95 ? fmt::format("{:.1f}x", times)
                         : fmt::format("{:.2f}x", times);
}

std::string byte_text(double bytes) {
  return format_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 9e18)));
}

std::string sentence(std::string text) {
  if (text.empty()) return text;
  const std::string first = text.substr(0, text.find(' '));
  const bool is_to_type = first == "stoker" || first.find_first_of("_=`") != std::string::npos;
  if (text[0] >= 'a' && text[0] <= 'z' && !is_to_type) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (!text.ends_with('.')) text += '.';
  return text;
}

std::string plural(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string short_number(double value) {
  if (value >= 10'000 && value == std::floor(value) && value < 1e15)
    return format_count(static_cast<std::uint64_t>(value));
  return fmt::format("{:.4g}", value);
}

std::string_view glyph(tune::Status status) noexcept {
  using tune::Status;
  switch (status) {
    case Status::ok:
      return "";
    case Status::oom_device:
      return "▲";
    case Status::oom_host:
      return "△";
    case Status::oom_shm:
      return "◇";
    case Status::oom_fd:
      return "□";
    case Status::oom_suspect:
      return "▽";
    case Status::runtime_fault:
      return "×";
    case Status::worker_died:
      return "†";
    case Status::hang:
      return "∞";
    case Status::killed_unknown:
      return "?";
    case Status::user_error:
      return "!";
    case Status::skipped_memory:
      return "–";
    case Status::pruned:
      return "·";
  }
  return "?";
}

std::string_view meaning(tune::Status status) noexcept {
  using tune::Status;
  switch (status) {
    case Status::ok:
      return "it ran";
    case Status::oom_device:
      return "the accelerator's memory ran out: larger batches will not fit either";
    case Status::oom_host:
      return "the machine's memory, or the limit given, ran out";
    case Status::oom_shm:
      return "/dev/shm ran out, through which workers hand over batches";
    case Status::oom_fd:
      return "file descriptors ran out: raise `ulimit -n`";
    case Status::oom_suspect:
      return "killed from outside while memory was short: probably out of memory";
    case Status::runtime_fault:
      return "the device, its driver or a library failed: no sign of too little memory, and another try may pass";
    case Status::worker_died:
      return "a loader's worker process died";
    case Status::hang:
      return "no sign of life until the deadline";
    case Status::killed_unknown:
      return "it ended without saying why";
    case Status::user_error:
      return "an error of the job itself: other settings will hardly mend it";
    case Status::skipped_memory:
      return "not tried: it would have needed more memory than the limit";
    case Status::pruned:
      return "not tried: ruled out by other points";
  }
  return "";
}

std::string in_flags(const Text& text) {
  return text.in_flags([](std::string_view) { return true; });
}

}  // namespace stoker::report
