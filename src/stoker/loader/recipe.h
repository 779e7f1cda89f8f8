// How one sample's bytes become its row of the batch: the kind of sample that a data set holds, found once.
// Immutable but for its notes; safe from any thread (one Scratch each).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/dataset/dataset.h"
#include "stoker/loader/kind.h"
#include "stoker/transform/mix.h"

namespace stoker::loader {

class Recipe {
 public:
  // Looks at samples until one can be read, to learn what the data set holds. Throws Error.
  Recipe(const dataset::Dataset& dataset, const LoaderOptions& options);

  const KindFacts& facts() const noexcept { return kind_->facts(); }
  std::span<const transform::Output> outputs() const noexcept { return facts().outputs; }
  bool varies() const noexcept { return facts().varies; }
  bool packs_rows() const noexcept { return facts().packs_rows; }
  std::size_t label_count() const noexcept { return label_count_; }  // labels of each sample
  // Where batches are mixed: how, and into how many classes the labels are spread.
  const std::optional<transform::MixPlan>& mix() const noexcept { return mix_; }
  std::size_t soft_classes() const noexcept { return mix_ ? mix_->classes : 0; }
  // The most memory that the first look held. More than memory_limit where that was too low to look at all: the job
  // must then be refused.
  std::uint64_t look_bytes() const noexcept { return look_bytes_; }
  std::uint64_t length_of(
      std::uint64_t bytes) const noexcept;  // about; of the row of a sample with this number of bytes
  std::uint64_t row_bytes(std::size_t output, std::uint64_t length) const noexcept;  // of one sample
  std::vector<std::string> notes() const { return kind_->notes(); }
  std::vector<transform::Pass> passes() const { return kind_->passes(); }

  // Fills in the values of the sample that operations read from the index; 0 where it has none.
  void read_values(const dataset::Dataset& dataset, std::uint64_t index, SampleKey& key) const noexcept;
  // As Kind::measure and Kind::make. An empty file is truncated, whatever its kind.
  RowResult measure(codec::Bytes bytes, std::uint64_t& length) const noexcept {
    return is_missing(bytes) ? kEmpty : kind_->measure(bytes, length);
  }
  RowResult make(codec::Bytes bytes, const SampleKey& key, const Slot& slot, std::uint64_t& length, Scratch& scratch,
                 SeekStore* seek) const noexcept {
    return is_missing(bytes) ? kEmpty : kind_->make(bytes, key, slot, length, scratch, seek);
  }
  void announce(const SampleKey& key) const noexcept { kind_->announce(key); }

 private:
  static constexpr RowResult kEmpty{failed(Code::truncated, "the file is empty", 0)};
  bool is_missing(codec::Bytes bytes) const noexcept {
    return bytes.empty() && !facts().is_encoded && !facts().takes_parts;
  }

  std::optional<transform::MixPlan> mix_;
  std::uint64_t look_bytes_ = 0;  // before kind_, whose initialiser sets it
  std::unique_ptr<const Kind> kind_;
  std::size_t label_count_ = 1;
  std::vector<std::size_t> columns_;  // of the data set, for KindFacts::columns; kNoColumn: it has none
};

}  // namespace stoker::loader
