// A data set in memory whose reads, or whose decoding with a Window, wait until a test lets them go.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>

#include "stoker/base/random.h"
#include "stoker/dataset/dataset.h"
#include "stoker/loader/made_data_test.h"
#include "stoker/os/read_file.h"

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

// The gates are open at first.
class HeldData final : public dataset::Dataset, public storage::Source {
 public:
  // `dawdles`: not 0: reads are late now and then, as this seed says.
  explicit HeldData(const std::vector<std::string>& samples, std::uint64_t dawdles = 0) : dawdles_(dawdles) {
    for (const std::string& sample : samples) {
      ranges_.push_back({this, bytes_.size(), sample.size()});
      bytes_ += sample;
      facts_.largest_bytes = std::max<std::uint64_t>(facts_.largest_bytes, sample.size());
    }
    facts_.kind = "held";
    facts_.total_bytes = bytes_.size();
    facts_.columns = {"hu_offset"};  // a worker that windows asks for it, and waits there
  }

  Gate reads, decodes;
  std::map<std::uint64_t, Error> failures;  // what reading a sample throws; set before any loader reads

  const dataset::Facts& facts() const noexcept override { return facts_; }
  std::uint64_t size() const noexcept override { return ranges_.size(); }
  std::uint64_t id(std::uint64_t index) const noexcept override { return index; }
  storage::Location locate(std::uint64_t index, std::span<char>) const noexcept override {
    const storage::Range& range = ranges_[index];
    return storage::Location::in_source(range.source, range.offset, range.bytes);
  }
  dataset::Label label(std::uint64_t) const noexcept override { return {}; }
  codec::Media media(std::uint64_t) const noexcept override { return codec::media_named("wav"); }
  std::string name(std::uint64_t index) const override { return fmt::format("held[{}]", index); }
  double column(std::size_t, std::uint64_t index) const noexcept override {
    decodes.pass(index);
    return 0;
  }

  std::string_view name() const noexcept override { return "held"; }
  std::uint64_t size_bytes() const noexcept override { return bytes_.size(); }
  void read(std::span<const storage::Read> wanted) const override {
    for (const storage::Read& read : wanted) {
      const auto after = [](std::uint64_t offset, const storage::Range& range) { return offset < range.offset; };
      const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), read.offset, after);
      const auto index = static_cast<std::uint64_t>(next - ranges_.begin()) - 1;
      reads.pass(index);
      if (const auto failing = failures.find(index); failing != failures.end()) throw failing->second;
      if (dawdles_ != 0) dawdle();
      std::memcpy(read.into.data(), bytes_.data() + read.offset, read.into.size());
    }
  }

 private:
  void dawdle() const {
    Random random(dawdles_, 0, count_.fetch_add(1));
    if (random.below(3) == 0) std::this_thread::yield();
    if (random.below(12) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(2000)));
  }

  std::uint64_t dawdles_;
  mutable std::atomic<std::uint64_t> count_{0};
  std::string bytes_;
  std::vector<storage::Range> ranges_;
  dataset::Facts facts_;
};

// A small 16-bit image, for Window.
inline std::string image_with_16_bits() {
  return os::read_text(STOKER_FORMATS_FOLDER "/gray16.png");
}

// Sounds of 100 frames; every frame of sample i is i.
inline std::shared_ptr<HeldData> held_sounds(std::uint64_t size) {
  std::vector<std::string> samples;
  for (std::uint64_t i = 0; i < size; ++i) samples.push_back(wav(100, static_cast<std::int16_t>(i)));
  return std::make_shared<HeldData>(samples);
}

}  // namespace stoker::loader
