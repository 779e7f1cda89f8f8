// Pinned memory and device events, by a runtime found at run time (libcudart, libamdhip64): nothing is linked.
// Never run on real hardware so far; tested with a stand-in library that delays its events.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace stoker::loader {

class DeviceRuntime {
 public:
  // The runtime named by STOKER_DEVICE_RUNTIME (a path), else the first of libcudart and libamdhip64 that loads and has
  // a device. Null where there is none; `why` then says so.
  static std::shared_ptr<DeviceRuntime> find(std::string* why = nullptr);
  ~DeviceRuntime();
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;

  const std::string& name() const noexcept { return name_; }
  bool pin(void* data, std::size_t bytes) noexcept;  // page-locks; false if the runtime refuses
  void unpin(void* data) noexcept;

  // Work that the consumer has queued so far on its current stream. Null if the event cannot be had.
  void* record_event() noexcept;
  bool is_done(void* event) noexcept;
  void destroy_event(void* event) noexcept;

  // Who knows the consumer's current stream (the Python face asks torch). Not set: the default stream.
  static void set_stream_provider(std::function<void*()> provider);

 private:
  DeviceRuntime() = default;
  struct Calls;
  std::unique_ptr<Calls> calls_;
  std::string name_;
};

}  // namespace stoker::loader
