#include "stoker/tune/search_space.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"

namespace stoker::tune {
namespace {

// Limits are kept with room for what a line through a few trials does not know.
constexpr double kDeviceShare = 0.92, kHostShare = 0.85;

// They change what the host holds, not what the device does.
constexpr std::array<std::string_view, 8> kLoaderKnobs = {"num_workers",        "prefetch_factor", "pin_memory",
                                                          "persistent_workers", "storage",         "io_depth",
                                                          "io_batch",           "read_ahead"};

bool is_loader_knob(std::string_view knob) {
  knob = role_of(knob);
  return std::find(kLoaderKnobs.begin(), kLoaderKnobs.end(), knob) != kLoaderKnobs.end();
}

bool is_at_least(const Point& point, const Point& other, std::string_view knob) {
  const std::optional<double> a = number_of(point, knob), b = number_of(other, knob);
  return !a || !b || *a >= *b;
}

// `point` needs at least the memory that `other` needed: a batch as large, and equal settings otherwise.
bool needs_as_much(const Point& point, const Point& other, bool on_device) {
  for (const auto& [knob, word] : point) {
    const std::string_view role = role_of(knob);
    if (role == "batch_size" || role == "accumulate_steps") continue;
    if (on_device && is_loader_knob(knob)) continue;
    const auto found = other.find(knob);
    const bool is_same = found != other.end() && found->second == word;
    const bool may_be_more = !on_device && (role == "num_workers" || role == "prefetch_factor");
    if (!is_same && !(may_be_more && is_at_least(point, other, role))) return false;
  }
  return number_of(point, "batch_size") && is_at_least(point, other, "batch_size");
}

std::string memory_settings(const Point& point) {
  Point settings;
  for (const auto& [knob, word] : point) {
    const std::string_view role = role_of(knob);
    if (role != "batch_size" && role != "accumulate_steps" && !is_loader_knob(role)) settings.emplace(knob, word);
  }
  return text(settings);
}

// Least squares of y over up to three features; none where they do not determine it or it fits badly.
std::optional<std::array<double, 3>> fit(const std::vector<std::array<double, 3>>& x, const std::vector<double>& y,
                                         int features) {
  double m[3][4] = {};
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (int i = 0; i < features; ++i) {
      for (int j = 0; j < features; ++j) m[i][j] += x[r][i] * x[r][j];
      m[i][3] += x[r][i] * y[r];
    }
  }
  for (int i = 0; i < features; ++i) {
    int pivot = i;
    for (int r = i + 1; r < features; ++r) {
      if (std::abs(m[r][i]) > std::abs(m[pivot][i])) pivot = r;
    }
    std::swap(m[i], m[pivot]);
    if (std::abs(m[i][i]) < 1e-9) return std::nullopt;
    for (int r = 0; r < features; ++r) {
      if (r == i) continue;
      const double factor = m[r][i] / m[i][i];
      for (int c = i; c < 4; ++c) m[r][c] -= factor * m[i][c];
    }
  }
  std::array<double, 3> result = {};
  for (int i = 0; i < features; ++i) result[static_cast<std::size_t>(i)] = m[i][3] / m[i][i];
  for (std::size_t r = 0; r < y.size(); ++r) {
    double predicted = 0;
    for (std::size_t i = 0; i < 3; ++i) predicted += result[i] * x[r][i];
    if (std::abs(predicted - y[r]) > 0.15 * y[r]) return std::nullopt;
  }
  return result;
}

bool is_out_of_memory(Status status) {
  return status == Status::oom_device || status == Status::oom_host || status == Status::oom_shm ||
         status == Status::oom_fd;
}

}  // namespace

SearchSpace::SearchSpace(const SearchOptions& options) : options_(options) {
  const Grid& grid = options_.grid;
  if (grid.size() == 0)
    throw Error(ErrorKind::usage, "cannot search: the grid has no knobs",
                format_text("give some: {}", option("grid", "batch_size=32,64,128")));
  const bool is_fixed = options_.effective_batch.has_value();
  const auto fits = [&](const Point& point) {
    const double steps = number_of(point, "accumulate_steps").value_or(1);
    const std::optional<double> batch = number_of(point, "batch_size");
    return !is_fixed || (batch && *batch * steps == *options_.effective_batch);
  };
  for (Point& point : grid.points()) {
    if (fits(point)) points_.push_back(std::move(point));
  }
  if (points_.empty()) {
    throw Error(ErrorKind::usage,
                fmt::format("cannot search: no point of the grid has batch_size x accumulate_steps = {:g}",
                            *options_.effective_batch),
                "add values of batch_size or accumulate_steps that give it");
  }
  for (const Knob& knob : grid.knobs()) {
    if (is_fixed && role_of(knob.name) == "accumulate_steps" && find_role(points_.front(), "batch_size") != nullptr)
      continue;
    Axis axis{.name = knob.name, .settings = {}, .numbers = {}};
    std::vector<std::string> values = knob.values;
    const bool are_numbers =
        std::all_of(values.begin(), values.end(), [](const auto& v) { return number_of(v).has_value(); });
    if (are_numbers) {
      std::stable_sort(values.begin(), values.end(),
                       [](const auto& a, const auto& b) { return *number_of(a) < *number_of(b); });
    }
    for (const std::string& value : values) {
      Point setting{{knob.name, value}};
      if (is_fixed && role_of(knob.name) == "batch_size") {
        const auto whole =
            std::find_if(points_.begin(), points_.end(), [&](const Point& p) { return p.at(knob.name) == value; });
        if (whole == points_.end()) continue;
        for (const auto& [name, word] : *whole) {
          if (role_of(name) == "accumulate_steps") setting.emplace(name, word);
        }
      }
      axis.settings.push_back(std::move(setting));
      axis.numbers.push_back(number_of(value));
    }
    axes_.push_back(std::move(axis));
  }
  for (const Point& point : points_) rows_[point];
}

