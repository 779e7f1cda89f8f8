// How memory_limit is shared out: slabs, encoded bytes, working memory, places in JPEG files, the data itself. Each
// share is fixed before the first thread starts, and kept by admission.
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/loader/engine.h"

namespace stoker::loader {
namespace {

constexpr std::uint64_t kLeastScratch = 256 * kKiB;
constexpr std::uint64_t kUnitBytes = 256 * kKiB;
constexpr std::uint64_t kBlockBytes = 512 * kKiB, kMixedBytes = 64 * kMiB;
constexpr std::uint64_t kLeastMixed = 16;  // blocks

}  // namespace

// Of some samples, evenly spread.
Loader::Engine::Sizes Loader::Engine::usual_bytes() const noexcept {
  std::array<std::uint64_t, 256> bytes;
  const std::uint64_t count = dataset_->size(), looks = std::min<std::uint64_t>(count, bytes.size());
  if (looks == 0) return {};
  for (std::uint64_t i = 0; i < looks; ++i) bytes[i] = encoded_bytes(i * (count / looks));
  const auto end = bytes.begin() + static_cast<std::ptrdiff_t>(looks),
             middle = bytes.begin() + (end - bytes.begin()) / 2;
  std::nth_element(bytes.begin(), middle, end);
  return {std::accumulate(bytes.begin(), end, std::uint64_t{0}) / looks, *middle};
}

// What shuffle=blocks leaves open: blocks that any disk reads at its full rate, and as many as mix well.
void Loader::Engine::choose_blocks() {
  dataset::Shuffle& shuffle = options_.shuffle;
  if (shuffle.how != dataset::Shuffle::How::blocks) return;
  const std::uint64_t mean = std::max<std::uint64_t>(1, usual_bytes().mean);
  if (shuffle.block == 0) {
    shuffle.block = std::clamp<std::uint64_t>(kBlockBytes / mean, 1, std::max<std::uint64_t>(1, dataset_->size()));
    shuffle.window = std::max(kMixedBytes / mean / shuffle.block, kLeastMixed) * shuffle.block;
  }
  window_rows_ = std::min(shuffle.window, dataset_->size()) / options_.world_size + 1;
  notes_.push_back(format_text("{}: {} neighbours ({}) stay together, {} samples ({}) are mixed",
                               option("shuffle", "blocks"), format_count(shuffle.block),
                               format_bytes(shuffle.block * mean),
                               format_count(std::min(shuffle.window, dataset_->size())),
                               format_bytes(std::min(shuffle.window, dataset_->size()) * mean)));
}

Demand Loader::Engine::demand() const noexcept {
  const dataset::Facts& facts = dataset_->facts();
  Demand demand;
  demand.limit_bytes = options_.memory_limit;
  demand.batch_size = std::min<std::uint64_t>(options_.batch_size, std::max<std::uint64_t>(1, dataset_->size()));
  demand.usual_bytes = usual_bytes().median;
  demand.batch_bytes = slab_bytes_for(recipe_.varies() ? recipe_.length_of(demand.usual_bytes) : 0);
  demand.list_bytes = dataset_->memory_bytes();
  demand.largest_bytes = facts.largest_bytes;
  demand.most_parts = facts.most_parts;
  demand.in_place = in_place_;
  demand.decodes = !in_place_ && !recipe_.facts().is_copy && !recipe_.facts().is_encoded;
  demand.varies = recipe_.varies();
  return demand;
}

// Two batches, the largest sample and its working memory come first (allowance.h); what is left makes loading faster.
// Every share is fixed here and kept by admission. `sweeps`: the encoded bytes are those of sweeps.
void Loader::Engine::divide_memory(bool sweeps) {
  const Demand demand = this->demand();
  const std::uint64_t limit = options_.memory_limit;
  const std::uint64_t batch = demand.batch_size, slab = demand.batch_bytes;
  const std::uint64_t workers = static_cast<std::uint64_t>(max_workers_);
  const std::uint64_t threads = workers + static_cast<std::uint64_t>(options_.io_threads);
  const bool direct = reads_direct();
  const std::uint64_t beside = thread_bytes(threads) + (direct ? direct_bytes(demand) : 0);
  allowance_ = allow(demand);
  if (!allowance_.is_enough || allowance_.spare_bytes < beside) {
    const std::uint64_t least =
        enough_limit(demand, [&](const Allowance& other) { return other.spare_bytes >= beside; });
    throw Error(
        ErrorKind::usage,
        format_text("{} {} is too small: two batches ({} each), a sample ({}) with its working memory, the list of "
                    "samples ({}) and {} threads need at least {} ({} bytes)",
                    option("memory_limit"), format_bytes(limit), format_bytes(slab), format_bytes(demand.usual_bytes),
                    format_bytes(demand.list_bytes), threads, format_bytes(least), least),
        format_text("raise {}, or lower {} or {}", option("memory_limit"), option("batch_size"), option("num_workers")))
        .about("memory_limit");
  }
  std::uint64_t left = allowance_.spare_bytes - beside;
  const auto grant = [&](std::uint64_t wanted) {
    const std::uint64_t granted = std::min(wanted, left);
    left -= granted;
    return granted;
  };
  // What a sample takes on the ring: its bytes, one to see that it grew, and alignment (see Fetcher::buffer_bytes).
  const auto on_ring = [&](std::uint64_t bytes) {
    return direct ? round_up(bytes + 1, 4096) + 8192 : round_up(bytes + 1, 64) + 64;
  };
  const std::uint64_t mean = usual_bytes().mean;
  const std::uint64_t usual = on_ring(std::max<std::uint64_t>(1, mean));
  const std::uint64_t largest = on_ring(allowance_.encoded_bytes);

  // Working memory for every worker, some reading ahead, the batches that prefetch_factor asks for, and more reading
  // ahead.
  const std::uint64_t all_working =
      demand.decodes ? os::Arena::rounded(workers * std::max(recipe_.facts().scratch_estimate, kLeastScratch) * 5 / 4)
                     : 0;
  working_limit_ = allowance_.working_bytes;
  if (all_working > working_limit_) working_limit_ += grant(std::min(all_working - working_limit_, left / 2));
  const std::uint64_t ring_least =
      std::max<std::uint64_t>(allowance_.ring_bytes + (direct ? direct_bytes(demand) : 0), 4096);
  std::uint64_t ring_wanted = options_.read_ahead != 0
                                  ? options_.read_ahead + largest
                                  : (options_.prefetch_factor + 2) * batch * usual + 2 * largest + kUnitBytes;
  const std::uint64_t by_bytes = std::max<std::uint64_t>(1, (in_place_ ? 2 * kUnitBytes : kUnitBytes) / usual);
  const std::uint64_t by_batch = std::max<std::uint64_t>(1, options_.batch_size / (2 * workers));
  unit_rows_ = recipe_.facts().is_heavy || many_parts_
                   ? 1
                   : static_cast<std::uint32_t>(std::min({by_bytes, by_batch, std::uint64_t{Unit::kMaxRows}}));
  unit_rows_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(unit_rows_, options_.io_depth));
  const std::uint64_t sweep = std::max(wanted_sweep(on_ring(mean)), ring_least / 2);
  if (sweeps) ring_wanted = options_.read_ahead != 0 ? ring_wanted : kSweeps * sweep;
  ring_wanted = in_place_ ? ring_least : std::max(os::Arena::rounded(ring_wanted), ring_least);
  ring_bytes_ = ring_least + grant(std::min(ring_wanted - ring_least, limit / 8));
  const std::uint64_t more_slabs =
      recipe_.varies() ? 0 : std::min(options_.prefetch_factor, left / std::max<std::uint64_t>(1, slab));
  left -= more_slabs * slab;
  ring_bytes_ += grant(ring_wanted - ring_bytes_);
  // An arena is whole pages, large ones from 2 MiB on: what does not fill one goes back.
  if (const std::uint64_t whole = ring_bytes_ / (2 * kMiB) * (2 * kMiB); whole >= ring_least && whole > 0) {
    left += ring_bytes_ - whole;
    ring_bytes_ = whole;
  }
  ring_bytes_ = ring_bytes_ / 4096 * 4096;
  left -= choose_seek_step(left / 2);
  left -= choose_ram(left - std::min(left, 2 * slab));
  // What is left may hold batches that the consumer keeps.
  slab_limit_ = (recipe_.varies() ? 2 * allowance_.batch_bytes : (2 + more_slabs) * slab) + left;

