#include "stoker/tune/failure_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "stoker/base/utf8.h"

namespace stoker::tune {
namespace {

constexpr std::string_view kLessDevice = "try a smaller batch_size, checkpointing or accumulate_steps";
constexpr std::string_view kLessHost = "try fewer num_workers, less prefetch_factor or a smaller batch_size";
constexpr std::string_view kMoreShm =
    "enlarge /dev/shm (docker: --shm-size or --ipc=host), or try fewer num_workers and less prefetch_factor";
constexpr std::string_view kMoreFiles =
    "raise `ulimit -n`, or torch.multiprocessing.set_sharing_strategy('file_system')";
constexpr std::string_view kSuspect =
    "may be memory: try half the batch_size; if that fails too, the libraries do not fit";
constexpr std::string_view kSerialize =
    "not memory: run the point again with AMD_SERIALIZE_KERNEL=3 or CUDA_LAUNCH_BLOCKING=1 to see the call that fails";
constexpr std::string_view kRocmLaunch =
    "not memory: on gfx115x some are helped by TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1 and "
    "MIOPEN_DEBUG_CONV_DIRECT=0; "
    "AMD_SERIALIZE_KERNEL=3 shows the call that fails";
constexpr std::string_view kMiopen = "MIOPEN_ENABLE_LOGGING=1 names the kernel; another batch_size takes another one";
constexpr std::string_view kAssert = "often an index or label out of range: run once on the CPU to see which";
constexpr std::string_view kHardware = "the driver lost the device: see dmesg, power and temperature";
constexpr std::string_view kNccl = "run the point again with NCCL_DEBUG=INFO to see the first rank that failed";
constexpr std::string_view kZeroWorkers = "run the point with num_workers=0 to see the worker's own error";
constexpr std::string_view kNoPin = "the pinning thread died: try pin_memory=false, or see the lines above it";

struct Rule {
  Status status;
  std::string_view words;
  std::string_view also;  // in the same line; empty: nothing more
  std::string_view remedy;
};

// In the order of how much they tell: the first rule that any line fulfils decides.
constexpr std::array kRules = {
    Rule{Status::oom_fd, "Too many open files", "", kMoreFiles},
    Rule{Status::oom_fd, "items of ancdata", "", kMoreFiles},
    Rule{Status::oom_fd, "unable to open shared memory object", "", kMoreFiles},

    Rule{Status::oom_shm, "insufficient shared memory", "", kMoreShm},
    Rule{Status::oom_shm, "is killed by signal: Bus error", "", kMoreShm},
    Rule{Status::oom_shm, "unable to write to file </torch_", "", kMoreShm},
    Rule{Status::oom_shm, "unable to allocate shared memory", "", kMoreShm},
    Rule{Status::oom_shm, "Error while creating shared memory segment", "", kMoreShm},
    Rule{Status::oom_shm, "No space left on device", "shm", kMoreShm},
    Rule{Status::oom_shm, "No space left on device", "torch_", kMoreShm},

    Rule{Status::oom_host, "DefaultCPUAllocator", "memory", kLessHost},
    Rule{Status::oom_host, "std::bad_alloc", "", kLessHost},
    Rule{Status::oom_host, "Cannot allocate memory", "", kLessHost},
    Rule{Status::oom_host, "_ArrayMemoryError", "", kLessHost},
    Rule{Status::oom_host, "Unable to allocate", "for an array", kLessHost},
    Rule{Status::oom_host, "Memory cgroup out of memory", "", kLessHost},
    Rule{Status::oom_host, "Out of memory: Kill", "", kLessHost},
    Rule{Status::oom_host, "oom-kill:constraint", "", kLessHost},
    Rule{Status::oom_host, "oom_kill event", "", kLessHost},
    Rule{Status::oom_host, "OUT_OF_HOST_MEMORY", "", kLessHost},

    Rule{Status::oom_device, "out of memory. Tried to allocate", "", kLessDevice},
    Rule{Status::oom_device, "OutOfMemoryError", "", kLessDevice},
    Rule{Status::oom_device, "error: out of memory", "", kLessDevice},
    Rule{Status::oom_device, "CUDA out of memory", "", kLessDevice},
    Rule{Status::oom_device, "HIP out of memory", "", kLessDevice},
    Rule{Status::oom_device, "XPU out of memory", "", kLessDevice},
    Rule{Status::oom_device, "MPS backend out of memory", "", kLessDevice},
    Rule{Status::oom_device, "ErrorOutOfMemory", "", kLessDevice},
    Rule{Status::oom_device, "cudaErrorMemoryAllocation", "", kLessDevice},
    Rule{Status::oom_device, "CUDA_ERROR_OUT_OF_MEMORY", "", kLessDevice},
    Rule{Status::oom_device, "OUT_OF_DEVICE_MEMORY", "", kLessDevice},
    Rule{Status::oom_device, "RESOURCE_EXHAUSTED: Out of memory", "", kLessDevice},
    Rule{Status::oom_device, "can NOT allocate memory block", "",
         "the platform refuses blocks above 4 GB: a smaller batch_size"},

    Rule{Status::worker_died, "is killed by signal: ", "", kZeroWorkers},
    Rule{Status::worker_died, "encountered in worker", "Unexpected", kZeroWorkers},

    Rule{Status::hang, "DataLoader timed out after", "",
         "a worker stopped: raise the loader's timeout, or see where with py-spy"},
    Rule{Status::hang, "Watchdog caught collective operation timeout", "", kNccl},
    Rule{Status::hang, "watchdog got stuck", "", kNccl},

    Rule{Status::runtime_fault, "hipErrorLaunchFailure", "", kRocmLaunch},
    Rule{Status::runtime_fault, "HIP error: unspecified launch failure", "", kRocmLaunch},
    Rule{Status::runtime_fault, "ErrorIllegalAddress", "", kSerialize},
    Rule{Status::runtime_fault, "illegal memory access was encountered", "", kSerialize},
    Rule{Status::runtime_fault, "ErrorLaunchFailure", "", kSerialize},
    Rule{Status::runtime_fault, "unspecified launch failure", "", kSerialize},
    Rule{Status::runtime_fault, "device-side assert triggered", "", kAssert},
    Rule{Status::runtime_fault, "ErrorAssert", "", kAssert},
    Rule{Status::runtime_fault, "misaligned address", "", kSerialize},
    Rule{Status::runtime_fault, "ErrorMisalignedAddress", "", kSerialize},
    Rule{Status::runtime_fault, "illegal instruction was encountered", "", kSerialize},
    Rule{Status::runtime_fault, "ErrorIllegalInstruction", "", kSerialize},
    Rule{Status::runtime_fault, "the launch timed out and was terminated", "", kSerialize},
    Rule{Status::runtime_fault, "ErrorLaunchTimeOut", "", kSerialize},
    Rule{Status::runtime_fault, "uncorrectable ECC error", "", kHardware},
    Rule{Status::runtime_fault, "has fallen off the bus", "", kHardware},
    Rule{Status::runtime_fault, "NVRM: Xid", "", kHardware},
    Rule{Status::runtime_fault, " ring ", " timeout, signaled", kHardware},
    Rule{Status::runtime_fault, "GPU Hang", "", kHardware},
    Rule{Status::runtime_fault, "amdgpu", "page fault", kSerialize},
    Rule{Status::runtime_fault, "Memory access fault by GPU", "", kSerialize},
    Rule{Status::runtime_fault, "HSA_STATUS_ERROR", "", kSerialize},
    Rule{Status::runtime_fault, "Device::callbackQueue aborting", "", kSerialize},
    Rule{Status::runtime_fault, "UR_RESULT_ERROR_DEVICE_LOST", "", kHardware},
    Rule{Status::runtime_fault, "miopenStatusInternalError", "", kMiopen},
    Rule{Status::runtime_fault, "miopenStatusUnknownError", "", kMiopen},
    Rule{Status::runtime_fault, "MIOpen Error", "", kMiopen},
    Rule{Status::runtime_fault, "CUDNN_STATUS_EXECUTION_FAILED", "", kSerialize},
    Rule{Status::runtime_fault, "CUDNN_STATUS_INTERNAL_ERROR", "", kSerialize},
    Rule{Status::runtime_fault, "CUDNN_STATUS_MAPPING_ERROR", "", kSerialize},
    Rule{Status::runtime_fault, "CUBLAS_STATUS_EXECUTION_FAILED", "", kSerialize},
    Rule{Status::runtime_fault, "CUBLAS_STATUS_INTERNAL_ERROR", "", kSerialize},
    Rule{Status::runtime_fault, "HIPBLAS_STATUS_INTERNAL_ERROR", "", kSerialize},
    Rule{Status::runtime_fault, "rocblas_status_internal_error", "", kSerialize},

    Rule{Status::oom_suspect, "BLAS_STATUS_ALLOC_FAILED", "", kSuspect},
    Rule{Status::oom_suspect, "BLAS_STATUS_NOT_INITIALIZED", "", kSuspect},
    Rule{Status::oom_suspect, "rocblas_status_memory_error", "", kSuspect},
    Rule{Status::oom_suspect, "CUDNN_STATUS_ALLOC_FAILED", "", kSuspect},
    Rule{Status::oom_suspect, "CUDNN_STATUS_NOT_INITIALIZED", "", kSuspect},
    Rule{Status::oom_suspect, "CUDNN_STATUS_NOT_SUPPORTED", "", kSuspect},
    Rule{Status::oom_suspect, "UR_RESULT_ERROR_OUT_OF_RESOURCES", "", kSuspect},

    Rule{Status::runtime_fault, "UR_RESULT_ERROR_UNKNOWN", "", kHardware},
    Rule{Status::runtime_fault, "unhandled cuda error", "", kNccl},
    Rule{Status::runtime_fault, "unhandled system error", "", kNccl},
    Rule{Status::runtime_fault, "NCCL error", "", kNccl},
    Rule{Status::runtime_fault, "NCCL Error", "", kNccl},
    Rule{Status::runtime_fault, "AcceleratorError", "", kSerialize},
    Rule{Status::runtime_fault, "egmentation fault", "", "see the C stack: python -X faulthandler"},
    Rule{Status::runtime_fault, "segfault at", "", "see the C stack: python -X faulthandler"},
    Rule{Status::runtime_fault, "double free or corruption", "", "see the C stack: python -X faulthandler"},
    Rule{Status::runtime_fault, "malloc(): ", "", "see the C stack: python -X faulthandler"},

    Rule{Status::worker_died, "DataLoader worker", "exited unexpectedly", kZeroWorkers},
    Rule{Status::worker_died, "Pin memory thread exited unexpectedly", "", kNoPin},
};

// What libc's strsignal and PyTorch's handlers call them.
struct SignalWords {
  std::string_view words, signal;
};
constexpr SignalWords kSignals[] = {
    {"Killed", "SIGKILL"},
    {"Segmentation fault", "SIGSEGV"},
    {"segmentation fault", "SIGSEGV"},
    {"Bus error", "SIGBUS"},
    {"bus error", "SIGBUS"},
    {"Aborted", "SIGABRT"},
    {"Terminated", "SIGTERM"},
    {"Hangup", "SIGHUP"},
    {"Interrupt", "SIGINT"},
    {"Floating point exception", "SIGFPE"},
    {"floating-point exception", "SIGFPE"},
    {"Illegal instruction", "SIGILL"},
};

bool contains(std::string_view text, std::string_view words) noexcept {
  return text.find(words) != std::string_view::npos;
}

bool is_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// "MemoryError" as a word of its own, not the end of "OutOfMemoryError".
bool names_memory_error(std::string_view line) noexcept {
  const std::size_t at = line.find("MemoryError");
  return at != std::string_view::npos && (at == 0 || !is_letter(line[at - 1]));
}

// What a program prints with every failure is no finding.
bool is_hint(std::string_view line) noexcept {
  return contains(line, "If you encounter ");
}

template <typename Use>
void for_each_line(std::string_view text, Use use) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    if (end > at) use(text.substr(at, end - at));
    at = end + 1;
  }
}

