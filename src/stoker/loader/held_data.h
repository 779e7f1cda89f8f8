// A data set in memory whose reads, or whose decoding, wait until a test lets them go.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/dataset/dataset.h"
#include "stoker/loader/made_data.h"

namespace stoker::loader {

// Lets the first samples through, as many as it was told to; the others wait.
class Gate {
 public:
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  void hold() { let(0); }
  void let(std::uint64_t samples = kAll) {
    const std::scoped_lock lock(mutex_);
    samples_ = samples;
    changed_.notify_all();
  }
  void pass(std::uint64_t index) const {
    std::unique_lock lock(mutex_);
    if (index < samples_) return;
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return index < samples_; });
    --waiting_;
  }
  void wait_until_somebody_waits() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t samples_ = kAll;
  mutable std::uint64_t waiting_ = 0;
};

// Sounds of 100 frames; every frame of sample i is i. Both gates are open at first.
class HeldData final : public dataset::Dataset, public storage::Source {
 public:
  explicit HeldData(std::uint64_t size) : size_(size) {
    for (std::uint64_t i = 0; i < size; ++i) bytes_ += wav(100, static_cast<std::int16_t>(i));
    each_ = bytes_.size() / size;
    facts_.kind = "held";
    facts_.total_bytes = bytes_.size();
    facts_.largest_bytes = each_;
    facts_.columns = {"hu_offset"};  // a worker asks for it, and waits there
  }

  Gate reads, decodes;

  const dataset::Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return size_; }
  std::uint64_t id(std::uint64_t index) const noexcept override { return index; }
  dataset::Extent extent(std::uint64_t index) const noexcept override { return {this, index * each_, each_}; }
  dataset::Label label(std::uint64_t) const noexcept override { return {}; }
  codec::Media media(std::uint64_t) const noexcept override { return codec::Media::wav; }
  std::string name(std::uint64_t index) const override { return fmt::format("held[{}]", index); }
  double column(std::size_t, std::uint64_t index) const noexcept override {
    decodes.pass(index);
    return 0;
  }
  std::size_t path(std::uint64_t, std::span<char>) const noexcept override { return 0; }
  int directory() const noexcept override { return AT_FDCWD; }

  std::string_view name() const noexcept override { return "held"; }
  std::uint64_t size_bytes() const noexcept override { return bytes_.size(); }
  void read(std::span<const storage::Read> wanted) const override {
    for (const storage::Read& read : wanted) {
      reads.pass(read.offset / each_);
      std::memcpy(read.into.data(), bytes_.data() + read.offset, read.into.size());
    }
  }

 private:
  std::uint64_t size_, each_ = 0;
  std::string bytes_;
  dataset::Facts facts_;
};

}  // namespace stoker::loader
