#include "stoker/loader/loader.h"

#include <atomic>
#include <utility>

#include "stoker/loader/engine.h"

namespace stoker::loader {

Loader::Loader(dataset::DatasetPtr dataset, LoaderOptions options)
    : engine_(std::make_shared<Engine>(std::move(dataset), std::move(options))) {}

Loader::~Loader() {
  // In a forked child there is no thread to join and a mutex may be locked for ever: leave it to the kernel.
  bool leave = engine_->is_forked();
  try {
    if (!leave) engine_->close({});
  } catch (const Error&) {
    engine_->leave_closing();
    leave = true;  // a thread has not ended, and uses the engine's memory
  }
  if (!leave) return;
  // Reachable for ever, so that leak checkers know that it is meant.
  struct Left {
    std::shared_ptr<Engine> engine;
    Left* next;
  };
  static std::atomic<Left*> all{nullptr};
  auto* const left = new Left{std::move(engine_), all.load()};
  while (!all.compare_exchange_weak(left->next, left)) {
  }
}

const LoaderOptions& Loader::options() const noexcept {
  return engine_->options();
}
const dataset::Dataset& Loader::dataset() const noexcept {
  return engine_->dataset();
}
const KindFacts& Loader::kind() const noexcept {
  return engine_->recipe().facts();
}
std::vector<transform::Pass> Loader::passes() const {
  return engine_->recipe().passes();
}
std::vector<Text> Loader::notes() const {
  return engine_->notes();
}
void Loader::start_epoch(std::uint64_t epoch, std::uint64_t position, const Interrupted& interrupted) {
  engine_->start_epoch(epoch, position, interrupted);
}
std::uint64_t Loader::epoch() const noexcept {
  return engine_->epoch();
}
std::uint64_t Loader::steps() const {
  return engine_->steps();
}
BatchPtr Loader::next(const Interrupted& interrupted) {
  return engine_->next(interrupted);
}
void Loader::give(std::vector<std::uint64_t> indices) {
  engine_->give(std::move(indices));
}
void Loader::end_order() {
  engine_->end_order();
}
std::uint64_t Loader::steps_wanted() const {
  return engine_->steps_wanted();
}
void Loader::expect_steps(std::uint64_t steps) {
  engine_->expect_steps(steps);
}
State Loader::state() const {
  return engine_->state();
}
void Loader::check_state(const State& state) const {
  engine_->check_state(state);
}
void Loader::load_state(const State& state, const Interrupted& interrupted) {
  engine_->load_state(state, interrupted);
}
bool Loader::keep_order(const State& state) {
  return engine_->keep_order(state);
}
dataset::Shuffle Loader::shuffle_of(std::uint64_t epoch) const {
  return engine_->shuffle_of(epoch);
}
void Loader::set_num_workers(int workers) {
  engine_->set_num_workers(workers);
}
Stats Loader::stats() const {
  return engine_->stats();
}
std::uint64_t Loader::padding_bytes() const noexcept {
  return engine_->padding_bytes();
}
void Loader::reset_stats() {
  engine_->reset_stats();
}
std::vector<SampleError> Loader::errors() const {
  return engine_->errors();
}

void Loader::close(const Interrupted& interrupted) {
  if (!engine_->is_forked()) engine_->close(interrupted);
}

}  // namespace stoker::loader
