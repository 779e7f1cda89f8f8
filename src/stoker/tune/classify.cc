#include "stoker/tune/classify.h"

#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/tune/failure_text.h"

namespace stoker::tune {
namespace {

constexpr std::uint64_t kAlmostNone = 256 * kMiB;  // free on the device: what a library's own workspace needs
constexpr std::uint64_t kPlenty = 4 * kGiB;

std::string less_host() {
  return std::string(remedy_of(Status::oom_host));
}

std::string_view signal_name(int signal) noexcept {
  switch (signal) {
    case SIGKILL:
      return "SIGKILL";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGABRT:
      return "SIGABRT";
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "a signal";
  }
}

bool is_deadly(int signal) noexcept {
  return signal == SIGKILL || signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGTERM ||
         signal == SIGFPE || signal == SIGILL;
}

// The signal that ended it: itself, as a shell tells it of its child (128 + n), or as Python's exit(-n) does (256 - n).
int signal_of(const os::Ended& ended) noexcept {
  if (ended.signal != 0) return ended.signal;
  if (ended.code > 128 && is_deadly(ended.code - 128)) return ended.code - 128;
  if (ended.code > 128 && is_deadly(256 - ended.code)) return 256 - ended.code;
  return 0;
}

Failure failure_of(const TextMatch& match, std::string_view text) {
  Failure failure{.status = match.status, .kind = match.kind, .cause = match.line, .remedy = std::string(match.remedy)};
  if (match.status == Status::oom_device) {
    failure.kind = kind_of_oom(text);
    if (!failure.kind.empty()) failure.remedy = std::string(remedy_of(Status::oom_device, failure.kind));
  }
  return failure;
}

// Words that may or may not mean memory: decided by what was free on the device.
void decide_suspect(Failure& failure, const Evidence& evidence) {
  if (failure.status != Status::oom_suspect || !evidence.device_free_bytes) return;
  const std::uint64_t free = *evidence.device_free_bytes;
  if (free > kAlmostNone && free < kPlenty) return;
  failure.status = free <= kAlmostNone ? Status::oom_device : Status::runtime_fault;
  failure.cause += fmt::format(" ({} were free on the device)", format_bytes(free));
  failure.remedy = free <= kAlmostNone
                       ? std::string(remedy_of(Status::oom_device))
                       : "not memory: enough was free; do the versions of driver and libraries fit each other?";
}

// A worker whose own death is told by the kernel or by another line.
void explain_worker(Failure& failure, const Evidence& evidence) {
  if (failure.status != Status::worker_died) return;
  if (evidence.cgroup_oom_kills > 0 && (failure.kind.empty() || failure.kind == "SIGKILL")) {
    failure.status = Status::oom_host;
    failure.kind.clear();
    failure.cause += fmt::format(" (the memory cgroup killed {})", evidence.cgroup_oom_kills);
    failure.remedy = less_host();
    return;
  }
  if (!failure.kind.empty()) return;
  if (const std::optional<TextMatch> other = match_failure(evidence.stderr_tail)) {
    if (other->status != Status::worker_died || !other->kind.empty())
      failure = failure_of(*other, evidence.stderr_tail);
  }
}

Failure decided(Failure failure, const Evidence& evidence) {
  explain_worker(failure, evidence);
  decide_suspect(failure, evidence);
  return failure;
}

Failure from_our_kill(OurKill kill) {
  switch (kill) {
    case OurKill::deadline:
      return {Status::hang, "", "stopped at its deadline", "allow more time for a trial, or fewer steps"};
    case OurKill::heartbeat:
      return {Status::hang, "", "stopped: no sign of life", "see the stacks in the trial's stderr"};
    case OurKill::memory:
    case OurKill::none:
      break;
  }
  return {Status::oom_host, "capped", "stopped before it passed the memory limit", less_host()};
}

Failure from_signal(int signal, const Evidence& evidence) {
  const std::string what = fmt::format("ended by {}", signal_name(signal));
  const std::optional<TextMatch> match = match_failure(evidence.stderr_tail);
  switch (signal) {
    case SIGKILL:
      if (evidence.cgroup_oom_kills > 0) {
        return {Status::oom_host, "", fmt::format("{}: the memory cgroup killed {}", what, evidence.cgroup_oom_kills),
                less_host()};
      }
      return {Status::killed_unknown, "", what + ", not by Stoker and not by the memory cgroup",
              "ask who else may end it: a scheduler, systemd-oomd, a person"};
    case SIGBUS:
      return {Status::oom_shm, "", what + ": a page of shared memory or of a mapped file could not be had",
              std::string(remedy_of(Status::oom_shm))};
    case SIGABRT:
      if (match) return decided(failure_of(*match, evidence.stderr_tail), evidence);
      [[fallthrough]];
    case SIGSEGV:
    case SIGILL:
    case SIGFPE: {
      Failure failure{Status::runtime_fault, "", what, "see the C stack: python -X faulthandler"};
      if (match && match->status == Status::runtime_fault) failure = failure_of(*match, evidence.stderr_tail);
      return failure;
    }
    default:
      return {Status::killed_unknown, "", what + ", not by Stoker", "ask who else may end it: a scheduler, a person"};
  }
}

constexpr std::string_view kOwnError = "stoker";  // the type that `stoker load` reports

bool ends_with_name(std::string_view type, std::string_view name) noexcept {
  return type == name ||
         (type.size() > name.size() && type.ends_with(name) && type[type.size() - name.size() - 1] == '.');
}

Failure from_exception(const Evidence& evidence) {
  const std::string_view type = evidence.exception_type;
  const std::string whole = fmt::format("{}: {}", type, evidence.exception_text);
  const std::string told = evidence.exception_place.empty()
                               ? one_line(whole)
                               : fmt::format("{} ({})", one_line(whole), evidence.exception_place);
  // Our loader says which of its options cannot be as it is.
  if (type == kOwnError && evidence.exception_option == "memory_limit")
    return {Status::oom_host, "", one_line(evidence.exception_text), less_host()};
  if (type == kOwnError) return {Status::user_error, "", one_line(evidence.exception_text), ""};
  if (evidence.at_import && !ends_with_name(type, "MemoryError")) return {Status::user_error, "", told, ""};
  if (std::optional<TextMatch> match = match_failure(whole)) {
    // An exception of one's own that quotes words of ours is still of the status that the type says.
    if (ends_with_name(type, "MemoryError")) match->status = Status::oom_host;
    return decided(failure_of(*match, evidence.exception_text), evidence);
  }
  if (ends_with_name(type, "DistBackendError"))
    return {Status::runtime_fault, "", one_line(whole), "NCCL_DEBUG=INFO tells more"};
  return {Status::user_error, "", told, ""};
}

}  // namespace

std::optional<Failure> classify(const Evidence& evidence) {
  if (evidence.our_kill != OurKill::none) return from_our_kill(evidence.our_kill);
  const bool ended_well = evidence.ended.is_success();
  if (ended_well && evidence.reported_done) return std::nullopt;
  // A process that could still tell its exception tells more than the signal of its clean-up.
  const int signal = signal_of(evidence.ended);
  if (signal == SIGKILL || (signal != 0 && evidence.exception_type.empty())) return from_signal(signal, evidence);
  if (!evidence.exception_type.empty()) return from_exception(evidence);
  if (const std::optional<TextMatch> match = match_failure(evidence.stderr_tail)) {
    return decided(failure_of(*match, evidence.stderr_tail), evidence);
  }
  if (evidence.cgroup_oom_kills > 0) {
    return Failure{Status::oom_host, "",
                   fmt::format("the memory cgroup killed {} of its processes", evidence.cgroup_oom_kills), less_host()};
  }
  if (ended_well) {
    return Failure{Status::user_error, "", "ended with code 0 but never said that it was done",
                   "does it run enough steps, and through the loader that is measured?"};
  }
  // Our own program says what is wrong, then what to do about it.
  if (const std::size_t at = evidence.stderr_tail.rfind("error: "); at != std::string::npos) {
    if (evidence.stderr_tail.find("\nhint: ", at) != std::string::npos) {
      std::string said = evidence.stderr_tail.substr(at + 7);
      said.resize(std::min(said.find('\n'), said.size()));
      return Failure{Status::user_error, "", one_line(said), ""};
    }
  }
  const std::string last = last_line(evidence.stderr_tail);
  const std::string code = fmt::format("ended with code {}", evidence.ended.code);
  return Failure{Status::user_error, "", last.empty() ? code + " and wrote nothing to stderr" : last, ""};
}

Failure classify_text(std::string_view error) {
  if (const std::optional<TextMatch> match = match_failure(error)) return failure_of(*match, error);
  const std::string last = last_line(error);
  if (last.empty()) return {Status::killed_unknown, "", "no word of why", ""};
  return {Status::user_error, "", last, ""};
}

}  // namespace stoker::tune
