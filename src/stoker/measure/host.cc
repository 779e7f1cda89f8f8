#include "stoker/measure/host.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/meter/counters.h"
#include "stoker/os/cpu.h"
#include "stoker/os/file_limit.h"
#include "stoker/os/memory.h"
#include "stoker/os/process.h"

namespace stoker::measure {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kBusyKept = 6000;  // 10 minutes at 10 Hz
constexpr std::size_t kGrowthPoints = 512, kGrowthIntervals = 6;
constexpr double kWarmUpSeconds = 60;
constexpr double kNotLevelling = 1 / 3.0;  // of the growth, in the later half of what is judged
constexpr int kEarlyReadings = 4;          // of memory: 0.5, 1, 2 and 4 s apart
constexpr std::size_t kFilesAtOnce = 4;    // processes whose open files are looked at in one sample

// Programs, libraries and our own records are no data.
bool is_data(const std::string& path) {
  for (const char* folder : {"/proc/", "/sys/", "/dev/", "/usr/", "/lib", "/etc/", "/bin/", "/run/"}) {
    if (path.starts_with(folder)) return false;
  }
  if (path.find("/site-packages/") != std::string::npos || path.find("/stoker-measure-") != std::string::npos)
    return false;
  for (const char* end : {".py", ".pyc", ".so", ".log", " (deleted)"}) {
    if (path.ends_with(end)) return false;
  }
  return true;
}

}  // namespace

void Growth::add(double seconds, double bytes) {
  // The last point is always the latest reading; the others lie at least `apart_` from each other.
  if (points_.size() > 1 && seconds - points_[points_.size() - 2].first < apart_) points_.pop_back();
  points_.emplace_back(seconds, bytes);
  if (points_.size() < kGrowthPoints) return;
  apart_ = 2 * (seconds - points_.front().first) / static_cast<double>(kGrowthPoints);
  std::vector<std::pair<double, double>> kept = {points_.front()};
  for (std::size_t i = 1; i + 1 < points_.size(); ++i) {
    if (points_[i].first - kept.back().first >= apart_) kept.push_back(points_[i]);
  }
  kept.push_back(points_.back());
  points_ = std::move(kept);
}

std::optional<double> Growth::per_second() const noexcept {
  std::size_t count = points_.size();
  // The last reading may be of a process that is already giving its memory back.
  if (count > 1 && points_[count - 1].second < points_[count - 2].second) --count;
  if (count < kGrowthIntervals + 1) return std::nullopt;
  const double end = points_[count - 1].first;
  const double warm = std::max(points_.front().first + kWarmUpSeconds, (points_.front().first + end) / 2);
  if (end - warm < kWarmUpSeconds) return std::nullopt;
  // The last reading at or before each border between the intervals.
  std::array<std::pair<double, double>, kGrowthIntervals + 1> at;
  std::size_t point = 0;
  for (std::size_t i = 0; i <= kGrowthIntervals; ++i) {
    const double border = warm + (end - warm) * static_cast<double>(i) / static_cast<double>(kGrowthIntervals);
    while (point + 1 < count && points_[point + 1].first <= border + 1e-9) ++point;
    at[i] = points_[point];
  }
  std::size_t growing = 0;
  for (std::size_t i = 1; i < at.size(); ++i) growing += at[i].second > at[i - 1].second ? 1 : 0;
  const double increase = at.back().second - at.front().second;
  const double later = at.back().second - at[kGrowthIntervals / 2].second;
  const bool is_steady = growing * 3 >= kGrowthIntervals * 2 && later >= increase * kNotLevelling;
  if (!is_steady || increase < static_cast<double>(8 * kMiB)) return 0;
  return increase / (at.back().first - at.front().first);
}

HostSampler::HostSampler(bool attached, std::string root, const std::string& nvml)
    : attached_(attached), root_(std::move(root)), accelerators_(nvml, root_) {}

