#include "stoker/dataset/patches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/random.h"

namespace stoker::dataset {
namespace {

constexpr std::uint32_t kPlaceStream = 0x70617463;  // apart from the streams of transforms
constexpr std::uint64_t kMostPatches = std::uint64_t{1} << 48;
constexpr std::array<const char*, 3> kAxes = {"z", "y", "x"};

using Wide = unsigned __int128;

std::uint64_t times_over(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  return static_cast<std::uint64_t>(Wide{a} * b / c);
}

// In [0, n).
std::uint64_t draw_below(Random& random, std::uint64_t n) noexcept {
  const std::uint64_t high = random.next(), low = random.next();
  return static_cast<std::uint64_t>((Wide{high << 32 | low} * n) >> 64);
}

// The `number`-th of `count` equal shares of [0, total), and a random place in it.
std::uint64_t draw_share(Random& random, std::uint64_t number, std::uint64_t count, std::uint64_t total) noexcept {
  const std::uint64_t first = times_over(total, number, count), next = times_over(total, number + 1, count);
  const std::uint64_t draw = draw_below(random, std::max<std::uint64_t>(1, next - first));
  return std::min(first + draw, total - 1);
}

// The place of a number where cells of `cell` follow one another in C order, and so do the places inside each.
Extents along_cells(std::uint64_t number, const Extents& counts, const Extents& cell) noexcept {
  Extents first, extents;
  std::uint64_t inner = counts[1] * counts[2];
  first[0] = number / (cell[0] * inner) * cell[0];
  extents[0] = std::min(cell[0], counts[0] - first[0]);
  number -= first[0] * inner;
  inner = extents[0] * counts[2];
  first[1] = number / (cell[1] * inner) * cell[1];
  extents[1] = std::min(cell[1], counts[1] - first[1]);
  number -= first[1] * inner;
  inner = extents[0] * extents[1];
  first[2] = number / (cell[2] * inner) * cell[2];
  extents[2] = std::min(cell[2], counts[2] - first[2]);
  number -= first[2] * inner;
  return {first[0] + number / (extents[1] * extents[2]), first[1] + number / extents[2] % extents[1],
          first[2] + number % extents[2]};
}

std::string text_of(const Extents& extents) {
  return fmt::format("{}x{}x{}", extents[0], extents[1], extents[2]);
}

void check(const PatchOptions& options) {
  const auto refuse = [](const char* name, Text text, Text hint) {
    throw Error(ErrorKind::usage, std::move(text), std::move(hint)).about(name);
  };
  if (options.patch[0] == 0 || options.patch[1] == 0 || options.patch[2] == 0 ||
      std::max({options.patch[0], options.patch[1], options.patch[2]}) > (std::uint64_t{1} << 20))
    refuse("patch",
           format_text("the patch {} is not one: each axis has 1 up to 1048576 elements", text_of(options.patch)),
           "give depth, height and width, such as 72x136x136");
  if (options.sampling == Sampling::grid) {
    if (options.samples != 0)
      refuse("samples",
             format_text("{} does not go with {}: the grid says how many patches there are", option("samples"),
                         option("sampling", "grid")),
             "leave it out");
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (options.overlap[axis] >= options.patch[axis])
        refuse("overlap",
               format_text("the overlap along {} is {}, which is not below the patch's {}", kAxes[axis],
                           options.overlap[axis], options.patch[axis]),
               "half of the patch is usual");
    }
    if (options.foreground > 0)
      refuse("foreground",
             format_text("{} does not go with {}: the grid takes every patch", option("foreground"),
                         option("sampling", "grid")),
             "leave it out");
    const bool flips = options.flip[0] || options.flip[1] || options.flip[2];
    if (flips || options.turn)
      refuse(flips ? "flip" : "turn",
             format_text("{} does not go with {}: nobody could put the patches back", option(flips ? "flip" : "turn"),
                         option("sampling", "grid")),
             "leave it out");
  } else {
    if (options.samples == 0)
      refuse("samples", format_text("{} is 0: an epoch would have no patches", option("samples")),
             "give the patches of an epoch, such as 2000");
    if (options.samples > kMostPatches)
      refuse("samples", format_text("{} is more than an epoch can have", option("samples")), "lower it");
    if (options.overlap != Extents{})
      refuse("overlap",
             format_text("{} is of neighbours in a grid, and the patches are drawn at random", option("overlap")),
             format_text("add {}, or leave it out", option("sampling", "grid")));
  }
  if (!(options.foreground >= 0 && options.foreground <= 1))
    refuse("foreground", format_text("{} is {}: it is a share from 0 to 1", option("foreground"), options.foreground),
           "0.5, say");
  if (options.turn && options.patch[1] != options.patch[2])
    refuse("turn",
           format_text("{} needs a patch as high as it is wide, and {} is not", option("turn"), text_of(options.patch)),
           format_text("{} works for every patch", option("flip")));
}

void check(const PatchedVolume& volume, const PatchOptions& options) {
  if (!(volume.weight >= 0 && volume.weight <= 1e18)) {
    throw Error(
        ErrorKind::usage,
        fmt::format("the weight of `{}` is {}, which is not a number from 0 to 1e18", volume.name, volume.weight),
        "weights are shares of the samples relative to each other, such as 1 and 3")
        .about("weight");
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (volume.extents[axis] >= options.patch[axis] || options.pad) continue;
    throw Error(ErrorKind::usage,
                fmt::format("the patch {} is larger than `{}`, which is {}", text_of(options.patch), volume.name,
                            text_of(volume.extents)),
                format_text("choose a smaller patch, or {} to fill up with zeros", option("pad", "True")))
        .about("patch");
  }
}

}  // namespace