  unit_bytes_ = in_place_ ? 2 * kUnitBytes : std::min(kUnitBytes, ring_bytes_ / 4);
  if (sweeps) share_among_sweeps(sweep, batch * on_ring(mean));
  if (options_.io_batch == 0) options_.io_batch = in_place_ ? unit_rows_ : Unit::kMaxRows;
  const std::uint64_t held = sweeps ? sweep_count_ * sweep_bytes_ : ring_bytes_;
  const std::uint64_t ahead = held / std::max<std::uint64_t>(1, batch * (sweeps ? mean : usual));
  count_plans(demand, std::min<std::uint64_t>(ahead, sweeps ? kMostAhead : 64));
}

// How many batches and units may be in the making: as many as slabs and `ahead` batches on the ring can use, within
// the memory for plans.
void Loader::Engine::count_plans(const Demand& demand, std::uint64_t ahead) {
  const std::uint64_t batch = demand.batch_size, slab = std::max<std::uint64_t>(1, demand.batch_bytes);
  // More batches in the making than slabs for them would only be a list of plans.
  const std::uint64_t slabs = std::min<std::uint64_t>({options_.prefetch_factor, slab_limit_ / slab, 4096});
  const PlanCounts most = plans_within(allowance_.plan_bytes, demand);
  max_pendings_ = std::min(slabs + 2 + ahead, most.pendings);
  const std::uint64_t batch_units = (batch + unit_rows_ - 1) / unit_rows_;
  const std::uint64_t wanted =
      std::min<std::uint64_t>(max_pendings_ * batch_units, sweep_count_ == 0 ? 4096 : kSweeps * kMostAhead) + 8;
  // A batch whose length is known only when all of it was read keeps all of its units, of one row at worst, until then.
  max_units_ = std::min(std::max(wanted, recipe_.varies() ? batch + 8 : 0), most.units);
}

