#include "stoker/loader/loader.h"

#include <utility>

#include "stoker/loader/engine.h"

namespace stoker::loader {

Loader::Loader(dataset::DatasetPtr dataset, LoaderOptions options)
    : engine_(std::make_shared<Engine>(std::move(dataset), std::move(options))) {}

Loader::~Loader() {
  // In a forked child there is no thread to join and a mutex may be locked for ever: leave it to the kernel.
  if (engine_ && engine_->is_forked()) new std::shared_ptr<Engine>(std::move(engine_));
}

const LoaderOptions& Loader::options() const noexcept {
  return engine_->options();
}
const dataset::Dataset& Loader::dataset() const noexcept {
  return engine_->dataset();
}
const transform::Plan* Loader::plan() const noexcept {
  return engine_->recipe().plan();
}
std::vector<std::string> Loader::notes() const {
  return engine_->notes();
}
void Loader::start_epoch(std::uint64_t epoch, std::uint64_t position) {
  engine_->start_epoch(epoch, position);
}
std::uint64_t Loader::epoch() const noexcept {
  return engine_->epoch();
}
std::uint64_t Loader::steps() const noexcept {
  return engine_->steps();
}
BatchPtr Loader::next(const std::function<bool()>& interrupted) {
  return engine_->next(interrupted);
}
State Loader::state() const {
  return engine_->state();
}
void Loader::load_state(const State& state) {
  engine_->load_state(state);
}
void Loader::set_num_workers(int workers) {
  engine_->set_num_workers(workers);
}
Stats Loader::stats() const {
  return engine_->stats();
}
void Loader::reset_stats() {
  engine_->reset_stats();
}
std::vector<SampleError> Loader::errors() const {
  return engine_->errors();
}

void Loader::close() {
  if (!engine_->is_forked()) engine_->close();
}

}  // namespace stoker::loader
