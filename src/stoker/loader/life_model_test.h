// What a loader does, as docs/reference/loader.md and loader.h say it, in the plainest way: no threads, no prefetching,
// no memory. Which sample stands at which position, and what a bad one leads to, is learnt from a straight run: one
// worker, one rank, one sample a batch. Everything else is worked out here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stoker/loader/made_data_test.h"

namespace stoker::loader {

// A sample as a straight run hands it out.
struct HandedOut {
  Taken row;  // one
  std::optional<SampleError> error;
};

class StraightRun {
 public:
  // `data` through the page cache; `options`: those that decide what the samples are.
  StraightRun(dataset::DatasetPtr data, LoaderOptions options) : data_(std::move(data)), options_(std::move(options)) {
    options_.batch_size = 1;
    options_.rank = 0;
    options_.world_size = 1;
    options_.last_batch = dataset::LastBatch::keep;
    options_.num_workers = 1;
    options_.storage = storage::Storage::buffered;
    options_.max_errors = 0;
  }

  // Of every position of an epoch. Bad samples are zeroed, or replaced where `replace` says so.
  const std::vector<HandedOut>& epoch(std::uint64_t epoch, bool replace) {
    const auto [found, is_new] = known_.try_emplace({epoch, replace});
    if (!is_new) return found->second;
    options_.on_error = replace ? OnError::replace : OnError::zero;
    Loader loader(data_, options_);
    loader.start_epoch(epoch);
    std::size_t errors = 0;
    while (const BatchPtr batch = loader.next()) {
      HandedOut given{copy_out(*batch), {}};
      const std::vector<SampleError> listed = loader.errors();
      if (listed.size() > errors) given.error = listed.back();
      errors = listed.size();
      found->second.push_back(std::move(given));
    }
    return found->second;
  }

 private:
  dataset::DatasetPtr data_;
  LoaderOptions options_;
  std::map<std::pair<std::uint64_t, bool>, std::vector<HandedOut>> known_;
};

// What one next() leads to: a batch, the end of the epoch, or an error with this message.
struct Outcome {
  std::optional<Taken> batch;
  std::uint64_t epoch = 0, step = 0;
  std::string error;
};

class LoaderModel {
 public:
  LoaderModel(LoaderOptions options, std::uint64_t size, StraightRun& straight)
      : options_(std::move(options)), size_(size), straight_(straight) {
    start_epoch(0, 0);
  }

  void start_epoch(std::uint64_t epoch, std::uint64_t position) {
    epoch_ = epoch;
    first_ = position_ = position;
    step_ = 0;
    epoch_errors_ = 0;
    failure_.clear();
  }

  // A start_epoch() was given up: the batch that is next is made again.
  void read_again() { failure_.clear(); }

  Outcome next() {
    if (step_ == steps()) return {};
    if (!failure_.empty()) return {{}, epoch_, step_, failure_};
    Taken batch;
    std::vector<SampleError> errors;
    std::uint64_t length = 0;
    const std::vector<HandedOut>& samples = straight_.epoch(epoch_, options_.on_error == OnError::replace);
    for (const std::uint64_t position : positions()) {
      const HandedOut& given = samples[position % size_];
      if (given.error) {
        errors.push_back(*given.error);
        errors.back().position = position;
        if (errors.back().action == "zero") errors.back().action = name(options_.on_error);
        if (options_.on_error == OnError::replace) errors.back().action = given.error->action;
        if (options_.on_error == OnError::skip) continue;
      }
      append(batch, given.row, position < size_);
      if (!given.row.rows[0].empty()) length = std::max<std::uint64_t>(length, given.row.rows[0].size());
    }
    if (options_.decode != Decode::none) {  // encoded rows lie one after another
      for (std::string& row : batch.rows) row.resize(length, '\0');
    }
    listed_.insert(listed_.end(), errors.begin(), errors.end());
    const std::uint64_t step = step_;
    if (options_.on_error == OnError::raise && !errors.empty()) {
      failure_ = errors.front().message().in_python();
    } else if (!errors.empty() && options_.max_errors > 0 && epoch_errors_ + errors.size() > allowed_errors()) {
      failure_ = fmt::format("{} bad samples in epoch {}", epoch_errors_ + errors.size(), epoch_);
    }
    if (!failure_.empty()) return {{}, epoch_, step, failure_};
    epoch_errors_ += errors.size();
    samples_ += batch.rows.size();
    ++batches_;
    ++step_;
    position_ = std::min(size_, position_ + per_step());
    return {std::move(batch), epoch_, step, ""};
  }

  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t steps() const {
    const std::uint64_t left = size_ - first_;
    const bool short_one = left % per_step() != 0 && options_.last_batch != dataset::LastBatch::drop;
    return left / per_step() + (short_one ? 1 : 0);
  }
  bool is_at_end() const { return step_ == steps(); }
  bool has_failed() const { return !failure_.empty(); }  // and does so again until another epoch is started
  // Epoch and position: what was handed out; after the last batch, the start of the next epoch.
  std::pair<std::uint64_t, std::uint64_t> state() const {
    return is_at_end() ? std::pair{epoch_ + 1, std::uint64_t{0}} : std::pair{epoch_, position_};
  }
  const std::vector<SampleError>& errors() const { return listed_; }
  std::uint64_t batches() const { return batches_; }
  std::uint64_t samples() const { return samples_; }

 private:
  std::uint64_t per_step() const { return options_.batch_size * options_.world_size; }

  // This rank's part of the next step, as global positions; from size_ on they are padding.
  std::vector<std::uint64_t> positions() const {
    const std::uint64_t begin = first_ + step_ * per_step(), left = size_ - begin;
    std::uint64_t from = begin + options_.rank * options_.batch_size, count = options_.batch_size;
    if (left < per_step() && options_.last_batch == dataset::LastBatch::keep) {
      // Shared out evenly, the first ranks getting one more.
      const std::uint64_t each = left / options_.world_size, more = left % options_.world_size;
      from = begin + options_.rank * each + std::min(options_.rank, more);
      count = each + (options_.rank < more ? 1 : 0);
    }
    std::vector<std::uint64_t> positions(count);
    for (std::uint64_t i = 0; i < count; ++i) positions[i] = from + i;
    return positions;
  }

  std::uint64_t allowed_errors() const {
    if (options_.max_errors >= 1) return static_cast<std::uint64_t>(options_.max_errors);
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(options_.max_errors * static_cast<double>(size_)));
  }

  static void append(Taken& batch, const Taken& one, bool is_own) {
    batch.indices.push_back(one.indices[0]);
    batch.ids.push_back(one.ids[0]);
    batch.labels.push_back(one.labels[0]);
    if (!one.lengths.empty()) batch.lengths.push_back(one.lengths[0]);
    batch.valid.push_back(is_own ? one.valid[0] : 0);
    batch.rows.push_back(one.rows[0]);
  }

  LoaderOptions options_;
  std::uint64_t size_;
  StraightRun& straight_;
  std::uint64_t epoch_ = 0, first_ = 0, position_ = 0, step_ = 0, epoch_errors_ = 0;
  std::string failure_;  // the batch that is next ends the run
  std::vector<SampleError> listed_;
  std::uint64_t batches_ = 0, samples_ = 0;
};

}  // namespace stoker::loader
