#include "stoker/measure/accelerator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "stoker/os/cgroup.h"
#include "stoker/os/library.h"

namespace stoker::measure {
namespace {

std::optional<std::uint64_t> number_in(const std::string& path) {
  const auto text = os::read_small_file(path);
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const auto [after, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  return code == std::errc{} ? std::optional(number) : std::nullopt;
}

}  // namespace

// The functions of nvml.h that are used; all return 0 where they succeed.
struct Accelerators::Nvml {
  struct Utilization {
    unsigned gpu, memory;
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  using Device = void*;

  ~Nvml() {
    if (shutdown != nullptr && started) shutdown();
  }

  os::Library library;
  bool started = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  std::vector<Device> devices;

  template <class Function>
  void find(Function& function, const char* symbol) {
    function = library.find<Function>(symbol);
  }
};

Accelerators::Accelerators(const std::string& library, const std::string& root) {
  auto nvml = std::make_unique<Nvml>();
  nvml->library = os::Library(library.c_str());
  if (nvml->library) {
    nvml->find(nvml->init, "nvmlInit_v2");
    nvml->find(nvml->shutdown, "nvmlShutdown");
    nvml->find(nvml->device_count, "nvmlDeviceGetCount_v2");
    nvml->find(nvml->device, "nvmlDeviceGetHandleByIndex_v2");
    nvml->find(nvml->name, "nvmlDeviceGetName");
    nvml->find(nvml->utilization, "nvmlDeviceGetUtilizationRates");
    nvml->find(nvml->memory, "nvmlDeviceGetMemoryInfo");
    unsigned count = 0;
    if (nvml->init != nullptr && nvml->device_count != nullptr && nvml->device != nullptr && nvml->init() == 0) {
      nvml->started = true;
      if (nvml->device_count(&count) == 0) {
        for (unsigned i = 0; i < count; ++i) {
          Nvml::Device device = nullptr;
          if (nvml->device(i, &device) == 0) nvml->devices.push_back(device);
        }
      }
      nvml_ = std::move(nvml);
    }
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(os::under(root, "sys/class/drm"), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("card") || name.find('-') != std::string::npos) continue;  // card0-HDMI-A-1 is a plug
    const std::string device = entry.path().string() + "/device";
    if (os::read_small_file(device + "/gpu_busy_percent")) amd_.push_back(device);
  }
  std::sort(amd_.begin(), amd_.end());
}

Accelerators::~Accelerators() = default;

std::size_t Accelerators::count() const noexcept {
  return (nvml_ ? nvml_->devices.size() : 0) + amd_.size();
}

std::vector<AcceleratorReading> Accelerators::read() const {
  std::vector<AcceleratorReading> readings;
  if (nvml_) {
    for (const Nvml::Device device : nvml_->devices) {
      AcceleratorReading reading;
      std::array<char, 97> name{};
      if (nvml_->name != nullptr && nvml_->name(device, name.data(), 96) == 0) reading.name = name.data();
      Nvml::Utilization utilization{};
      if (nvml_->utilization != nullptr && nvml_->utilization(device, &utilization) == 0)
        reading.busy = utilization.gpu / 100.0;
      Nvml::Memory memory{};
      if (nvml_->memory != nullptr && nvml_->memory(device, &memory) == 0) {
        reading.memory_used_bytes = memory.used;
        reading.memory_total_bytes = memory.total;
      }
      readings.push_back(std::move(reading));
    }
  }
  for (const std::string& device : amd_) {
    AcceleratorReading reading;
    reading.name = os::read_small_file(device + "/product_name").value_or("AMD");
    if (const auto busy = number_in(device + "/gpu_busy_percent")) reading.busy = static_cast<double>(*busy) / 100;
    reading.memory_used_bytes = number_in(device + "/mem_info_vram_used");
    reading.memory_total_bytes = number_in(device + "/mem_info_vram_total");
    readings.push_back(std::move(reading));
  }
  return readings;
}

std::size_t swings(const std::vector<double>& busy) noexcept {
  std::size_t count = 0;
  bool full = false;
  for (const double value : busy) {
    if (value >= 0.9) {
      full = true;
    } else if (value <= 0.1 && full) {
      full = false;
      ++count;
    }
  }
  return count;
}

}  // namespace stoker::measure
