// What a measured training job did: steps of each DataLoader, with each wait split by what the worker that made the
// batch was doing meanwhile. Fed with the lines of the hook, in any order between processes. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/measure/stage_ledger.h"
#include "stoker/meter/ledger.h"

namespace stoker::measure {

// A wait, by the place of the awaited batch at each instant. Sums to the wait.
struct Waited {
  std::int64_t start_ns = 0;    // no worker yet: starting (or, at the end of an epoch, stopping) them
  std::int64_t task_ns = 0;     // its task was on the way to the worker
  std::int64_t fetch_ns = 0;    // its samples: not on a core and not waiting for one
  std::int64_t prep_ns = 0;     // its samples: computing, or ready to compute without a core
  std::int64_t collate_ns = 0;  // its samples were there and were put together
  std::int64_t deliver_ns = 0;  // it was made, and was pickled, sent, pinned, unpickled
  std::int64_t unknown_ns = 0;  // not reported

  std::int64_t total_ns() const noexcept;
  meter::WaitSplit split() const noexcept;  // hand-off is all but fetch and prep
  Waited& operator+=(const Waited& other) noexcept;
};

// When a worker made one batch (monotonic nanoseconds) and what it took.
struct BatchTimes {
  std::int64_t received_ns = 0, started_ns = 0, collating_ns = 0, ended_ns = 0, put_ns = 0;
  std::int64_t cpu_ns = 0, delay_ns = 0;  // of the thread that made the samples; together at most what they took
  std::int64_t collate_delay_ns = 0;      // of the same thread, while it collated
  std::int64_t helpers_ns = 0;            // CPU of threads that the data set started, and of programs that it ran
  std::int64_t spinners_ns = 0;           // CPU of nameless native threads (OpenMP, BLAS): work, or spinning
  std::int64_t born_ns = 0;               // when the worker began; 0: the training thread itself
  int worker = 0;                         // its thread's number; 0: the training thread itself
  std::uint64_t samples = 0;

  std::int64_t prep_ns() const noexcept;  // of the samples: CPU and run-queue delay, at most what they took
};

Waited split_wait(std::int64_t from_ns, std::int64_t to_ns, const BatchTimes& batch) noexcept;

// What a stoker.Loader asked of stores, and what its disk cache answered.
struct StoreUse {
  std::uint64_t requests = 0, retries = 0, doubled = 0, bytes = 0, cache_hits = 0, cache_misses = 0;

  StoreUse& operator+=(const StoreUse& other) noexcept;
  bool is_any() const noexcept { return requests + cache_hits > 0; }
};

struct Step {
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;
  std::int64_t asked_ns = 0, got_ns = 0;
  std::int64_t compute_ns = 0;                 // from this batch until a loader was asked again
  std::optional<std::int64_t> compute_cpu_ns;  // CPU time of the process meanwhile
  std::uint64_t samples = 0;
  std::uint64_t ready = 0;  // finished batches that lay waiting when this one was asked for
  bool first = false;       // of its epoch
  bool settled = false;     // the wait is split
  Waited wait;
  StoreUse store;  // since the step before
  // By the device's clock; h2d is part of the work. `h2d_ns`: where it was taken out of compute_ns.
  std::optional<std::int64_t> device_wait_ns, device_work_ns, device_h2d_ns, h2d_ns;
  BatchTimes made;  // zeros: not known
};

// Sums over what the workers made.
struct Made {
  std::uint64_t batches = 0, samples = 0;
  std::int64_t fetch_ns = 0, prep_ns = 0, collate_ns = 0, spinners_ns = 0;
  std::int64_t delay_ns = 0, collate_delay_ns = 0;  // ready without a core: a part of prep, a part of collate
  std::int64_t build_ns() const noexcept { return fetch_ns + prep_ns + collate_ns; }
  std::int64_t work_ns() const noexcept { return build_ns() - delay_ns - collate_delay_ns; }
};

struct SlowSample {
  std::string sample;  // its index, where the data set has such
  std::int64_t took_ns = 0, cpu_ns = 0, mean_ns = 0;
};

enum class LoaderKind : std::uint8_t { torch, stoker, other };

// Where the value of an argument stands in the source as a literal: line from 1, columns in bytes from 0.
struct Literal {
  int line = 0, column = 0, end = 0;
};

// The settings of a loader, read from the live object.
struct LoaderFacts {
  LoaderKind kind = LoaderKind::torch;
  std::string file, name, type, dataset, start_method, collate;
  int line = 0;
  std::int64_t batch_size = -1, num_workers = 0, prefetch_factor = 0, samples = -1;  // -1: not known
  bool persistent_workers = false, pin_memory = false, in_order = true, iterable = false;
  bool workers_are_auto = false;            // of stoker.Loader: num_workers="auto" follows the cores
  bool replaceable = false;                 // `stoker run --supply` would probably feed it
  std::map<std::string, Literal> literals;  // arguments, in `file`; only where `stoker tune` looks

