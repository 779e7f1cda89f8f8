#include "stoker/feed/machine.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/units.h"
#include "stoker/os/file.h"
#include "stoker/os/file_limit.h"
#include "stoker/os/process.h"
#include "stoker/os/ring.h"
#include "stoker/storage/direct_source.h"

namespace stoker::feed {
namespace {

constexpr std::uint64_t kSmallShm = 512 * kMiB;  // a container has 64 MiB unless it is told otherwise
constexpr std::uint64_t kFewFiles = 1024;
constexpr double kOthersMatter = 0.25;      // of the cores
constexpr double kSlowDisk = 200e6;         // bytes/s: a disk that turns, or a small volume of a cloud
constexpr std::uint64_t kSpare = 1 * kGiB;  // stays free on the disk that is tried

std::string first_line(const std::string& path, std::string_view key = {}) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (key.empty()) return line;
    const std::size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// A file that is gone when this object is.
class TrialFile {
 public:
  TrialFile(const std::string& folder, std::uint64_t bytes)
      : path_(fmt::format("{}/.stoker-doctor-{:x}", folder,
                          std::chrono::steady_clock::now().time_since_epoch().count())) {
    std::vector<std::byte> piece(kMiB);
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<std::byte>(i * 131 >> 3);
    os::NewFile file(path_);
    for (std::uint64_t at = 0; at < bytes; at += piece.size()) file.write(piece);
    file.commit();
  }
  ~TrialFile() { remove(); }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;
  const std::string& path() const noexcept { return path_; }
  void remove() noexcept { os::remove_file(path_); }

 private:
  std::string path_;
};

void look_at_disk(const MachineWishes& wishes, Machine& machine) {
  machine.disk = os::space_of(wishes.folder);
  if (machine.disk && machine.disk->free_bytes < wishes.trial_bytes + kSpare) {
    machine.why_no_disk_rates = "the disk is nearly full";
    return;
  }
  try {
    TrialFile file(wishes.folder, wishes.trial_bytes);
    const std::unique_ptr<storage::Source> source = storage::open_direct_source(file.path());
    file.remove();  // its bytes stay while it is open, and a kill leaves nothing
    if (source == nullptr) {
      machine.why_no_disk_rates = "its file system cannot be read past the page cache";
      return;
    }
    machine.disk_rates = storage::probe_disk(*source, kTrialSample, wishes.disk_time);
  } catch (const Error& error) {
    machine.why_no_disk_rates = error.message();
  }
}

void look_at_cores(const MachineWishes& wishes, Machine& machine) {
  machine.cores = os::effective_cores(wishes.root);
  const auto from = os::core_time(wishes.root);
  const auto own = os::process_cpu_time();
  const auto began = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(wishes.core_time);
  const auto to = os::core_time(wishes.root);
  if (!from || !to) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
  machine.cores_of_others =
      os::cores_of_others(*from, *to, os::process_cpu_time() - own, seconds.count(), machine.cores.online);
}

}  // namespace

VectorCode vector_code() noexcept {
#if defined(__x86_64__)
  return {.name = "AVX2", .runs_here = __builtin_cpu_supports("avx2") != 0};
#elif defined(__aarch64__)
  return {.name = "NEON", .runs_here = true};
#else
  return {};
#endif
}

Machine look_at_machine(const MachineWishes& wishes) {
  Machine machine;
  machine.kernel = first_line(wishes.root + "/proc/sys/kernel/osrelease");
  machine.cpu = first_line(wishes.root + "/proc/cpuinfo", "model name");
  if (const VectorCode code = vector_code(); code.runs_here) machine.vectors = code.name;
  look_at_cores(wishes, machine);
  machine.memory = os::memory_limit(wishes.root);
  machine.memory_available_bytes = os::available_memory(wishes.root);
  if (machine.memory_available_bytes)
    machine.memory_available_bytes = std::min(*machine.memory_available_bytes, machine.memory.bytes);
  machine.shm = os::space_of(wishes.root + "/dev/shm");
  int error_number = 0;
  machine.has_ring = static_cast<bool>(os::Ring::try_make(8, error_number));
  if (!machine.has_ring) machine.why_no_ring = std::strerror(error_number);
  machine.open_files = os::open_file_limit();
  if (!wishes.folder.empty()) look_at_disk(wishes, machine);
  machine.accelerators = measure::Accelerators(wishes.nvml, wishes.root).read();
  return machine;
}

std::vector<MachineAdvice> advise(const Machine& machine) {
  std::vector<MachineAdvice> advice;
  if (machine.cores.available < 1.5) {
    advice.push_back(
        {"cores",
         fmt::format("{:.3g} of a core has to decode for the job{}", machine.cores.available,
                     machine.cores.limited_by.empty() ? "" : fmt::format(", by {}", machine.cores.limited_by)),
         "give the job more cores: decoding is what they are for"});
  }
  if (machine.cores_of_others && *machine.cores_of_others > kOthersMatter * machine.cores.available) {
    advice.push_back({"busy",
                      fmt::format("other programs keep {:.2g} of {:.3g} cores busy", *machine.cores_of_others,
                                  machine.cores.available),
                      "measure and tune when they are done: figures taken now are too low"});
  }
  if (machine.shm && machine.shm->total_bytes > 0 && machine.shm->total_bytes < kSmallShm) {
    advice.push_back(
        {"shm",
         fmt::format("/dev/shm has {}: worker processes of torch hand batches over there, and die of "
                     "a bus error where it is full",
                     format_bytes(machine.shm->total_bytes)),
         "enlarge it (docker: --shm-size=8g or --ipc=host); Stoker's own workers are threads and do not need it"});
  }
  if (!machine.has_ring) {
    advice.push_back(
        {"io_uring",
         fmt::format("io_uring is refused ({}): files are read by threads, which costs more CPU", machine.why_no_ring),
         "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile"});
  }
  if (machine.open_files <= kFewFiles) {
    advice.push_back(
        {"open_files",
         fmt::format("a process may open {} files: torch's workers and many shards need more", machine.open_files),
         "ulimit -n 65536"});
  }
  if (machine.vectors.empty()) {
    advice.push_back({"cpu",
                      "this CPU has none of the vector instructions that Stoker has code for: decoding is slower",
                      "x86-64 with AVX2 (2013 and later), or arm64"});
  }
  if (machine.disk_rates && machine.disk_rates->single_bytes_per_s < kSlowDisk) {
    advice.push_back(
        {"disk",
         fmt::format("single samples are read from this disk at {} MB/s",
                     format_rate(machine.disk_rates->single_bytes_per_s / 1e6)),
         machine.disk_rates->neighbour_bytes_per_s > 2 * machine.disk_rates->single_bytes_per_s
             ? format_text("neighbours come at {} MB/s: a pack with {} reads them so",
                           format_rate(machine.disk_rates->neighbour_bytes_per_s / 1e6), option("shuffle", "blocks"))
             : format_text("keep the data in memory ({}) if it fits, or on another disk", option("storage", "ram"))});
  }
  return advice;
}

}  // namespace stoker::feed