void HostSampler::sample(int child, const std::vector<int>& workers, std::int64_t now_ns) {
  if (started_ns_ == 0) {
    started_ns_ = now_ns;
    if (const auto shm = os::space_of("/dev/shm")) shm_base_ = shm->used_bytes;
  }
  last_ns_ = now_ns;
  if (accelerators_.count() > 0) {
    last_readings_ = accelerators_.read();
    busy_sum_.resize(last_readings_.size());
    for (std::size_t i = 0; i < last_readings_.size(); ++i) busy_sum_[i] += last_readings_[i].busy.value_or(0);
    if (last_readings_[0].busy) busy_.push_back(*last_readings_[0].busy);
    if (busy_.size() > kBusyKept) busy_.pop_front();
    ++readings_;
  }
  if (now_ns - tree_ns_ >= kSecond || tree_ns_ == 0 || workers.size() > workers_seen_) {
    tree_ns_ = now_ns;
    workers_seen_ = workers.size();
    alive_ = os::process_tree(child, root_);
    for (const int pid : alive_) processes_[pid];
  }
  for (const int pid : workers) {
    if (processes_.contains(pid)) processes_[pid].is_worker = true;
  }
  if (now_ns - counters_ns_ >= kSecond / 2) {
    counters_ns_ = now_ns;
    sample_counters(now_ns);
  }
  if (now_ns - files_ns_ >= kSecond / 4) {
    files_ns_ = now_ns;
    sample_files(child);
  }
  if (now_ns >= memory_ns_) sample_memory(now_ns);
}

void HostSampler::sample_counters(std::int64_t now_ns) {
  std::chrono::nanoseconds cpu{0};
  for (const int pid : alive_) {
    const auto counters = os::process_counters(pid, root_);
    if (!counters) continue;
    cpu += counters->cpu + counters->children_cpu;
    Process& process = processes_[pid];
    process.cpu = std::max(process.cpu, counters->cpu);
    process.delay = os::process_run_delay(pid, root_);
    process.last_ns = now_ns;
    if (const auto bytes = os::process_anonymous_bytes(pid, root_); bytes && *bytes > 0)  // 0: it has ended
      process.anonymous.add(static_cast<double>(now_ns - started_ns_) * 1e-9, static_cast<double>(*bytes));
    ++process.readings;
    if (counters->state == 'D') ++process.in_disk_wait;
    if (!process.known) {
      process.known = true;
      process.first_ns = now_ns;
      process.delay_base = process.delay;
      process.name = os::process_name(pid, root_).value_or("");
      if (attached_ && now_ns - started_ns_ < kSecond) {
        process.cpu_base = process.cpu;
        process.read_base = counters->read_bytes.value_or(0);
        process.chars_base = counters->read_chars.value_or(0);
        process.written_base = counters->written_bytes.value_or(0);
      }
    }
    if (counters->read_bytes && counters->read_chars) {
      process.has_io = true;
      process.read = *counters->read_bytes;
      process.chars = *counters->read_chars;
      process.written = counters->written_bytes.value_or(0);
    }
  }
  for (const char* resource : {"cpu", "io", "memory"}) {
    if (const auto total = os::pressure_us(resource, root_)) {
      pressure_first_.try_emplace(resource, *total);
      pressure_last_[resource] = *total;
    }
  }
  cpu_last_ = std::max(cpu_last_, cpu);  // less while one that ended waits for its parent
  if (const auto time = os::core_time(root_)) {
    if (!cores_first_) cores_first_ = time, cores_first_ns_ = now_ns, cpu_first_ = cpu;
    cores_last_ = time;
  }
  if (const auto network = os::network_counters(root_)) {
    if (!received_first_) received_first_ = network->received_bytes, sent_first_ = network->sent_bytes;
    received_last_ = network->received_bytes, sent_last_ = network->sent_bytes;
  }
  if (const auto shm = os::space_of("/dev/shm")) shm_peak_ = std::max(shm_peak_, shm->used_bytes);
}

