#include "stoker/feed/feed.h"

#include <algorithm>
#include <thread>

#include "stoker/base/error.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cpu.h"
#include "stoker/os/memory.h"

namespace stoker::feed {
namespace {

constexpr std::int64_t kSliceNs = 50'000'000;  // of a sleep

meter::WaitSplit minus(meter::WaitSplit a, const meter::WaitSplit& b) {
  a.fetch_ns -= b.fetch_ns;
  a.prep_ns -= b.prep_ns;
  a.handoff_ns -= b.handoff_ns;
  return a;
}

// Waiting that belongs to no finished step (the end of an epoch, Ctrl-C) must not make the parts exceed the whole.
void fit_wait(Span& span) {
  const double room_ns = std::max(0.0, span.running_s - span.compute_s) * 1e9;
  const double total_ns = static_cast<double>(span.wait.total_ns());
  if (total_ns <= room_ns) return;
  const double factor = room_ns / total_ns;
  for (std::int64_t* part : {&span.wait.fetch_ns, &span.wait.prep_ns, &span.wait.handoff_ns}) {
    *part = static_cast<std::int64_t>(static_cast<double>(*part) * factor);
  }
}

void count(Span& span, const loader::Loader& loader, const loader::Batch& batch) {
  ++span.steps;
  span.samples += batch.size();
  for (const std::int64_t index : batch.indices()) {
    span.encoded_bytes += loader.dataset().location(static_cast<std::uint64_t>(index)).bytes;
  }
  for (const loader::Tensor& tensor : batch.tensors()) {
    std::uint64_t bytes = size_of(tensor.dtype);
    for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::uint64_t>(extent);
    span.decoded_bytes += bytes;
  }
}

// One run, with the clock readings that its spans are made of.
class Run {
 public:
  Run(loader::Loader& loader, const FeedOptions& options, Fed& fed)
      : loader_(loader),
        options_(options),
        fed_(fed),
        began_ns_(meter::now_ns()),
        cpu_at_start_(os::process_cpu_time()),
        span_began_ns_(began_ns_) {}

  void go() {
    fed_.total.epoch = loader_.epoch();
    if (loader_.epoch() >= options_.end_epoch) return;
    if (options_.steps > 0) loader_.expect_steps(options_.steps);
    if (options_.progress) options_.progress(fed_, 0);
    for (;;) {
      while (loader::BatchPtr batch = take()) {
        step(*batch);
        if (done()) return;
      }
      if (done()) return;
      close_span();
      const std::uint64_t next = loader_.epoch() + 1;
      if (next >= options_.end_epoch) return;
      enter(next);
      if (done()) return;
    }
  }

  // What was measured, up to now. Called once, also after a failure.
  void finish() {
    close_span();
    fed_.wall_s = static_cast<double>(meter::now_ns() - began_ns_) * 1e-9;
    fed_.cpu_s = std::chrono::duration<double>(os::process_cpu_time() - cpu_at_start_).count();
    fed_.stats = loader_.stats();
    look_at_memory();
    for (const Span& span : fed_.epochs) {
      fed_.total.steps += span.steps;
      fed_.total.samples += span.samples;
      fed_.total.encoded_bytes += span.encoded_bytes;
      fed_.total.decoded_bytes += span.decoded_bytes;
      fed_.total.running_s += span.running_s;
      fed_.total.compute_s += span.compute_s;
      fed_.total.wait += span.wait;
      fed_.total.store += span.store;
    }
  }

 private:
  bool interrupted() const { return options_.interrupted && options_.interrupted(); }

  // In slices, so that an interruption is seen. False: interrupted.
  bool sleep_until(std::int64_t deadline_ns) const {
    for (;;) {
      if (interrupted()) return false;
      const std::int64_t now = meter::now_ns();
      if (now >= deadline_ns) return true;
      const std::chrono::nanoseconds to(std::min(deadline_ns, now + kSliceNs));
      std::this_thread::sleep_until(meter::Clock::time_point(to));
    }
  }

  bool done() const {
    return fed_.interrupted || (options_.steps > 0 && fed_.steps >= options_.steps) ||
           (options_.time.count() > 0 && meter::now_ns() - began_ns_ >= options_.time.count());
  }

  void enter(std::uint64_t epoch) {
    try {
      loader_.start_epoch(epoch, 0, options_.interrupted);
    } catch (const Error&) {
      if (!interrupted()) throw;
      fed_.interrupted = true;
    }
  }