  // Batches that may lie ready before they are asked for. torch counts prefetch_factor per worker, stoker.Loader in
  // all.
  std::int64_t queued() const noexcept;
};

struct BatchFacts {
  std::uint64_t bytes = 0, tensors = 0, objects = 0;
  bool channels_last = false;
  std::int64_t threads = 0;      // that torch computes with in the training process; 0: not known
  std::string torch, precision;  // float32_matmul_precision
  std::string device;            // its name; empty: none
  std::optional<bool> tf32;
};

// The arithmetic of a process, as far as it was seen entering it.
struct Arithmetic {
  bool watched = false;                         // from the start: what was not seen did not happen
  std::string autocast_device, autocast_dtype;  // "cuda", "bfloat16"; empty: not entered
  bool channels_last = false;                   // a model was moved to that memory format
};

// Sums over steps.
struct Steps {
  std::uint64_t steps = 0, samples = 0;
  std::int64_t compute_ns = 0;
  std::int64_t h2d_ns = 0;      // copies to the device that nothing hid
  std::uint64_t h2d_steps = 0;  // of how many steps they are known
  std::int64_t compute_cpu_ns = 0;
  std::uint64_t compute_cpu_steps = 0;  // of how many steps it is known
  Waited wait;
  StoreUse store;

  void add(const Step& step) noexcept;
  void add(const Steps& other) noexcept;
  std::int64_t running_ns() const noexcept { return work_ns() + wait.total_ns(); }
  std::int64_t work_ns() const noexcept { return compute_ns + h2d_ns; }
};

// One DataLoader of one process.
struct LoaderRun {
  int pid = 0, number = 0;
  int rank = 0, world_size = 1;
  LoaderFacts facts;
  std::optional<BatchFacts> batch;
  std::vector<Step> steps;                // in the order in which they were had; the latest, beyond 400,000
  std::map<std::uint32_t, Steps> folded;  // by epoch: those that are no longer listed
  std::size_t folded_steps = 0;
  Made made;
  std::map<std::uint32_t, Made> made_by_epoch;
  std::vector<SlowSample> slow;
  std::uint32_t epochs = 0;
  std::uint64_t without_grad = 0;  // steps asked for with autograd off
  std::int64_t stopping_ns = 0;    // at the end of the last epoch: counts once another one follows
  std::int64_t pickle_ns = 0, send_ns = 0, pin_ns = 0;
  std::uint64_t sent = 0, sent_bytes = 0, pinned = 0;
  std::int64_t between_ns = 0;  // after the end of an epoch, until any loader was asked again

  bool is_evaluation() const noexcept;  // by autograd, or by its name
};

class Job {
 public:
  // Ill-formed lines are counted, not thrown.
  void add(int pid, std::string_view line);
  // Puts steps together that were added before the last call of settle(); with `all`, every one.
  void settle(bool all = false);

  const std::map<std::pair<int, int>, LoaderRun>& loaders() const noexcept { return loaders_; }
  bool saw_torch() const noexcept { return saw_torch_; }
  std::uint64_t bad_lines() const noexcept { return bad_lines_; }
  std::uint64_t steps() const noexcept { return steps_; }  // of the loader that has most
  std::vector<int> workers() const;                        // process ids seen so far
  Arithmetic arithmetic(int pid) const;
  const SpanTimes& spans() const noexcept { return spans_; }  // stages that the job names itself

 private:
  struct Iteration {
    int loader = 0;
    std::uint32_t epoch = 0;
    std::int64_t begun_ns = 0, made_ns = 0;
    std::vector<int> workers;
    std::uint64_t seed = 0;
    std::map<std::int64_t, BatchTimes> batches;  // made, and not put together with their step
  };
  struct Worker {
    int id = 0;
    std::uint64_t seed = 0;
    std::int64_t born_ns = 0;
  };
  struct Waiting {  // a delivered batch that was not put together yet
    int pid = 0, iteration = 0;
    std::int64_t batch = 0;
    std::uint64_t age = 0;
    std::size_t step = 0;  // its place among all steps of the loader
  };
  struct Consumer {
    std::optional<std::pair<int, std::size_t>> last;  // loader and step whose compute goes on
    std::optional<int> ended;                         // or the loader whose epoch ended last
    std::int64_t since_ns = 0;
    std::optional<std::int64_t> cpu_ns = {};  // CPU time of the process by then
  };

  Iteration* find_iteration(int pid, int number);
  std::optional<std::pair<int, int>> iteration_of_worker(int pid, int thread, std::int64_t at_ns) const;
  void close_gap(int pid, std::int64_t at_ns, std::optional<std::int64_t> cpu_ns = std::nullopt);
  bool place_batch(int pid, int thread, std::int64_t batch, const BatchTimes& times);
  void keep_batch(std::pair<int, int> key, std::int64_t batch, const BatchTimes& times);
  bool settle_one(const Waiting& waiting, bool all);
  Step* find_step(int pid, int loader, std::size_t place);

  std::map<std::pair<int, int>, LoaderRun> loaders_;           // process, number
  std::map<std::pair<int, int>, Iteration> iterations_;        // process, number
  std::map<std::pair<int, int>, Worker> workers_;              // process, thread
  std::map<int, std::vector<std::pair<int, int>>> of_worker_;  // worker process -> its iterations, oldest first
  std::map<std::uint64_t, std::vector<std::pair<int, int>>> of_seed_;
  std::map<int, Consumer> consumers_;
  std::map<int, int> ranks_;
  std::map<int, Arithmetic> arithmetic_;
  SpanTimes spans_;
  struct Homeless {
    int pid, thread;
    std::int64_t batch;
    BatchTimes times;
  };
  std::vector<Homeless> homeless_;  // batches whose iteration is not known yet
  std::vector<Waiting> waiting_;
  std::uint64_t age_ = 0, bad_lines_ = 0, steps_ = 0;
  bool saw_torch_ = false;
};

}  // namespace stoker::measure
