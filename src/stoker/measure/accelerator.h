// How busy the accelerators are and how full their memory is: NVIDIA by NVML (loaded when the program runs), AMD by
// sysfs. What is not there is absent, never 0. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stoker::measure {

struct AcceleratorReading {
  std::string name;
  std::optional<double> busy;  // 0 to 1: share of the last moment in which any kernel ran
  std::optional<std::uint64_t> memory_used_bytes, memory_total_bytes;
};

class Accelerators {
 public:
  // `library` is tried by dlopen; `root` is "/" but in tests.
  explicit Accelerators(const std::string& library = "libnvidia-ml.so.1", const std::string& root = "/");
  ~Accelerators();
  Accelerators(const Accelerators&) = delete;
  Accelerators& operator=(const Accelerators&) = delete;

  std::size_t count() const noexcept;
  std::vector<AcceleratorReading> read() const;

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;
  std::vector<std::string> amd_;  // folders of devices
};

// A busy share that swings between full and idle, as it does where batches come in bursts: how often in `busy` (one
// value per reading) it went from 0.9 or more to 0.1 or less.
std::size_t swings(const std::vector<double>& busy) noexcept;

}  // namespace stoker::measure