  loader::BatchPtr take() {
    try {
      return loader_.next(options_.interrupted);
    } catch (const Error&) {
      if (!interrupted()) throw;
      fed_.interrupted = true;
      return nullptr;
    }
  }

  void step(const loader::Batch& batch) {
    const std::int64_t received = meter::now_ns();
    if (fed_.steps == 0) fed_.first_batch_s = loader_.stats().first_batch_s;
    Span this_step;
    count(this_step, loader_, batch);
    if (options_.step.count() > 0 && !sleep_until(received + options_.step.count())) {
      fed_.interrupted = true;
      return;  // a part of a step counts for nothing
    }
    this_step.compute_s = std::chrono::duration<double>(options_.step).count();
    ++fed_.steps;
    fed_.samples += this_step.samples;
    span_.steps += 1;
    span_.samples += this_step.samples;
    span_.encoded_bytes += this_step.encoded_bytes;
    span_.decoded_bytes += this_step.decoded_bytes;
    span_.compute_s += this_step.compute_s;
    last_step_ns_ = meter::now_ns();
    if (fed_.steps == 1) set_first_step_aside();
    if (interrupted()) fed_.interrupted = true;
    report(last_step_ns_);
  }

  void set_first_step_aside() {
    first_ = span_;
    first_.running_s = static_cast<double>(last_step_ns_ - span_began_ns_) * 1e-9;
    const meter::WaitSplit wait = loader_.stats().wait;
    first_.wait = minus(wait, wait_before_);
    fit_wait(first_);
    wait_before_ = wait;
    span_ = Span{};
    span_began_ns_ = last_step_ns_;
  }

  void close_span() {
    const loader::Stats stats = loader_.stats();
    span_.wait = minus(stats.wait, wait_before_);
    wait_before_ = stats.wait;
    const storage::StoreFigures store = stats.store - store_before_;
    const std::int64_t end = span_.steps > 0 ? last_step_ns_ : span_began_ns_;
    span_.running_s = static_cast<double>(end - span_began_ns_) * 1e-9;
    span_.epoch = loader_.epoch();
    fit_wait(span_);
    if (span_.steps > 0) {
      span_.store = store;
      store_before_ = stats.store;
      fed_.epochs.push_back(span_);
      fed_.first_step_excluded = true;
      span_began_ns_ = last_step_ns_;
    } else if (fed_.epochs.empty() && first_.steps > 0 && fed_.steps == 1 && done_or_last()) {
      first_.epoch = loader_.epoch();
      first_.store = store;
      store_before_ = stats.store;
      fed_.epochs.push_back(first_);
      first_ = Span{};
    }
    span_ = Span{};
  }

  // The only step of the run is better than nothing.
  bool done_or_last() const { return done() || loader_.epoch() + 1 >= options_.end_epoch; }

  void report(std::int64_t now) {
    if (now - reported_ns_ < 100'000'000) return;
    const double seconds = static_cast<double>(now - reported_ns_) * 1e-9;
    const double rate = static_cast<double>(fed_.samples - reported_samples_) / seconds;
    smooth_ = reported_ns_ == 0 ? 0 : smooth_ == 0 ? rate : 0.8 * smooth_ + 0.2 * rate;
    reported_ns_ = now;
    reported_samples_ = fed_.samples;
    look_at_memory();
    if (options_.progress) options_.progress(fed_, smooth_);
  }

  void look_at_memory() {
    const os::ProcessMemory memory = os::process_memory();
    fed_.process_peak_bytes = std::max(fed_.process_peak_bytes, memory.anonymous_bytes + memory.shared_bytes);
  }

  loader::Loader& loader_;
  const FeedOptions& options_;
  Fed& fed_;
  const std::int64_t began_ns_;
  const std::chrono::nanoseconds cpu_at_start_;
  std::int64_t span_began_ns_;
  std::int64_t last_step_ns_ = 0;
  Span span_, first_;
  meter::WaitSplit wait_before_;
  storage::StoreFigures store_before_;
  std::int64_t reported_ns_ = 0;
  std::uint64_t reported_samples_ = 0;
  double smooth_ = 0;
};

}  // namespace

void feed(loader::Loader& loader, const FeedOptions& options, Fed& fed) {
  Run run(loader, options, fed);
  try {
    run.go();
  } catch (...) {
    run.finish();
    throw;
  }
  run.finish();
}

}  // namespace stoker::feed