void HostSampler::loading_began() {
  if (loading_) return;
  loading_ = true;
  early_left_ = kEarlyReadings;
  memory_ns_ = 0;
}

// The kernel walks page tables for this: at most every 5 s, and so seldom that it takes less than 0.1 % of a core; but
// for the first few readings, which may take 1 %.
void HostSampler::sample_memory(std::int64_t now_ns) {
  const std::int64_t began = static_cast<std::int64_t>(os::thread_cpu_time().count());
  pss_ = worker_uss_ = workers_alive_ = 0;
  for (const int pid : alive_) {
    const auto shares = os::process_shares(pid, root_);
    if (!shares) continue;
    Process& process = processes_[pid];
    process.pss = shares->pss_bytes;
    process.uss = shares->uss_bytes;
    process.pss_peak = std::max(process.pss_peak, process.pss);
    process.own.add(static_cast<double>(now_ns - started_ns_) * 1e-9, static_cast<double>(process.uss));
    pss_ += process.pss;
    if (process.is_worker) worker_uss_ += process.uss, ++workers_alive_;
    process.descriptors = std::max(process.descriptors, os::open_descriptors(pid, root_).value_or(0));
    descriptors_peak_ = std::max(descriptors_peak_, process.descriptors);
  }
  pss_peak_ = std::max(pss_peak_, pss_);
  const std::int64_t cost = static_cast<std::int64_t>(os::thread_cpu_time().count()) - began;
  memory_ns_ = now_ns + std::max(5 * kSecond, 1000 * cost);
  if (early_left_ == 0) return;
  const std::int64_t soon = (kSecond / 2) << (kEarlyReadings - early_left_);
  memory_ns_ = now_ns + std::max(soon, 100 * cost);
  --early_left_;
}

// Data files are often open for a moment only: look often, at a few processes in turn.
void HostSampler::sample_files(int child) {
  if (alive_.empty()) return;
  std::vector<int> candidates;
  for (const int pid : alive_) {
    if (processes_[pid].is_worker || pid == child) candidates.push_back(pid);
  }
  if (candidates.empty()) candidates = alive_;
  for (std::size_t i = 0; i < std::min(kFilesAtOnce, candidates.size()); ++i) {
    const int pid = candidates[turn_++ % candidates.size()];
    for (const std::string& path : os::open_files(pid, root_)) {
      if (!is_data(path)) continue;
      if (const auto mount = os::mount_under(path, root_))
        ++file_systems_[fmt::format("{} ({})", mount->type, mount->point)];
    }
  }
}

