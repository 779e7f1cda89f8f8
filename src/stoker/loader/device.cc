#include "stoker/loader/device.h"

#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "stoker/os/library.h"

namespace stoker::loader {
namespace {

std::mutex provider_mutex;
std::function<void*()>& provider() {
  static std::function<void*()> f;
  return f;
}

constexpr unsigned kDisableTiming = 2;     // cudaEventDisableTiming, hipEventDisableTiming
constexpr unsigned kRegisterPortable = 1;  // cudaHostRegisterPortable, hipHostRegisterPortable

}  // namespace

// CUDA's and HIP's runtime calls have the same shapes; 0 is success in both.
struct DeviceRuntime::Calls {
  int (*device_count)(int*) = nullptr;
  int (*host_register)(void*, std::size_t, unsigned) = nullptr;
  int (*host_unregister)(void*) = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*event_destroy)(void*) = nullptr;
};

std::shared_ptr<DeviceRuntime> DeviceRuntime::find(std::string* why) {
  struct Candidate {
    const char* file;
    const char* prefix;
  };
  constexpr std::array<Candidate, 6> known = {{{"libcudart.so", "cuda"},
                                               {"libcudart.so.13", "cuda"},
                                               {"libcudart.so.12", "cuda"},
                                               {"libcudart.so.11.0", "cuda"},
                                               {"libamdhip64.so", "hip"},
                                               {"libamdhip64.so.6", "hip"}}};
  std::string problem = "no CUDA or HIP runtime library was found";
  const auto try_one = [&](const char* file, const char* prefix) -> std::shared_ptr<DeviceRuntime> {
    os::Library library(file);
    if (!library) return nullptr;
    auto calls = std::make_unique<Calls>();
    bool complete = true;
    const auto bind = [&](auto& function, const char* name) {
      using Function = std::remove_reference_t<decltype(function)>;
      function = library.find<Function>((std::string(prefix) + name).c_str());
      complete = complete && function != nullptr;
    };
    bind(calls->device_count, "GetDeviceCount");
    bind(calls->host_register, "HostRegister");
    bind(calls->host_unregister, "HostUnregister");
    bind(calls->event_create, "EventCreateWithFlags");
    bind(calls->event_record, "EventRecord");
    bind(calls->event_query, "EventQuery");
    bind(calls->event_destroy, "EventDestroy");
    int devices = 0;
    if (!complete) {
      problem = std::string(file) + " lacks a call that pinning needs";
    } else if (calls->device_count(&devices) != 0 || devices == 0) {
      problem = std::string(file) + " sees no device";
    } else {
      std::shared_ptr<DeviceRuntime> runtime(new DeviceRuntime);
      runtime->calls_ = std::move(calls);
      runtime->name_ = file;
      library.keep_loaded();  // the framework uses it too
      return runtime;
    }
    return nullptr;
  };
  if (const char* path = std::getenv("STOKER_DEVICE_RUNTIME"); path != nullptr && *path != '\0') {
    for (const char* prefix : {"cuda", "hip"}) {
      if (auto runtime = try_one(path, prefix)) return runtime;
    }
  } else {
    for (const Candidate& candidate : known) {
      if (auto runtime = try_one(candidate.file, candidate.prefix)) return runtime;
    }
  }
  if (why != nullptr) *why = problem;
  return nullptr;
}

DeviceRuntime::~DeviceRuntime() = default;

bool DeviceRuntime::pin(void* data, std::size_t bytes) noexcept {
  return calls_->host_register(data, bytes, kRegisterPortable) == 0;
}

void DeviceRuntime::unpin(void* data) noexcept {
  calls_->host_unregister(data);
}

void* DeviceRuntime::record_event() noexcept {
  void* stream = nullptr;
  try {
    const std::scoped_lock lock(provider_mutex);
    if (provider()) stream = provider()();
  } catch (...) {
    stream = nullptr;
  }
  void* event = nullptr;
  if (calls_->event_create(&event, kDisableTiming) != 0) return nullptr;
  if (calls_->event_record(event, stream) != 0) {
    calls_->event_destroy(event);
    return nullptr;
  }
  return event;
}

bool DeviceRuntime::is_done(void* event) noexcept {
  return calls_->event_query(event) == 0;
}

void DeviceRuntime::destroy_event(void* event) noexcept {
  calls_->event_destroy(event);
}

void DeviceRuntime::set_stream_provider(std::function<void*()> f) {
  const std::scoped_lock lock(provider_mutex);
  provider() = std::move(f);
}

}  // namespace stoker::loader
