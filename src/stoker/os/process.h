// What the kernel tells about other processes and about the machine: counters that only grow, and present amounts.
// Everything may be missing (another user's process, an old kernel, no /proc): that is nullopt, never 0. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stoker::os {

// `root` is "/" but in tests, which give a made-up tree of proc and sys files.

// `pid` and all that descend from it. Needs CONFIG_PROC_CHILDREN; without it, `pid` alone.
std::vector<int> process_tree(int pid, const std::string& root = "/");
std::vector<int> process_trees(std::vector<int> pids, const std::string& root = "/");  // each process once

struct ProcessCounters {
  std::chrono::nanoseconds cpu{0};           // user and system, all threads
  std::chrono::nanoseconds children_cpu{0};  // of children that ended and were waited for, and of theirs
  char state = '?';                          // R, S, D (waits for a disk), Z, ...
  std::optional<std::uint64_t> read_bytes;   // from the disk
  std::optional<std::uint64_t> read_chars;   // by read() and the like: from the page cache and from pipes too
  std::optional<std::uint64_t> written_bytes;
};
std::optional<ProcessCounters> process_counters(int pid, const std::string& root = "/");

struct ThreadCounters {
  int thread = 0;
  std::string name = {};  // as `ps -T` shows it
  char state = '?';
  std::chrono::nanoseconds cpu{0}, delay{0};     // on a core; ready without one
  std::optional<std::uint64_t> read_bytes = {};  // from the disk
};
// At most `most` of them. Empty: the process has ended, or cannot be seen.
std::vector<ThreadCounters> thread_counters(int pid, std::size_t most, const std::string& root = "/");

std::string host_name();  // of this machine, as the kernel knows it; empty: unknown

std::optional<std::string> process_name(int pid, const std::string& root = "/");  // as `ps` shows it, 15 characters

std::optional<std::chrono::nanoseconds> process_run_delay(int pid, const std::string& root = "/");  // main thread

// All resident memory: cheap to ask, but what several processes share counts for each of them.
std::optional<std::uint64_t> process_resident_bytes(int pid, const std::string& root = "/");

// Resident memory that belongs to no file: cheap to ask, but pages shared after a fork count in full.
std::optional<std::uint64_t> process_anonymous_bytes(int pid, const std::string& root = "/");

struct SharedMemory {
  std::uint64_t pss_bytes = 0;  // its part of shared pages counted once
  std::uint64_t uss_bytes = 0;  // memory that no other process shares
};
// Costs the kernel a walk over the page tables: milliseconds for a large process.
std::optional<SharedMemory> process_shares(int pid, const std::string& root = "/");

// The regular files that the process has open, by path.
std::vector<std::string> open_files(int pid, const std::string& root = "/");
std::optional<std::uint64_t> open_descriptors(int pid, const std::string& root = "/");

struct Mount {
  std::string point, type;  // "/mnt/s3", "fuse.mountpoint-s3"
};
// Under `path`, which is absolute.
std::optional<Mount> mount_under(const std::string& path, const std::string& root = "/");

// Microseconds in which some task stood still for want of "cpu", "io" or "memory".
std::optional<std::uint64_t> pressure_us(const std::string& resource, const std::string& root = "/");

struct Network {
  std::uint64_t received_bytes = 0, sent_bytes = 0;  // all interfaces but lo
};
std::optional<Network> network_counters(const std::string& root = "/");

std::optional<std::uint64_t> available_memory(const std::string& root = "/");  // MemAvailable

// Another one after each start of the machine; the same in all containers on it.
std::optional<std::string> boot_id(const std::string& root = "/");

struct Space {
  std::uint64_t used_bytes = 0;
  std::uint64_t total_bytes = 0;  // 0: a file system that does not say, such as ramfs
  std::uint64_t free_bytes = 0;   // for users without privileges
};
std::optional<Space> space_of(const std::string& path);  // of a mounted file system such as /dev/shm

}  // namespace stoker::os
