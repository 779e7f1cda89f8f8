#include "stoker/loader/figures.h"

#include <utility>

namespace stoker::loader {
namespace {

void subtract(meter::StageTotals& from, const meter::StageTotals& base) noexcept {
  from.busy_s -= base.busy_s;
  from.input_wait_s -= base.input_wait_s;
  from.room_wait_s -= base.room_wait_s;
  from.items -= base.items;
  from.bytes -= base.bytes;
}

}  // namespace

std::int64_t Figures::asked(std::int64_t called_ns) noexcept {
  if (run_started_ns_ == 0) run_started_ns_ = called_ns;
  run_ended_ns_ = called_ns;
  const std::int64_t returned = std::exchange(returned_ns_, 0);
  const std::int64_t compute = returned != 0 ? called_ns - returned : 0;
  compute_ns_ += compute;
  return compute;
}

meter::WaitSplit Figures::handed_out(const HandedOut& batch, std::span<const meter::RowTimes> times) noexcept {
  const meter::WaitSplit wait = meter::split_wait(batch.called_ns, batch.now_ns, times);
  wait_ += wait;
  ++batches_;
  samples_ += batch.samples;
  decoded_bytes_ += batch.bytes;
  run_ended_ns_ = returned_ns_ = batch.now_ns;
  if (first_batch_ns_ == 0) first_batch_ns_ = batch.now_ns - constructed_ns_;
  return wait;
}

void Figures::fill(Stats& stats) const noexcept {
  stats.samples = samples_;
  stats.batches = stats.steps = batches_;
  stats.decoded_bytes = decoded_bytes_;
  stats.running_s = static_cast<double>(run_ended_ns_ - run_started_ns_) * 1e-9;
  stats.compute_s = static_cast<double>(compute_ns_) * 1e-9;
  stats.wait = wait_;
  stats.first_batch_s = static_cast<double>(first_batch_ns_) * 1e-9;
  subtract(stats.fetch, fetch_base_);
  subtract(stats.prep, prep_base_);
  stats.store = stats.store - store_base_;
  stats.encoded_bytes = stats.fetch.bytes;
}

void Figures::reset(const Stats& now) noexcept {
  fetch_base_ = now.fetch;
  prep_base_ = now.prep;
  store_base_ = now.store;
  samples_ = batches_ = decoded_bytes_ = 0;
  compute_ns_ = 0;
  run_started_ns_ = run_ended_ns_ = 0;
  wait_ = {};
}

}  // namespace stoker::loader
