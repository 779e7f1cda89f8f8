#include "stoker/feed/workload.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::feed {
namespace {

constexpr std::array kWorkloads = {
    Workload{"resnet50-h100", 400, 224, 0.90}, Workload{"resnet50-a100", 400, 435, 0.90},
    Workload{"unet3d-h100", 7, 323, 0.90},     Workload{"unet3d-a100", 7, 636, 0.90},
    Workload{"cosmoflow-h100", 1, 3.50, 0.70}, Workload{"cosmoflow-a100", 1, 5.51, 0.70},
};

}  // namespace

std::span<const Workload> workloads() {
  return kWorkloads;
}

const Workload& find_workload(const std::string& name) {
  std::vector<std::string_view> names;
  std::string list;
  for (const Workload& workload : kWorkloads) {
    if (workload.name == name) return workload;
    names.push_back(workload.name);
    list += fmt::format("{}{}", list.empty() ? "" : ", ", workload.name);
  }
  const std::string near = nearest(name, names.data(), names.size());
  throw Error(ErrorKind::usage, fmt::format("there is no workload `{}`", name),
              near.empty() ? fmt::format("the workloads are: {}", list) : fmt::format("did you mean `{}`?", near));
}

}  // namespace stoker::feed
