#include "stoker/loader/engine.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/format_text.h"
#include "stoker/os/fd.h"
#include "stoker/os/fork.h"
#include "stoker/storage/backend.h"

namespace stoker::loader {
namespace {

constexpr int kMostWorkers = 1024;
constexpr int kThreadsWithoutRing = 8;  // where reads wait for the disk one by one, so that the disk stays busy

// How the open files of the data set will be read, so that the kernel reads ahead or does not.
void advise(const dataset::Dataset& dataset, dataset::Shuffle::How how) {
  using How = dataset::Shuffle::How;
  for (const storage::Source* const source : dataset.sources()) {
    if (source->descriptor() < 0 || source->is_direct()) continue;
    os::advise(source->descriptor(), how == How::full  ? os::Access::at_random
                                     : how == How::off ? os::Access::in_order
                                                       : os::Access::normal);
  }
}

}  // namespace

Loader::Engine::Engine(dataset::DatasetPtr dataset, LoaderOptions options)
    : job_(std::move(dataset), std::move(options)),
      fork_generation_(os::fork_generation()),
      figures_(job_.made_ns),
      errors_(*job_.dataset, job_.options.max_errors, job_.memory.allowance.list_of_errors_bytes),
      order_(job_.make_order(0, 0)) {
  if (job_.auto_workers) auto_workers_.emplace(job_.max_workers, job_.options.prefetch_factor);
  advise(*job_.dataset, job_.options.shuffle.how);
}

Loader::Engine::Parts::Parts(const Job& job, GivenOrder& given, std::unique_ptr<storage::RamStore> ram_store,
                             std::unique_ptr<SeekStore> seek_store, std::unique_ptr<ChunkStore> chunk_store,
                             std::unique_ptr<ChunkReader> reader_of_chunks, FetchStage::Fetchers fetchers,
                             Signals& signals, std::function<void(const Text&)> note)
    : ram(std::move(ram_store)),
      seek(std::move(seek_store)),
      chunks(std::move(chunk_store)),
      chunk_reader(std::move(reader_of_chunks)),
      bell(signals),
      work(job.memory.max_units, job.is_inline, job.options.num_workers, signals),
      units(job, work, bell, signals),
      batches(job, work, bell, signals),
      row_bytes(job, *fetchers.front(), ram.get()),
      planner(job, row_bytes, batches, units, signals, job.is_given() ? &given : nullptr),
      fetch(job, std::move(fetchers), row_bytes, ram.get(), {chunks.get(), chunk_reader.get()}, planner, batches, units,
            bell, signals, std::move(note)),
      prep(job, work, batches, units, seek.get(), {chunks.get(), chunk_reader.get()}, signals) {}

bool Loader::Engine::is_forked() const noexcept {
  return os::fork_generation() != fork_generation_;
}

void Loader::Engine::refuse_after_fork() const {
  if (!is_forked()) return;
  throw Error(ErrorKind::usage, "this loader was made in another process: its threads did not survive the fork",
              "make the loader in the process that uses it (after fork, or with the `spawn` start method)");
}

// `reads_files`: whole ones, which nothing maps.
FetchStage::Fetchers Loader::Engine::make_fetchers(bool reads_files) {
  LoaderOptions& options = job_.options;
  const storage::FetcherOptions asked{.storage = job_.reads_direct() ? storage::Storage::direct
                                                 : reads_files       ? storage::Storage::buffered
                                                                     : options.storage,
                                      .depth = job_.thread_depth(),
                                      .io_batch = options.io_batch,
                                      .cache = job_.cache};
  FetchStage::Fetchers fetchers;
  std::string reason;
  fetchers.push_back(storage::make_fetcher(asked, job_.dataset->backends(), &reason));
  if (!reason.empty()) job_.notes.push_back(reason);
  // Rows that are read in place are ranges of a few files, whose pages the kernel reads ahead.
  if (fetchers.front()->reads_one_by_one() && !job_.in_place)
    options.io_threads = std::max(options.io_threads, kThreadsWithoutRing);
  while (static_cast<int>(fetchers.size()) < options.io_threads) {
    fetchers.push_back(storage::make_fetcher(asked, job_.dataset->backends()));
  }
  return fetchers;
}

void Loader::Engine::start_threads() {
  const std::scoped_lock lock(signals_.mutex);  // the threads wait for it until everything is in place
  check_open_locked();
  if (parts_) return;
  std::unique_ptr<storage::RamStore> ram = make_ram_store(job_);
  if (ram && !ram->note().empty()) job_.notes.push_back(ram->note());
  std::unique_ptr<SeekStore> seek;
  if (job_.seek_options.limit_bytes > 0 || job_.seek_options.packed) {
    seek = std::make_unique<SeekStore>(job_.seek_options);
    if (!seek->note().empty()) job_.notes.push_back(seek->note());
  }
  std::unique_ptr<ChunkStore> chunks;
  if (job_.memory.chunks > 0)
    chunks = std::make_unique<ChunkStore>(job_.memory.chunks, job_.recipe.facts().chunk_bytes);
  std::unique_ptr<ChunkReader> chunk_reader;
  if (job_.memory.chunk_reads > 0) {
    const storage::FetcherOptions asked{
        .depth = job_.options.io_depth, .io_batch = job_.options.io_batch, .cache = job_.cache};
    chunk_reader = std::make_unique<ChunkReader>(storage::make_fetcher(asked, job_.dataset->backends()),
                                                 job_.memory.chunk_reads, job_.memory.max_units);
  }
  FetchStage::Fetchers fetchers = make_fetchers(ram || job_.dataset->sources().empty());
  parts_ =
      std::make_unique<Parts>(job_, given_, std::move(ram), std::move(seek), std::move(chunks), std::move(chunk_reader),
                              std::move(fetchers), signals_, [this](const Text& note) { note_once(note); });
  try {
    parts_->fetch.start();
    parts_->prep.add_workers_locked(job_.options.num_workers);
  } catch (const std::system_error& error) {
    signals_.broken =
        Error(ErrorKind::unavailable,
              fmt::format("cannot start {} I/O threads and {} workers: {}", job_.options.io_threads,
                          job_.options.num_workers, error.code().message()),
              format_text("lower {}, or raise the limit of processes: `ulimit -u`, or the container's pids limit",
                          option("num_workers")));
    throw *signals_.broken;
  }
}

void Loader::Engine::set_num_workers(int workers) {
  if (workers < 1 || workers > kMostWorkers)
    throw Error(ErrorKind::usage, "num_workers can be changed to 1 up to 1024 while running");
  {
    const std::scoped_lock lock(signals_.mutex);
    if (job_.is_inline) {
      throw Error(ErrorKind::usage, "this loader was made with num_workers=0 and decodes in the calling thread",
                  "make it with num_workers of at least 1");
    }
    auto_workers_.reset();
    job_.options.num_workers = workers;
    if (parts_) {
      parts_->work.set_active_locked(workers);
      try {
        if (!closed_) parts_->prep.add_workers_locked(workers);
      } catch (const std::system_error& error) {
        const std::size_t started = parts_->work.workers_locked();
        job_.options.num_workers = static_cast<int>(started);
        parts_->work.set_active_locked(job_.options.num_workers);
        throw Error(ErrorKind::unavailable,
                    fmt::format("cannot start more than {} workers: {}", started, error.code().message()));
      }
    }
  }
  signals_.workers.notify_all();
}

void Loader::Engine::note_once(const Text& note) {
  const std::scoped_lock lock(signals_.mutex);
  if (std::find(job_.notes.begin(), job_.notes.end(), note) == job_.notes.end()) job_.notes.push_back(note);
}

std::vector<Text> Loader::Engine::notes() const {
  const std::scoped_lock lock(signals_.mutex);
  std::vector<Text> notes = job_.notes;
  const std::vector<std::string> more = job_.recipe.notes();
  notes.insert(notes.end(), more.begin(), more.end());
  if (job_.cache) {
    for (Text& note : job_.cache->notes()) notes.push_back(std::move(note));
  }
  return notes;
}

void Loader::Engine::add_stages_locked(Stats& stats) const {
  if (!parts_) return;
  parts_->fetch.add_to(stats.fetch);
  stats.store = parts_->fetch.store_figures_locked();
  if (parts_->chunk_reader) {
    parts_->chunk_reader->add_to(stats.fetch);
    stats.store += parts_->chunk_reader->figures();
  }
  parts_->prep.add_to(stats.prep);
}

Stats Loader::Engine::stats() const {
  const std::scoped_lock lock(signals_.mutex);
  Stats stats;
  add_stages_locked(stats);
  figures_.fill(stats);
  stats.num_workers = job_.options.num_workers;
  stats.io_threads = job_.options.io_threads;
  stats.memory_limit = job_.options.memory_limit;
  stats.errors = errors_.count();
  const std::int64_t now = meter::now_ns();
  stats.ready = stats.bytes_ready = meter::DepthMeter().read(now);
  if (!parts_) return stats;
  stats.ready = parts_->batches.depth_locked(now);
  stats.bytes_ready = parts_->work.depth_locked(now);
  stats.num_workers = parts_->work.active_locked();
  const SeekStore::Figures seek = parts_->seek ? parts_->seek->figures() : SeekStore::Figures{};
  stats.seek_files = seek.files;
  stats.seek_bytes = seek.memory_bytes;
  const ChunkStore::Figures chunks = parts_->chunks ? parts_->chunks->figures() : ChunkStore::Figures{};
  stats.chunk_hits = chunks.hits;
  stats.chunk_misses = chunks.misses;
  stats.chunk_bytes = chunks.memory_bytes;
  const storage::RamStore::Figures ram = parts_->ram ? parts_->ram->figures() : storage::RamStore::Figures{};
  stats.ram_bytes = ram.held_bytes;
  const SlabPool& pool = parts_->batches.pool();
  const WorkingMemory& working = parts_->prep.working_memory();
  const std::uint64_t kept = job_.memory.allowance.fixed_bytes + parts_->units.memory_bytes_locked() +
                             seek.memory_bytes + ram.memory_bytes + chunks.memory_bytes + job_.memory.chunk_reads;
  const std::uint64_t handed_over = job_.hand_over ? job_.hand_over->held_bytes() : 0;
  stats.memory_used = pool.used_bytes() + working.used_bytes() + kept + handed_over;
  stats.memory_peak =
      std::max(pool.peak_bytes() + working.peak_bytes() + kept + job_.memory.hand_over, job_.recipe.look_bytes());
  stats.slabs = pool.count();
  stats.slabs_held = parts_->batches.slabs_held_locked();
  stats.slab_bytes = pool.used_bytes();
  return stats;
}

void Loader::Engine::reset_stats() {
  const std::scoped_lock lock(signals_.mutex);
  Stats now;
  add_stages_locked(now);
  figures_.reset(now);
  if (!parts_) return;
  const std::int64_t at = meter::now_ns();
  parts_->batches.restart_depth_locked(at);
  parts_->work.restart_depth_locked(at);
}

std::vector<SampleError> Loader::Engine::errors() const {
  const std::scoped_lock lock(signals_.mutex);
  return errors_.all();
}

}  // namespace stoker::loader
