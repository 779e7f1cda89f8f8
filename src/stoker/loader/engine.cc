#include "stoker/loader/engine.h"

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

#include "stoker/base/round.h"
#include "stoker/base/units.h"
#include "stoker/os/cpu.h"
#include "stoker/os/fd.h"
#include "stoker/os/fork.h"
#include "stoker/os/memory.h"
#include "stoker/os/thread.h"
#include "stoker/storage/backend.h"
#include "stoker/storage/probe.h"

namespace stoker::loader {
namespace {

constexpr std::size_t kSlabAlign = 4096;
constexpr std::uint64_t kMostRows = 100'000'000;
constexpr std::uint64_t kMostElements = std::uint64_t{1}
                                        << 40;  // of a batch's rows: more cannot be, and would overflow

LoaderOptions checked(LoaderOptions options) {
  if (options.batch_size == 0 || options.batch_size > kMostRows) {
    throw Error(ErrorKind::usage, fmt::format("batch_size is 1 up to {}", format_count(kMostRows)));
  }
  if (options.prefetch_factor > kMostRows) {
    throw Error(ErrorKind::usage, fmt::format("prefetch_factor is 0 up to {}", format_count(kMostRows)));
  }
  if (options.world_size == 0 || options.rank >= options.world_size) {
    throw Error(ErrorKind::usage,
                fmt::format("rank {} of world_size {} does not exist", options.rank, options.world_size));
  }
  if (options.num_workers < kAuto) throw Error(ErrorKind::usage, "num_workers is a count, or auto");
  const double limit = options.max_errors;
  if (limit < 0 || !std::isfinite(limit) || (limit > 1 && limit != std::floor(limit))) {
    throw Error(ErrorKind::usage, "max_errors is a share below 1 or a count");
  }
  for (const auto& [word, value] : {std::pair("io_depth", options.io_depth), std::pair("io_batch", options.io_batch)}) {
    if (value <= storage::kMaxDepth) continue;  // 0 is auto
    throw Error(ErrorKind::usage,
                fmt::format("{} is 1 up to {}, or auto, not {}", word, format_count(storage::kMaxDepth), value));
  }
  if (options.memory_limit == 0)
    options.memory_limit = std::min<std::uint64_t>(os::memory_limit().bytes / 4, 8'000'000'000);
  if (options.num_workers > 1024) throw Error(ErrorKind::usage, "num_workers above 1024 is surely a mistake");
  return options;
}

}  // namespace

SlabLayout lay_out(const Recipe& recipe, std::uint64_t rows, std::uint64_t length) noexcept {
  SlabLayout layout;
  std::size_t at = 0;
  const auto place = [&](std::size_t bytes, std::size_t align) {
    at = round_up(at, align);
    return std::exchange(at, at + bytes);
  };
  for (std::size_t o = 0; o < recipe.outputs().size(); ++o) {
    layout.row_bytes[o] = recipe.row_bytes(o, length);
    layout.outputs[o] = place(rows * layout.row_bytes[o], kSlabAlign);
  }
  layout.labels = place(rows * 8 * recipe.label_count(), 64);
  layout.real_labels = place(rows * 4 * recipe.label_count(), 64);
  layout.ids = place(rows * 8, 64);
  layout.indices = place(rows * 8, 64);
  layout.lengths = place(rows * 8, 64);
  layout.valid = place(rows, 64);
  layout.total = at;
  return layout;
}

Loader::Engine::Engine(dataset::DatasetPtr dataset, LoaderOptions options)
    : dataset_(std::move(dataset)),
      options_(checked(std::move(options))),
      recipe_(*dataset_, options_),
      notes_(dataset_->facts().notes),
      fork_generation_(os::fork_generation()),
      constructed_ns_(meter::now_ns()) {
  count_losses();
  const auto has = [](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), "hu_offset") != names.end();
  };
  if (has(recipe_.facts().columns) && !has(dataset_->facts().columns)) {
    notes_.emplace_back(
        "Window assumes an offset of 0: it was given none, and the data set has no column hu_offset; where stored "
        "values are shifted, give it, such as Window(offset=32768)");
  }
  if (options_.pin_memory) {
    std::string why;
    device_ = DeviceRuntime::find(&why);
    if (!device_) {
      notes_.push_back("pin_memory is off: " + why);
      options_.pin_memory = false;
    }
  }
  const os::Cores cores = os::effective_cores();
  auto_workers_ = options_.num_workers == kAuto;
  if (auto_workers_) options_.num_workers = cores.whole();
  max_workers_ = std::max(1, options_.num_workers);
  active_workers_ = options_.num_workers;
  inline_ = options_.num_workers == 0;
  if (auto_workers_ && !cores.limited_by.empty()) {
    notes_.push_back(fmt::format("num_workers={}: limited by {}", options_.num_workers, cores.limited_by));
  }
  const storage::Location first = dataset_->size() > 0 ? dataset_->location(0) : storage::Location{};
  many_parts_ = dataset_->facts().most_parts > 1;
  in_place_ = recipe_.facts().is_copy && first.source != nullptr && !first.source->is_direct();
  // A batch whose length is known only when all of it was read might not fit into any sweep.
  const storage::ReadAdvice advice = storage::advice_on(first);
  const bool sweeps = first.source != nullptr && advice.join && !recipe_.varies() && !many_parts_;
  if (options_.io_threads == kAuto) {
    // Where decoding is light, reading is most of the work (51,000 WAV files on 2 cores: 200,000 files/s with one
    // I/O thread, 310,000 with two); where it is heavy, half the cores can feed the others.
    options_.io_threads = sweeps || advice.one_thread
                              ? 1
                              : std::clamp(recipe_.facts().is_heavy ? cores.whole() / 2 : cores.whole(), 1, 4);
  }
  if (options_.io_threads < 1) throw Error(ErrorKind::usage, "io_threads must be at least 1");
  if (options_.io_depth == 0) options_.io_depth = 256;
  if (rlimit files{}; ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
    // Every request in flight may hold a descriptor; a few are left for the rest of the process.
    const std::uint64_t threads = static_cast<std::uint64_t>(options_.io_threads);
    const std::uint64_t most = std::max<std::uint64_t>(1, files.rlim_cur / 4 * 3 / threads);
    if (options_.io_depth > most) {
      options_.io_depth = most;
      if (files.rlim_cur < 1024)
        notes_.push_back(fmt::format("io_depth={}: limited by {} open files (`ulimit -n`)", most, files.rlim_cur));
    }
  }
  options_.io_depth = std::max<std::uint64_t>(options_.io_depth, 1);
  if (options_.storage == storage::Storage::automatic && first.source != nullptr && first.source->is_direct()) {
    options_.storage = storage::Storage::direct;
    const storage::DiskRates disk = storage::probe_disk(*first.source, usual_bytes().mean, std::chrono::seconds(1));
    notes_.push_back(fmt::format("storage=direct: the page cache of this machine ({}) cannot hold {}, and {}",
                                 format_bytes(os::memory_limit().bytes), format_bytes(first.source->size_bytes()),
                                 disk.describe(options_.shuffle.how == dataset::Shuffle::How::full)));
  }
  choose_blocks();
  divide_memory(sweeps);
  for (const storage::Source* const source : dataset_->sources()) {
    if (source->descriptor() < 0 || source->is_direct()) continue;
    using How = dataset::Shuffle::How;
    const How how = options_.shuffle.how;
    os::advise(source->descriptor(), how == How::full  ? os::Access::at_random
                                     : how == How::off ? os::Access::in_order
                                                       : os::Access::normal);
  }
  order_.emplace(make_order(0, 0));
}