PatchPlan::PatchPlan(const PatchOptions& options, std::vector<PatchedVolume> volumes)
    : options_(options), volumes_(std::move(volumes)) {
  check(options_);
  if (volumes_.empty()) throw Error(ErrorKind::usage, "cannot take patches: there are no volumes").about("source");
  for (PatchedVolume& volume : volumes_) {
    check(volume, options_);
    for (std::uint64_t& edge : volume.cell) edge = std::max<std::uint64_t>(1, edge);
  }
  firsts_.assign(volumes_.size() + 1, 0);
  if (options_.sampling == Sampling::uniform) {
    share_samples();
    return;
  }
  for (std::uint32_t v = 0; v < volumes_.size(); ++v) {
    const Extents grid = grid_of(v);
    firsts_[v + 1] = firsts_[v] + grid[0] * grid[1] * grid[2];
  }
}

// By weight; what rounding leaves goes to the largest remainders.
void PatchPlan::share_samples() {
  double sum = 0;
  for (const PatchedVolume& volume : volumes_) sum += volume.weight;
  if (!(sum > 0)) {
    throw Error(ErrorKind::usage, "every volume has weight 0: there is nothing to take patches from").about("weight");
  }
  std::vector<std::uint64_t> counts(volumes_.size());
  std::vector<double> rests(volumes_.size());
  std::uint64_t given = 0;
  for (std::size_t v = 0; v < volumes_.size(); ++v) {
    const double exact = static_cast<double>(options_.samples) * (volumes_[v].weight / sum);
    counts[v] = std::min(static_cast<std::uint64_t>(exact), options_.samples - given);
    rests[v] = volumes_[v].weight > 0 ? exact - std::floor(exact) : -1;
    given += counts[v];
  }
  std::vector<std::size_t> order(volumes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rests[a] > rests[b]; });
  for (std::size_t i = 0; given < options_.samples; ++i) {
    if (rests[order[i % order.size()]] < 0) continue;
    ++counts[order[i % order.size()]], ++given;
  }
  for (std::size_t v = 0; v < volumes_.size(); ++v) firsts_[v + 1] = firsts_[v] + counts[v];
}

