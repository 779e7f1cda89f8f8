#include "stoker/feed/deep.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/dataset/page_cache.h"
#include "stoker/feed/feed.h"
#include "stoker/loader/loader.h"
#include "stoker/meter/counters.h"

namespace stoker::feed {
namespace {

// The default of one run: this time, or this number of steps where steps are slow.
constexpr std::chrono::seconds kRun{3};
constexpr std::uint64_t kLeastSteps = 20;

[[noreturn]] void stop() {
  throw Error(ErrorKind::unavailable, "interrupted");
}

class Parts {
 public:
  Parts(const dataset::DatasetPtr& data, const loader::LoaderOptions& loading, const DeepOptions& options)
      : data_(data), loading_(loading), options_(options), steps_(options.steps) {
    loading_.epochs = 1;  // no run reads ahead of epoch 0
  }

  measure::DeepRuns run() {
    measure::DeepRuns runs;
    const Fed first = feed_once("reading once", {}, true);  // fills the caches and what the loader keeps of files
    const bool is_chosen = steps_ > 0;
    steps_ = first.steps;
    if (!is_chosen && options_.step.count() > 0)
      steps_ = std::min(
          steps_, std::max(kLeastSteps, static_cast<std::uint64_t>(std::chrono::nanoseconds(kRun) / options_.step)));
    if (steps_ < 3)
      throw Error(ErrorKind::usage, fmt::format("{} steps are too few to compare runs of", steps_),
                  format_text("a smaller {}, or {}", option("batch_size"), option("inflate")));
    runs.steps = steps_;
    runs.compute_s = step_alone();
    if (lies_in_a_store()) {
      runs.store = loading_.cache_limit > 0 ? "the disk cache" : "the store";
      runs.warm_s = per_step(feed_once("loader only", {}));
    } else {
      run_loader_on_files(runs);
    }
    const Fed real = feed_once("real", options_.step);
    runs.real_s = per_step(real);
    const double n = static_cast<double>(real.total.steps);
    runs.ledger_fetch_s = static_cast<double>(real.total.wait.fetch_ns) * 1e-9 / n;
    runs.ledger_prep_s = static_cast<double>(real.total.wait.prep_ns) * 1e-9 / n;
    runs.ledger_handoff_s = static_cast<double>(real.total.wait.handoff_ns) * 1e-9 / n;
    runs.ledger_compute_s = runs.real_s - runs.ledger_wait_s();
    runs.compute_again_s = step_alone();
    if (options_.step.count() == 0)
      runs.notes.push_back(format_text("the step takes no time: {} or {} would emulate an accelerator",
                                       option("step_ms"), option("workload")));
    return runs;
  }

 private:
  bool lies_in_a_store() const noexcept {
    const auto backends = data_->backends();
    return std::any_of(backends.begin(), backends.end(), [](const auto* backend) { return backend != nullptr; });
  }

  void run_loader_on_files(measure::DeepRuns& runs) const {
    runs.warm_s = per_step(feed_once("loader only, warm", {}));
    drop_pages();
    runs.cold_left = dataset::cached_share(*data_);
    if (!runs.cold_left)
      runs.notes.emplace_back("whether the files left the page cache cannot be seen: they belong to another user");
    runs.cold_s = per_step(feed_once("loader only, cold", {}));
  }

  static double per_step(const Fed& fed) {
    return fed.total.running_s / static_cast<double>(std::max<std::uint64_t>(1, fed.total.steps));
  }

  void begin(const std::string& what, std::uint64_t total) const {
    if (options_.begun) options_.begun(what, total);
  }

  // Seconds of one emulated step without a loader: the mean of them all, or of a second's worth.
  double step_alone() const {
    if (options_.step.count() == 0) return 0;
    const std::int64_t began = meter::now_ns();
    std::uint64_t done = 0;
    do {
      if (options_.interrupted && options_.interrupted()) stop();
      std::this_thread::sleep_for(options_.step);
      ++done;
    } while (done < steps_ && meter::now_ns() - began < 1'000'000'000);
    return static_cast<double>(meter::now_ns() - began) * 1e-9 / static_cast<double>(done);
  }

  void drop_pages() const {
    begin("dropping from the page cache", data_->size());
    dataset::drop_from_page_cache(*data_, [&](std::uint64_t done) {
      if (options_.progress) options_.progress(done, "files", -1);
      return !options_.interrupted || !options_.interrupted();
    });
  }

  Fed feed_once(const std::string& what, std::chrono::nanoseconds step, bool measures_length = false) const {
    loader::Loader loader(data_, loading_);
    loader.start_epoch(0);
    FeedOptions feeding;
    feeding.step = step;
    feeding.steps = steps_;
    if (measures_length && steps_ == 0) feeding.time = kRun;
    begin(what, steps_ * loading_.batch_size);
    feeding.progress = [&](const Fed& so_far, double rate) {
      if (options_.progress) options_.progress(so_far.samples, "samples", rate);
    };
    feeding.interrupted = options_.interrupted;
    Fed fed;
    feed(loader, feeding, fed);
    if (fed.interrupted) stop();
    return fed;
  }

  const dataset::DatasetPtr& data_;
  loader::LoaderOptions loading_;
  const DeepOptions& options_;
  std::uint64_t steps_;
};

}  // namespace

measure::DeepRuns deep_runs(const dataset::DatasetPtr& data, const loader::LoaderOptions& loading,
                            const DeepOptions& options) {
  return Parts(data, loading, options).run();
}

}  // namespace stoker::feed