bool Loader::Engine::is_forked() const noexcept {
  return os::fork_generation() != fork_generation_;
}

void Loader::Engine::refuse_after_fork() const {
  if (!is_forked()) return;
  throw Error(ErrorKind::usage, "this loader was made in another process: its threads did not survive the fork",
              "make the loader in the process that uses it (after fork, or with the `spawn` start method)");
}

// storage=ram reads what is not in memory yet past the page cache, which is being filled in order meanwhile.
bool Loader::Engine::reads_direct() const noexcept {
  const storage::Source* const source = dataset_->size() > 0 ? dataset_->location(0).source : nullptr;
  return source != nullptr ? source->is_direct() : options_.storage == storage::Storage::direct;
}

std::uint64_t Loader::Engine::slab_bytes_for(std::uint64_t length) const noexcept {
  const std::uint64_t possible = std::min(length, kMostElements / options_.batch_size);
  return os::Arena::rounded(lay_out(recipe_, options_.batch_size, possible).total);
}

dataset::Order Loader::Engine::make_order(std::uint64_t epoch, std::uint64_t position) const {
  return dataset::Order({.size = dataset_->size(),
                         .shuffle = options_.shuffle,
                         .seed = options_.seed,
                         .batch_size = options_.batch_size,
                         .rank = options_.rank,
                         .world_size = options_.world_size,
                         .last_batch = options_.last_batch},
                        epoch, position);
}

