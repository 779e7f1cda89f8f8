#include <string>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/dataset/dataset.h"
#include "stoker/os/file.h"

namespace stoker::dataset {
void write_subset_json(const Dataset& dataset, std::uint64_t seed, const std::string& path) {
  std::string out = fmt::format("{{\n\"seed\": {},\n\"count\": {},\n\"ids\": [", seed, dataset.size());
  for (std::uint64_t i = 0; i < dataset.size(); ++i) out += fmt::format("{}\n{}", i == 0 ? "" : ",", dataset.id(i));
  out += "\n],\n\"paths\": [";
  for (std::uint64_t i = 0; i < dataset.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    out += Json(dataset.name(i)).dump();
  }
  out += "\n]\n}\n";
  os::write_file(path, out);
}

}  // namespace stoker::dataset