std::optional<std::size_t> SearchSpace::axis(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return i;
  }
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (role_of(axes_[i].name) == name) return i;
  }
  return std::nullopt;
}

Point SearchSpace::point(const Place& place) const {
  Point point;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    for (const auto& [knob, word] : axes_[i].settings[place[i]]) point[knob] = word;
  }
  return point;
}

void SearchSpace::add(const Row& row) {
  const auto found = rows_.find(row.knobs);
  if (found == rows_.end() || row.status == Status::pruned || row.status == Status::skipped_memory) return;
  found->second.push_back(row);
  if (is_out_of_memory(row.status)) out_of_memory_.push_back(row);
  user_errors_.add(row);
}

const std::vector<Row>& SearchSpace::rows_of(const Point& point) const {
  static const std::vector<Row> kNone;
  const auto found = rows_.find(point);
  return found == rows_.end() ? kNone : found->second;
}

std::optional<std::string> SearchSpace::pruned_by(const Point& point) const {
  for (const Row& row : out_of_memory_) {
    if (row.knobs != point && needs_as_much(point, row.knobs, row.status == Status::oom_device)) {
      return fmt::format("{} at {}, and this needs as much", name(row.status), text(row.knobs));
    }
  }
  return std::nullopt;
}

std::optional<std::string> SearchSpace::beyond_memory(const Point& point) const {
  const std::optional<double> batch = number_of(point, "batch_size");
  if (!batch) return std::nullopt;
  const auto workers_of = [](const Point& p) { return number_of(p, "num_workers").value_or(0); };
  const auto queued_of = [&](const Point& p) {
    return workers_of(p) * number_of(p, "prefetch_factor").value_or(2) * number_of(p, "batch_size").value_or(0);
  };
  std::vector<std::array<double, 3>> device_x, host_x;
  std::vector<double> device_y, host_y;
  std::set<double> batches;
  for (const auto& [knobs, rows] : rows_) {
    for (const Row& row : rows) {
      const std::optional<double> b = number_of(knobs, "batch_size");
      if (!row.ok() || !b) continue;
      const std::optional<std::uint64_t> used =
          row.device_reserved_bytes ? row.device_reserved_bytes : row.device_allocated_bytes;
      if (used && memory_settings(knobs) == memory_settings(point)) {
        device_x.push_back({1, *b, 0});
        device_y.push_back(static_cast<double>(*used));
        batches.insert(*b);
      }
      if (row.host_peak_bytes) {
        host_x.push_back({1, workers_of(knobs), queued_of(knobs)});
        host_y.push_back(static_cast<double>(*row.host_peak_bytes));
      }
    }
  }
  if (options_.limits.device_bytes > 0 && batches.size() >= 2) {
    if (const auto line = fit(device_x, device_y, 2)) {
      const double bytes = (*line)[0] + (*line)[1] * *batch;
      if (bytes > kDeviceShare * static_cast<double>(options_.limits.device_bytes)) {
        return fmt::format("would take about {} of {} on the device, by a line through {} trials",
                           format_bytes(static_cast<std::uint64_t>(bytes)), format_bytes(options_.limits.device_bytes),
                           device_y.size());
      }
    }
  }
  if (options_.limits.host_bytes > 0 && host_y.size() >= 3) {
    if (const auto line = fit(host_x, host_y, 3)) {
      const double bytes = (*line)[0] + (*line)[1] * workers_of(point) + (*line)[2] * queued_of(point);
      if (bytes > kHostShare * static_cast<double>(options_.limits.host_bytes)) {
        return fmt::format("would take about {} of {} of host memory, by a line through {} trials",
                           format_bytes(static_cast<std::uint64_t>(bytes)), format_bytes(options_.limits.host_bytes),
                           host_y.size());
      }
    }
  }
  return std::nullopt;
}

std::optional<Row> SearchSpace::excluded(const Point& point) const {
  if (!rows_of(point).empty()) return std::nullopt;  // it was tried: its own row says more
  if (std::optional<std::string> why = pruned_by(point)) {
    return Row{.status = Status::pruned, .knobs = point, .error = std::move(*why)};
  }
  if (std::optional<std::string> why = beyond_memory(point)) {
    return Row{.status = Status::skipped_memory, .knobs = point, .error = std::move(*why)};
  }
  return std::nullopt;
}

}  // namespace stoker::tune