void Loader::Engine::fill_ram() {
  ram_ = std::make_unique<storage::RamStore>(ram_limit_);
  for (const storage::Source* const source : dataset_->sources()) ram_->add(*source);
  if (dataset_->sources().empty()) {
    // By their stored numbers: a subset keeps only what it has, and copies share.
    std::vector<std::uint64_t> bytes(dataset_->stored_count(), 0);
    for (std::uint64_t i = 0; i < dataset_->size(); ++i) bytes[dataset_->stored(i)] = dataset_->location(i).bytes;
    ram_->add_files(bytes.size(), [&](std::uint64_t number) { return bytes[number]; });
  }
  ram_->start();
}

void Loader::Engine::start_threads() {
  const std::scoped_lock lock(mutex_);  // the threads wait for it until everything is in place
  if (closed_) throw Error(ErrorKind::usage, "the loader is closed", "make a new one");
  if (broken_) throw *broken_;
  if (started_) return;
  pool_ = std::make_shared<SlabPool>(slab_limit_, device_, [this] {
    {
      const std::scoped_lock inner(mutex_);
      assign_slabs_locked();
    }
    consumer_cv_.notify_all();
  });
  // The rows of a batch whose length varies wait for each other; all others end without those behind them.
  room_ = std::make_unique<ByteRoom>(ring_bytes_, max_units_ + 1,
                                     recipe_.varies() ? ByteRoom::Reuse::in_order : ByteRoom::Reuse::anywhere,
                                     reads_direct() ? 4096 : 64);
  for (std::uint64_t i = 0; i < sweep_count_; ++i) {
    sweeps_.push_back(std::make_unique<Sweep>(sweep_bytes_));
    free_sweeps_.push_back(sweeps_.back().get());
  }
  working_ = std::make_unique<WorkingMemory>(working_limit_, allowance_.working_bytes, [this] {
    { const std::scoped_lock inner(mutex_); }  // whoever is about to sleep has not looked yet, or sleeps already
    work_cv_.notify_all();
  });
  queue_.reserve(max_units_);
  if (ram_limit_ > 0) fill_ram();
  if (seek_options_.limit_bytes > 0 || seek_options_.packed) {
    seek_ = std::make_unique<SeekStore>(seek_options_);
    if (!seek_->note().empty()) notes_.push_back(seek_->note());
  }
  for (std::uint64_t i = 0; i < max_pendings_; ++i) {
    pending_pool_.push_back(std::make_unique<Pending>());
    const std::uint64_t most = std::min(options_.batch_size, std::max<std::uint64_t>(1, dataset_->size()));
    pending_pool_.back()->rows.reserve(most);
    pending_pool_.back()->times.reserve(most);
    pending_pool_.back()->parked.reserve(most / unit_rows_ + 1);
    free_pendings_.push_back(pending_pool_.back().get());
  }
  for (std::uint64_t i = 0; i < max_units_; ++i) {
    unit_pool_.push_back(std::make_unique<Unit>());
    if (many_parts_) unit_pool_.back()->parts.reserve(dataset_->facts().most_parts);
    free_units_.push_back(unit_pool_.back().get());
  }
  const std::int64_t now = meter::now_ns();
  ready_depth_.start(now, 0);
  bytes_depth_.start(now, 0);
  consumer_worker_ = std::make_unique<Worker>();
  started_ = true;

  std::string reason;
  const bool reads_files = ram_ || dataset_->sources().empty();  // whole ones, which nothing maps
  storage::FetcherOptions fetcher{.storage = reads_direct() ? storage::Storage::direct
                                             : reads_files  ? storage::Storage::buffered
                                                            : options_.storage,
                                  .depth = options_.io_depth,
                                  .io_batch = options_.io_batch};
  auto first = storage::make_fetcher(fetcher, dataset_->backends(), &reason);
  if (!reason.empty()) {
    // Plain system calls wait for the disk one by one, so it takes more threads to keep the disk busy.
    notes_.push_back(reason);
    options_.io_threads = std::max(options_.io_threads, in_place_ ? options_.io_threads : 8);
  }
  fetch_alignment_ = first->alignment();
  for (int i = 0; i < options_.io_threads; ++i) {
    auto io = std::make_unique<IoThread>();
    io->fetcher = i == 0 ? std::move(first) : storage::make_fetcher(fetcher, dataset_->backends());
    io_threads_.push_back(std::move(io));
  }
  try {
    for (auto& io : io_threads_) io->thread = os::start_thread([this, &self = *io] { io_loop(self); });
    for (int i = 0; i < options_.num_workers; ++i) add_worker_locked();
  } catch (const std::system_error& error) {
    broken_ = Error(ErrorKind::unavailable,
                    fmt::format("cannot start {} I/O threads and {} workers: {}", options_.io_threads,
                                options_.num_workers, error.code().message()),
                    "lower num_workers, or raise the limit of processes: `ulimit -u`, or the container's pids limit");
    throw *broken_;
  }
}