HostFacts HostSampler::facts() const {
  HostFacts facts;
  facts.seconds = static_cast<double>(last_ns_ - started_ns_) * 1e-9;
  const double seconds = std::max(0.1, facts.seconds);
  const os::Cores cores = os::effective_cores(root_);
  facts.cores = cores.available;
  facts.cores_limited_by = cores.limited_by;
  facts.memory_limit_bytes = os::memory_limit(root_).bytes;
  facts.memory_available_bytes = os::available_memory(root_);
  if (facts.memory_available_bytes)
    facts.memory_available_bytes = std::min(*facts.memory_available_bytes, facts.memory_limit_bytes);
  facts.pss_bytes = pss_;
  facts.pss_peak_bytes = pss_peak_;
  facts.worker_uss_bytes = worker_uss_;
  facts.workers = workers_alive_;
  std::uint64_t read = 0, chars = 0, written = 0;
  bool has_io = false;
  double own_cpu_s = 0;
  for (const auto& [pid, process] : processes_) {
    const double cpu_s = static_cast<double>((process.cpu - process.cpu_base).count()) * 1e-9;
    own_cpu_s += cpu_s;
    read += process.read - std::min(process.read, process.read_base);
    chars += process.chars - std::min(process.chars, process.chars_base);
    written += process.written - std::min(process.written, process.written_base);
    has_io = has_io || process.has_io;
    ProcessFacts one;
    one.pid = pid;
    one.name = process.name;
    one.is_worker = process.is_worker;
    one.cpu_s = cpu_s;
    one.seconds = static_cast<double>(process.last_ns - process.first_ns) * 1e-9;
    if (process.delay && process.delay_base)
      one.delay_s = static_cast<double>((*process.delay - *process.delay_base).count()) * 1e-9;
    one.disk_wait_share =
        static_cast<double>(process.in_disk_wait) / static_cast<double>(std::max<std::uint64_t>(1, process.readings));
    one.pss_bytes = process.pss;
    one.uss_bytes = process.uss;
    one.pss_peak_bytes = process.pss_peak;
    // Copies of pages that were shared show in USS alone, what was allocated since in both; the latter is read more
    // often.
    one.growth_bytes_per_s = std::max(process.own.per_second(), process.anonymous.per_second());
    one.open_descriptors = process.descriptors;
    facts.processes.push_back(std::move(one));
  }
  const double sampled = std::max(0.1, static_cast<double>(counters_ns_ - started_ns_) * 1e-9);
  const std::chrono::nanoseconds cpu = cpu_last_ - (attached_ ? cpu_first_ : std::chrono::nanoseconds(0));
  facts.cores_used = std::max(own_cpu_s, static_cast<double>(cpu.count()) * 1e-9) / sampled;
  // Under a quota or a mask, cores of the machine that others keep busy may be none that the job could have.
  const double watched = static_cast<double>(counters_ns_ - cores_first_ns_) * 1e-9;
  if (cores_first_ && watched >= 1 && cores.limited_by.empty()) {
    facts.cores_of_others =
        os::cores_of_others(*cores_first_, *cores_last_, cpu_last_ - cpu_first_, watched, cores.online);
  }
  std::stable_sort(facts.processes.begin(), facts.processes.end(), [](const ProcessFacts& a, const ProcessFacts& b) {
    return std::pair(!a.is_worker, -a.cpu_s) < std::pair(!b.is_worker, -b.cpu_s);
  });
  if (facts.processes.size() > 64) facts.processes.resize(64);
  if (has_io) {
    facts.disk_read_bytes = read;
    facts.cache_read_bytes = chars - std::min(chars, read);
    facts.disk_read_bytes_per_s = static_cast<double>(read) / seconds;
    facts.disk_write_bytes_per_s = static_cast<double>(written) / seconds;
    if (chars > 0)
      facts.page_cache_share = std::clamp(1 - static_cast<double>(read) / static_cast<double>(chars), 0.0, 1.0);
  }
  if (received_first_) {
    facts.network_received_bytes_per_s = static_cast<double>(*received_last_ - *received_first_) / seconds;
    facts.network_sent_bytes_per_s = static_cast<double>(*sent_last_ - *sent_first_) / seconds;
  }
  for (const auto& [resource, total] : pressure_last_)
    facts.pressure[resource] =
        std::min(1.0, static_cast<double>(total - pressure_first_.at(resource)) * 1e-6 / seconds);
  if (const auto shm = os::space_of("/dev/shm")) {
    facts.shm_total_bytes = shm->total_bytes;
    facts.shm_used_peak_bytes = shm_peak_ > shm_base_ ? shm_peak_ - shm_base_ : 0;
  }
  facts.open_descriptors_peak = descriptors_peak_;
  facts.open_descriptors_limit = os::open_file_limit();
  facts.data_file_systems = file_systems_;
  facts.accelerators = last_readings_;
  for (std::size_t i = 0; i < facts.accelerators.size(); ++i) {
    if (facts.accelerators[i].busy && readings_ > 0)
      facts.accelerators[i].busy = busy_sum_[i] / static_cast<double>(readings_);
  }
  facts.accelerator_swings = swings({busy_.begin(), busy_.end()});
  return facts;
}

}  // namespace stoker::measure
