#include "stoker/meter/ledger.h"

#include <algorithm>

namespace stoker::meter {

WaitSplit& WaitSplit::operator+=(const WaitSplit& other) noexcept {
  fetch_ns += other.fetch_ns;
  prep_ns += other.prep_ns;
  handoff_ns += other.handoff_ns;
  return *this;
}

WaitSplit split_wait(std::int64_t from_ns, std::int64_t to_ns, std::span<const RowTimes> rows) noexcept {
  WaitSplit split;
  std::int64_t at = from_ns;
  for (const RowTimes& row : rows) {
    if (row.done_ns <= at) continue;
    const std::int64_t read = std::clamp(row.read_ns, at, to_ns);
    const std::int64_t done = std::clamp(row.done_ns, read, to_ns);
    split.fetch_ns += read - at;
    split.prep_ns += done - read;
    at = done;
  }
  split.handoff_ns += std::max<std::int64_t>(0, to_ns - at);
  return split;
}

std::string_view name(Bound bound) noexcept {
  switch (bound) {
    case Bound::compute:
      return "compute_bound";
    case Bound::fetch:
      return "fetch_bound";
    case Bound::prep:
      return "prep_bound";
    case Bound::handoff:
      return "handoff_bound";
  }
  return "compute_bound";
}

std::string_view general_name(Bound bound) noexcept {
  return bound == Bound::fetch || bound == Bound::prep ? "io_bound" : name(bound);
}

Verdict judge(std::int64_t compute_ns, const WaitSplit& wait, std::int64_t other_ns) noexcept {
  Verdict verdict;
  const double total = static_cast<double>(std::max<std::int64_t>(1, compute_ns + wait.total_ns() + other_ns));
  const std::int64_t worst = std::max({wait.fetch_ns, wait.prep_ns, wait.handoff_ns});
  verdict.share = static_cast<double>(worst) / total;
  verdict.severity = verdict.share < 0.05 ? "fine" : verdict.share < 0.20 ? "moderate" : "severe";
  if (verdict.share < 0.05) {
    verdict.share = static_cast<double>(compute_ns) / total;
    return verdict;
  }
  verdict.bound = worst == wait.fetch_ns ? Bound::fetch : worst == wait.prep_ns ? Bound::prep : Bound::handoff;
  verdict.gain = total / std::max(1.0, total - static_cast<double>(worst));
  return verdict;
}

}  // namespace stoker::meter