// "203.49 GiB" and what follows.
std::optional<double> bytes_in(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  double number = 0;
  const auto [after, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{}) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(after - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  if (unit.starts_with("bytes")) return number;
  if (unit.starts_with("KiB")) return number * 1024;
  if (unit.starts_with("MiB")) return number * 1024 * 1024;
  if (unit.starts_with("GiB")) return number * 1024 * 1024 * 1024;
  return std::nullopt;
}

std::optional<double> bytes_after(std::string_view text, std::string_view words) noexcept {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  return bytes_in(text.substr(at + words.size()));
}

std::optional<double> bytes_before(std::string_view text, std::string_view words) noexcept {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t begin = at;  // back over "203.49 GiB"
  for (int spaces = 0; begin > 0; --begin) {
    const char c = text[begin - 1];
    if (c == ' ' && ++spaces == 2) break;
    if (c != ' ' && c != '.' && !is_letter(c) && (c < '0' || c > '9')) break;
  }
  return bytes_in(text.substr(begin, at - begin));
}

// "Process 4711 has 3.1 GiB memory in use", which is somebody else.
bool names_another_process(std::string_view text) noexcept {
  for (std::size_t at = text.find("Process "); at != std::string_view::npos; at = text.find("Process ", at + 1)) {
    const std::string_view rest = text.substr(at + 8, 40);
    if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9' && contains(rest, " has ")) return true;
  }
  return false;
}

}  // namespace

