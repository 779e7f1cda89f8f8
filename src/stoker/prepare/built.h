// What a PackBuilder wrote, behind the pack that it adds to, as write_index wants it: a data set of names and facts
// alone, without bytes. Immutable.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "stoker/dataset/packed.h"

namespace stoker::prepare {

class Built final : public dataset::Dataset {
 public:
  Built(const dataset::PackManifest& pack, const dataset::Packed* base, std::vector<std::string> names)
      : base_(base), names_(std::move(names)) {
    facts_.label_kind = pack.label_kind;
    facts_.classes = pack.classes;
    if (base_ != nullptr) facts_.columns = base_->facts().columns;
  }

  const dataset::Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return before() + names_.size(); }
  std::string name(std::uint64_t index) const override {
    return index < before() ? base_->name(index) : names_[index - before()];
  }
  std::string column_text(std::size_t column, std::uint64_t index) const override {
    return index < before() ? base_->column_text(column, index) : std::string();
  }
  std::uint64_t id(std::uint64_t) const noexcept override { return 0; }
  storage::Location locate(std::uint64_t, std::span<char>) const noexcept override { return {}; }
  dataset::Label label(std::uint64_t) const noexcept override { return {}; }
  codec::Media media(std::uint64_t) const noexcept override { return codec::media_named("npy"); }
  double column(std::size_t, std::uint64_t) const noexcept override { return std::numeric_limits<double>::quiet_NaN(); }

 private:
  std::uint64_t before() const noexcept { return base_ != nullptr ? base_->size() : 0; }

  dataset::Facts facts_;
  const dataset::Packed* base_;
  std::vector<std::string> names_;
};

}  // namespace stoker::prepare
