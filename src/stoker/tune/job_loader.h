// The DataLoader of a job that was not written for tuning: where the job makes it, its present settings, which values
// are worth trying, and what to change in the source for good. Pure functions, but for look_at_job(). One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/measure/job.h"
#include "stoker/tune/knobs.h"
#include "stoker/tune/target.h"
#include "stoker/tune/trial.h"

namespace stoker::tune {

// Arguments of a DataLoader that the hook sets as the job makes it: num_workers, pin_memory, ...
bool is_loader_argument(std::string_view name) noexcept;

// What one run of the job as it is tells.
struct JobLook {
  measure::LoaderFacts loader;                      // the one to tune
  std::uint32_t epochs = 1;                         // that were begun
  std::uint64_t batch_bytes = 0, worker_bytes = 0;  // 0: not known
  bool has_device = false;
  double images_per_s = 0, seconds = 0;
};

// Runs the job once, unchanged. `wanted`: "train.py:26", or empty for the loader that trains. Throws Error(usage) where
// there is no such loader.
JobLook look_at_job(const TrialOptions& trial, const std::string& wanted, const std::function<bool()>& interrupted);

// What the machine has room for.
struct TuneRoom {
  int cores = 1;
  std::uint64_t memory_bytes = 0, shm_bytes = 0;  // 0: not known
};
TuneRoom room_of_machine();
// Values worth trying: the present ones, and those around them that fit. batch_size is never among them: it changes
// training.
Grid propose_grid(const JobLook& look, const TuneRoom& room);

// The settings that the job has now, in the words of a point, of these knobs.
Point present_settings(const measure::LoaderFacts& facts, const std::vector<std::string>& knobs);
// Literals of Python files that the hook replaces, for the hook: [{"file", "name", "value"}].
Json source_json(const Point& point, const std::vector<std::string>& keys);
// For the hook, and for settings.json.
Json settings_json(const LoaderPlace& place, const Point& point, const std::vector<std::string>& knobs);
// "train.py:26: num_workers 2 -> 4, prefetch_factor 2 -> 8"; empty: nothing changes.
std::string change_text(const LoaderPlace& place, const Point& before, const Point& after);
// The source with the values that stand there as literals changed, as a unified diff; empty: none does.
std::string source_diff(const std::string& file, std::string_view source,
                        const std::map<std::string, measure::Literal>& literals, const Point& before,
                        const Point& after);
// The values that change and that the source has no literal for, as Python writes them ("persistent_workers=True"): the
// diff lacks them.
std::vector<std::string> missing_in_source(const std::map<std::string, measure::Literal>& literals, const Point& before,
                                           const Point& after);

}  // namespace stoker::tune
