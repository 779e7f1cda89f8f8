#include "stoker/tune/row.h"

#include <array>

namespace stoker::tune {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 13> kNames = {
    "ok",          "oom_device", "oom_host",       "oom_shm",    "oom_fd",         "oom_suspect", "runtime_fault",
    "worker_died", "hang",       "killed_unknown", "user_error", "skipped_memory", "pruned"};
static_assert(kNames.size() == static_cast<std::size_t>(Status::pruned) + 1);

}  // namespace

std::string_view name(Status status) noexcept {
  return kNames[static_cast<std::size_t>(status)];
}

std::optional<Status> parse_status(std::string_view text) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<Status>(i);
  }
  return std::nullopt;
}

}  // namespace stoker::tune