// The memory that one sweep would like, where a row takes `row` bytes of it.
std::uint64_t Loader::Engine::wanted_sweep(std::uint64_t row) const noexcept {
  const std::uint64_t rows = std::min<std::uint64_t>(dataset_->size(), std::uint64_t{kMostAhead} * unit_rows_);
  const std::uint64_t bytes =
      window_rows_ != 0 ? window_rows_ * row : std::clamp(options_.memory_limit / 16, 4 * kMiB, kMixedBytes);
  return os::Arena::rounded(std::min(bytes, rows * row) + 4096);
}

void Loader::Engine::share_among_sweeps(std::uint64_t wanted, std::uint64_t batch_bytes) {
  sweep_count_ = ring_bytes_ / kSweeps >= wanted ? kSweeps : 2;
  sweep_bytes_ = ring_bytes_ / sweep_count_;
  sweep_bytes_ = sweep_bytes_ >= 2 * kMiB ? sweep_bytes_ / (2 * kMiB) * (2 * kMiB) : sweep_bytes_ / 4096 * 4096;
  first_sweep_bytes_ = std::max(batch_bytes, kMiB);
  ring_bytes_ = 4096;
  if (window_rows_ != 0 && sweep_bytes_ < wanted) {
    notes_.push_back(
        format_text("{}: {} {} has room to read {} of the {} that are mixed at once: reads are smaller than blocks",
                    option("shuffle", "blocks"), option("memory_limit"), format_bytes(options_.memory_limit),
                    format_bytes(sweep_bytes_), format_bytes(wanted)));
  }
}

// The memory to give to places in JPEG files, of `room`: fewer places per file rather than fewer files.
std::uint64_t Loader::Engine::choose_seek_step(std::uint64_t room) {
  constexpr std::uint32_t kFinest = 8, kCoarsest = 64;  // MCUs; see docs/benchmarks.md for what they cost and give
  if (options_.seek_index == UseSeekIndex::off) return 0;
  if (const std::string& path = dataset_->facts().pack_seek_path; !path.empty()) {
    std::string why;
    auto packed = std::make_shared<SeekFile>(SeekFile::open(path, why));
    if (why.empty() && !packed->rows().empty()) {
      seek_options_.packed = std::move(packed);
      seek_options_.limit_bytes = std::min<std::uint64_t>(room, 2 * kMiB);  // for the odd file that it does not have
      return seek_options_.limit_bytes;
    }
    if (!why.empty())
      notes_.push_back(fmt::format("`{}` is not used: {}; `stoker check --repair` makes a new one", path, why));
  }
  if (recipe_.facts().seekable_mcus == 0) return 0;
  const auto need = [&](std::uint32_t step) {
    // With half as much again for pictures larger than the first.
    return dataset_->stored_count() * (256 + recipe_.facts().seekable_mcus / step * sizeof(codec::Checkpoint) * 3 / 2) +
           2 * kMiB;
  };
  std::uint32_t step = kFinest;
  while (step < kCoarsest && need(step) > room) step *= 2;
  seek_options_.step = step;
  seek_options_.limit_bytes = std::min(need(step), room);
  seek_options_.files = dataset_->stored_count();
  if (options_.seek_index == UseSeekIndex::automatic) seek_options_.path = dataset_->facts().seek_path;
  return seek_options_.limit_bytes;
}

// The memory to give to the data itself, of `room`. Settles what storage=auto is.
std::uint64_t Loader::Engine::choose_ram(std::uint64_t room) {
  using storage::Storage;
  if (options_.storage != Storage::ram && options_.storage != Storage::automatic) return 0;
  std::uint64_t wanted = 0, beside = 0;
  if (many_parts_ && dataset_->sources().empty()) {  // its parts are not the stored samples that RamStore knows
    if (options_.storage == Storage::automatic) options_.storage = Storage::buffered;
    return 0;
  }
  for (const storage::Source* const source : dataset_->sources()) {
    wanted += source->size_bytes();
    beside += os::Arena::rounded(source->size_bytes()) - source->size_bytes();
  }
  if (dataset_->sources().empty()) {
    wanted = dataset_->facts().total_bytes;
    beside = dataset_->stored_count() * storage::RamStore::kBytesPerFile + 2 * kMiB;
  }
  const Text sizes = format_text("the data is {}, and {} {} has room for {} of it", format_bytes(wanted),
                                 option("memory_limit"), format_bytes(options_.memory_limit), format_bytes(room));
  if (options_.storage == Storage::automatic) {
    options_.storage = wanted + beside <= room ? Storage::ram : Storage::buffered;
    notes_.push_back(format_text("{}: {}", option("storage", name(options_.storage)), sizes));
  } else if (wanted + beside > room) {
    notes_.push_back(format_text("{}: {}; the rest is read from disk each epoch", option("storage", "ram"), sizes));
  }
  ram_limit_ = options_.storage == Storage::ram ? std::min(room, wanted + beside) : 0;
  return ram_limit_;
}

}  // namespace stoker::loader