void Loader::Engine::add_worker_locked() {
  const int number = static_cast<int>(workers_.size());
  auto worker = std::make_unique<Worker>();
  worker->thread = os::start_thread([this, &self = *worker, number] { work_loop(self, number); });
  workers_.push_back(std::move(worker));
}

void Loader::Engine::set_num_workers(int workers) {
  if (workers < 1 || workers > 1024)
    throw Error(ErrorKind::usage, "num_workers can be changed to 1 up to 1024 while running");
  {
    const std::scoped_lock lock(mutex_);
    if (inline_) {
      throw Error(ErrorKind::usage, "this loader was made with num_workers=0 and decodes in the calling thread",
                  "make it with num_workers of at least 1");
    }
    auto_workers_ = false;
    active_workers_ = options_.num_workers = workers;
    try {
      while (started_ && !closed_ && static_cast<int>(workers_.size()) < workers) add_worker_locked();
    } catch (const std::system_error& error) {
      active_workers_ = options_.num_workers = static_cast<int>(workers_.size());
      throw Error(ErrorKind::unavailable,
                  fmt::format("cannot start more than {} workers: {}", workers_.size(), error.code().message()));
    }
  }
  work_cv_.notify_all();
}

std::vector<std::string> Loader::Engine::notes() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> notes = notes_;
  const std::vector<std::string> more = recipe_.notes();
  notes.insert(notes.end(), more.begin(), more.end());
  return notes;
}

}  // namespace stoker::loader