std::optional<TextMatch> match_failure(std::string_view text) {
  std::size_t best = kRules.size();
  std::string_view line_of_best;
  constexpr std::size_t kFirstHost = 10;
  static_assert(kRules[kFirstHost].status == Status::oom_host && kRules[kFirstHost - 1].status == Status::oom_shm);
  for_each_line(text, [&](std::string_view line) {
    if (is_hint(line)) return;
    // Of lines that tell as much the last: a traceback shows the source before the message.
    for (std::size_t i = 0; i < kRules.size() && i <= best; ++i) {
      if (contains(line, kRules[i].words) && contains(line, kRules[i].also)) {
        best = i;
        line_of_best = line;
      }
    }
    if (best >= kFirstHost && names_memory_error(line)) {
      best = kFirstHost;
      line_of_best = line;
    }
  });
  if (best == kRules.size()) return std::nullopt;
  TextMatch match{
      .status = kRules[best].status, .kind = {}, .line = one_line(line_of_best), .remedy = kRules[best].remedy};
  if (match.status == Status::worker_died) {
    for (const auto& [words, signal] : kSignals) {
      if (match.kind.empty() && contains(line_of_best, words)) match.kind = signal;
    }
  }
  return match;
}

std::string_view kind_of_oom(std::string_view text) {
  const std::size_t begin = text.find("ried to allocate");
  if (begin == std::string_view::npos) return "";
  text = text.substr(begin);
  const std::optional<double> tried = bytes_after(text, "ried to allocate");
  if (!tried) return "";
  if (bytes_before(text, " allowed")) return "capped";
  std::optional<double> free = bytes_before(text, " is free");
  if (!free) free = bytes_before(text, " free;");
  if (free && *free >= 2 * *tried) return "unexplained";
  if (names_another_process(text)) return "shared";
  std::optional<double> unused = bytes_before(text, " is reserved by PyTorch but unallocated");
  if (!unused) {  // before PyTorch 2.1: "8.77 GiB already allocated; ...; 13.71 GiB reserved in total by PyTorch"
    const std::optional<double> reserved = bytes_before(text, " reserved in total");
    const std::optional<double> allocated = bytes_before(text, " already allocated");
    if (reserved && allocated) unused = *reserved - *allocated;
  }
  if (unused && *unused >= *tried) return "fragmented";
  return "";
}

std::string_view remedy_of(Status status, std::string_view kind) noexcept {
  if (status == Status::oom_host) return kLessHost;
  if (status == Status::oom_shm) return kMoreShm;
  if (status == Status::oom_fd) return kMoreFiles;
  if (status == Status::oom_suspect) return kSuspect;
  if (status != Status::oom_device) return "";
  if (kind == "capped") return "a limit was set for this process (such as set_per_process_memory_fraction): raise it";
  if (kind == "unexplained") return "enough was free: a refusal of driver or allocator, not capacity; try it again";
  if (kind == "shared") return "another process holds memory of the device: end it, or choose another device";
  if (kind == "fragmented")
    return "try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (ROCm: PYTORCH_HIP_ALLOC_CONF)";
  return kLessDevice;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!is_space) {
      line += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
    if (line.size() > 600) break;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return as_utf8(line, line.size() > 300 ? 297 : 300);
}

std::string last_line(std::string_view text) {
  std::string_view last;
  for_each_line(text, [&](std::string_view line) {
    if (line.find_first_not_of(" \t^~") != std::string_view::npos) last = line;
  });
  return one_line(last);
}

}  // namespace stoker::tune
