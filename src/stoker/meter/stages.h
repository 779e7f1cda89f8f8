// How fast a loader and a training step run together. Each stage has a rate, and the slowest stage sets the rate of
// the whole. `stoker measure` and `stoker plan` predict with these functions. Pure arithmetic; from any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace stoker::meter {

// One process that loads and trains. Times are seconds per sample of one thread or worker process that always has a
// core; `rivals` says how far the machine is from that.
struct Stages {
  double batch_size = 1;
  double workers = 1;  // 0: the training thread prepares the samples itself
  double io_threads = 1;
  double cores = 0;               // 0: not known
  double free_cores = 0;          // cores that other programs left; 0: all
  double rivals = 0;              // other programs that compete for these cores with the same weight; 0: none
  double ranks = 1;               // such processes on this machine
  bool fetch_in_workers = false;  // as in a torch DataLoader: a worker reads and prepares
  double fetch_s = 0;             // 0: nothing to speak of
  double prep_s = 0;
  double handoff_s = 0;      // of the training thread
  double compute_s = 0;      // of the accelerator, or of the training thread; 0: none
  double cpu_s = 0;          // of all threads together; 0: not known, then prep_s
  double storage_per_s = 0;  // samples that the storage delivers to all ranks and nodes together; 0: no limit was seen
};

enum class Limit : std::uint8_t { none, fetch, prep, handoff, compute, cores, storage };
std::string_view name(Limit limit) noexcept;  // "hand-off"

struct Predicted {
  double per_s = 0;  // of all ranks of this machine together
  Limit limit = Limit::none;
  double fetch_per_s = 0, prep_per_s = 0, handoff_per_s = 0, compute_per_s = 0, cores_per_s = 0,
         storage_per_s = 0;  // 0: no limit

  bool is_loader_bound() const noexcept;  // by fetch, prep, cores or storage
};
Predicted predict(const Stages& stages);

// On a crowded machine only the slowest stage waits for cores. This reduces its time to what the CPU time of all
// stages (`cpu_s`) leaves for it, and charges the rest to rivals. `used_cores` is what the process had.
void take_out_rivals(Stages& stages, double used_cores);

// A torch DataLoader as `stoker measure` saw it. Milliseconds, in the process that made the batch.
struct LoaderFigures {
  double batch_size = 1, num_workers = 0;
  double fetch_ms = 0, prep_ms = 0, collate_ms = 0;  // per batch
  double delay_ms = 0, collate_delay_ms = 0;  // the parts of prep and of collating in which it was ready without a core
  double compute_ms = 0;                      // per step
  double compute_cpu_ms = 0;                  // CPU time of the whole process meanwhile; 0: not known
  double cores = 0;
  double cores_of_others = 0;  // that other programs kept busy while no core was idle
};
Stages stages_of(const LoaderFigures& figures);
// Cores that a job cannot have: those of others, if they and the job leave none idle; else 0.
double cores_taken(double cores, double used, double used_by_others);

// The same job with `workers` workers. The first worker process makes the training thread take batches over.
Stages stages_with_workers(const Stages& now, double workers);
// How many times faster, with `workers` instead of the present number.
double gain_of_workers(const Stages& now, double workers);
// The most workers that make sense: as many as the cores that are free, and more only where they mostly wait.
double most_workers(const Stages& stages);
// The fewest workers whose gain is within 2 % of the best. 0: no number of workers is faster than now.
int suggested_workers(const Stages& now);
// The same among at least one worker, also where now is as fast: how few would do.
int fewest_workers(const Stages& now);

}  // namespace stoker::meter