Extents PatchPlan::corners(std::uint32_t volume) const noexcept {
  Extents counts;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint64_t extent = volumes_[volume].extents[axis], patch = options_.patch[axis];
    counts[axis] = extent > patch ? extent - patch + 1 : 1;
  }
  return counts;
}

Extents PatchPlan::inside(std::uint32_t volume) const noexcept {
  Extents extents;
  for (std::size_t axis = 0; axis < 3; ++axis)
    extents[axis] = std::min(options_.patch[axis], volumes_[volume].extents[axis]);
  return extents;
}

Extents PatchPlan::grid_of(std::uint32_t volume) const noexcept {
  const Extents counts = corners(volume);
  Extents grid;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint64_t step = options_.patch[axis] - options_.overlap[axis];
    grid[axis] = 1 + (counts[axis] - 1 + step - 1) / step;
  }
  return grid;
}

// The last patch along an axis ends with the volume.
Extents PatchPlan::place_on_grid(std::uint32_t volume, std::uint64_t number) const noexcept {
  const Extents counts = corners(volume), grid = grid_of(volume);
  const Extents at = {number / (grid[1] * grid[2]), number / grid[2] % grid[1], number % grid[2]};
  Extents corner;
  for (std::size_t axis = 0; axis < 3; ++axis)
    corner[axis] = std::min(at[axis] * (options_.patch[axis] - options_.overlap[axis]), counts[axis] - 1);
  return corner;
}

std::uint32_t PatchPlan::volume_of(std::uint64_t index) const noexcept {
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), index);
  return static_cast<std::uint32_t>(after - firsts_.begin() - 1);
}

Placement PatchPlan::place(std::uint64_t index, const RowKey& key) const noexcept {
  Placement placement;
  placement.volume = volume_of(index);
  const PatchedVolume& volume = volumes_[placement.volume];
  const std::uint64_t number = index - firsts_[placement.volume];
  const std::uint64_t count = firsts_[placement.volume + 1] - firsts_[placement.volume];
  const Extents counts = corners(placement.volume);
  Random random(key.seed, key.epoch, key.id, kPlaceStream);
  const std::uint32_t turns = random.next();  // drawn first: the place does not shift them
  for (std::size_t axis = 0; axis < 3; ++axis) placement.flip[axis] = options_.flip[axis] && ((turns >> axis) & 1) != 0;
  if (options_.turn) placement.quarter_turns = static_cast<std::uint8_t>((turns >> 3) & 3);

  if (options_.sampling == Sampling::grid) {
    placement.corner = place_on_grid(placement.volume, number);
    return placement;
  }
  // Patches with label stand evenly between the others: an exact share, without drawing.
  const auto labelled_before = [&](std::uint64_t n) {
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(n) * options_.foreground));
  };
  const std::uint64_t before = labelled_before(number);
  const bool is_labelled =
      volume.foreground && volume.foreground->elements() > 0 && labelled_before(number + 1) > before;
  if (!is_labelled) {
    const std::uint64_t total = counts[0] * counts[1] * counts[2];
    placement.corner = along_cells(draw_share(random, number, count, total), counts, volume.cell);
    return placement;
  }
  const Extents place =
      volume.foreground->find(draw_share(random, before, labelled_before(count), volume.foreground->elements()));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint64_t patch = options_.patch[axis];
    const std::uint64_t least = place[axis] >= patch ? place[axis] - patch + 1 : 0;
    const std::uint64_t most = std::min(place[axis], counts[axis] - 1);
    placement.corner[axis] = least + draw_below(random, most - least + 1);
  }
  return placement;
}

std::uint64_t PatchPlan::memory_bytes() const noexcept {
  std::uint64_t bytes = firsts_.capacity() * sizeof(std::uint64_t) + volumes_.capacity() * sizeof(PatchedVolume);
  for (const PatchedVolume& volume : volumes_) {
    bytes += volume.name.capacity() + (volume.foreground ? volume.foreground->memory_bytes() : 0);
  }
  return bytes;
}

}  // namespace stoker::dataset
