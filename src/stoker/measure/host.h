// Samples what a job costs the machine while it runs: CPU, memory, disk, network, pressure, accelerators. Called by one
// thread, about ten times a second; keeps its own cost small by asking less often what is dear.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/measure/accelerator.h"
#include "stoker/measure/answer.h"
#include "stoker/os/cpu.h"

namespace stoker::measure {

// Whether an amount of memory grows steadily. Filling up at the start is no growth, nor is a step or two later on.
class Growth {
 public:
  void add(double seconds, double bytes);
  // None before two minutes: the first minute, and the first half of the time, count as warm-up. 0 where what follows
  // brought less than 8 MiB, where most of its intervals did not grow, or where it is levelling off.
  std::optional<double> per_second() const noexcept;

 private:
  std::vector<std::pair<double, double>> points_;  // evenly thinned out when there are many
  double apart_ = 0;                               // seconds
};

struct ProcessFacts {
  int pid = 0;
  std::string name;
  bool is_worker = false;
  double cpu_s = 0, seconds = 0;  // since it was first seen
  std::optional<double> delay_s;  // ready, without a core (its main thread)
  double disk_wait_share = 0;     // of the readings: uninterruptible, as in a read from the disk
  std::uint64_t pss_bytes = 0, uss_bytes = 0, pss_peak_bytes = 0;  // 0: not known
  std::optional<double> growth_bytes_per_s;                        // of its own memory
  std::uint64_t open_descriptors = 0;
};

struct HostFacts {
  double seconds = 0;
  double cores = 0, cores_used = 0;
  std::string cores_limited_by;
  std::optional<double> cores_of_others;  // that programs outside the job kept busy; none where a limit hides it
  std::uint64_t memory_limit_bytes = 0;
  std::optional<std::uint64_t> memory_available_bytes;
  std::uint64_t pss_bytes = 0, pss_peak_bytes = 0;                 // of all processes of the job together; 0: not known
  std::uint64_t worker_uss_bytes = 0;                              // what only the workers have, together
  std::uint64_t workers = 0;                                       // that lived when their memory was read last
  std::optional<std::uint64_t> disk_read_bytes, cache_read_bytes;  // so far
  std::optional<double> disk_read_bytes_per_s, disk_write_bytes_per_s, network_received_bytes_per_s,
      network_sent_bytes_per_s;
  std::optional<double> page_cache_share;  // of what was read: not from the disk; pipes count as cached
  std::map<std::string, double> pressure;  // "cpu", "io", "memory": share of the time in which some task stood still
  std::optional<std::uint64_t> shm_used_peak_bytes, shm_total_bytes;
  std::uint64_t open_descriptors_peak = 0, open_descriptors_limit = 0;
  std::map<std::string, std::uint64_t> data_file_systems;  // "ext4 (/)": times an opened data file was seen there
  std::vector<AcceleratorReading> accelerators;            // last reading; busy is the mean
  std::size_t accelerator_swings = 0;
  std::vector<ProcessFacts> processes;  // workers and the largest others
};

class HostSampler {
 public:
  // `attached`: the job was running before; only what it does from now on counts.
  explicit HostSampler(bool attached = false, std::string root = "/", const std::string& nvml = "libnvidia-ml.so.1");

  // `child` is the job; `workers` those of its processes that load data.
  void sample(int child, const std::vector<int>& workers, std::int64_t now_ns);
  // The job has begun to load: its memory is read now, and again soon, so that a job of seconds is seen too.
  void loading_began();
  // Reads memory now, however recent the last reading is: before an answer while the job still runs.
  void sample_memory(std::int64_t now_ns);
  HostFacts facts() const;

 private:
  struct Process {
    std::string name;
    bool is_worker = false, known = false;
    std::chrono::nanoseconds cpu{0}, cpu_base{0};
    std::optional<std::chrono::nanoseconds> delay, delay_base;
    std::int64_t first_ns = 0, last_ns = 0;
    std::uint64_t readings = 0, in_disk_wait = 0, read_base = 0, chars_base = 0, written_base = 0;
    std::uint64_t read = 0, chars = 0, written = 0, descriptors = 0, pss = 0, uss = 0, pss_peak = 0;
    bool has_io = false;
    Growth own, anonymous;
  };
  void sample_counters(std::int64_t now_ns);
  void sample_files(int child);

  bool attached_;
  std::string root_;
  Accelerators accelerators_;
  std::map<int, Process> processes_;
  std::vector<int> alive_;
  std::map<std::string, std::uint64_t> file_systems_;
  std::map<std::string, std::uint64_t> pressure_first_, pressure_last_;
  std::optional<os::CoreTime> cores_first_, cores_last_;
  std::chrono::nanoseconds cpu_first_{0}, cpu_last_{0};  // of the job, with its children that have ended
  std::optional<std::uint64_t> received_first_, received_last_, sent_first_, sent_last_;
  std::deque<double> busy_;  // the last 10 minutes of the first accelerator
  std::vector<double> busy_sum_;
  std::vector<AcceleratorReading> last_readings_;
  std::uint64_t readings_ = 0, pss_ = 0, pss_peak_ = 0, worker_uss_ = 0, workers_alive_ = 0, shm_base_ = 0,
                shm_peak_ = 0, descriptors_peak_ = 0;
  std::int64_t started_ns_ = 0, last_ns_ = 0, tree_ns_ = 0, counters_ns_ = 0, files_ns_ = 0, memory_ns_ = 0,
               cores_first_ns_ = 0;
  std::size_t turn_ = 0, workers_seen_ = 0;
  bool loading_ = false;
  int early_left_ = 0;  // readings of memory that come soon after one another
};

Json to_json(const HostFacts& facts);
// One line for people. `device_is_told`: another line names the device of the job, so that this one leaves out that no
// accelerator could be seen.
std::string host_line(const HostFacts& facts, bool device_is_told = false);
// What the advice needs to know of the machine.
Offer offer_of(const HostFacts& facts);
// Adds sentences about memory, descriptors and the accelerator's pattern.
void note_host(Answer& answer, const HostFacts& facts);

}  // namespace stoker::measure
