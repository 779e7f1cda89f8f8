// What this machine offers a loader, and what will not work well on it: for `stoker doctor`. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/text.h"
#include "stoker/measure/accelerator.h"
#include "stoker/os/cpu.h"
#include "stoker/os/memory.h"
#include "stoker/os/process.h"
#include "stoker/storage/probe.h"

namespace stoker::feed {

inline constexpr std::uint64_t kTrialSample = 110'000;  // bytes that the trial reads as one sample: a photo

struct MachineWishes {
  std::string folder = {};                              // whose disk is read on trial; empty: none
  std::uint64_t trial_bytes = std::uint64_t{64} << 20;  // of the file that is written there, read and removed
  std::chrono::nanoseconds disk_time{std::chrono::milliseconds(600)};
  std::chrono::nanoseconds core_time{std::chrono::milliseconds(300)};  // watched for other programs
  std::string root = "/";                                              // but in tests
  std::string nvml = "libnvidia-ml.so.1";
};

struct Machine {
  std::string kernel, cpu;  // empty: not known
  std::string vectors;      // "AVX2", "NEON"; empty: plain code
  os::Cores cores;
  std::optional<double> cores_of_others;
  os::MemoryLimit memory;
  std::optional<std::uint64_t> memory_available_bytes;
  std::optional<os::Space> shm;
  bool has_ring = false;  // io_uring
  std::string why_no_ring;
  std::uint64_t open_files = 0;
  std::optional<os::Space> disk;
  std::optional<storage::DiskRates> disk_rates;
  std::string why_no_disk_rates;
  std::vector<measure::AcceleratorReading> accelerators;
};

Machine look_at_machine(const MachineWishes& wishes);

// The vector instructions for which this build has code of its own: "AVX2", "NEON"; empty: none. The choice is made at
// run time, since a build for x86-64 also runs on CPUs without AVX2.
struct VectorCode {
  std::string_view name;
  bool runs_here = false;
};
VectorCode vector_code() noexcept;

// What is worth a change here, the most important first. Empty: nothing.
struct MachineAdvice {
  std::string about;  // "io_uring", "/dev/shm": a word for programs
  std::string what;
  Text remedy;
};
std::vector<MachineAdvice> advise(const Machine& machine);

}  // namespace stoker::feed
