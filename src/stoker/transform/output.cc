#include "stoker/transform/output.h"

#include <fmt/format.h>

namespace stoker::transform {

std::string describe(const std::string& words, const Output& output, std::string_view layout) {
  std::string shape;
  for (std::size_t i = 0; i < output.shape.size(); ++i) {
    const bool open = output.varies && i + 1 == output.shape.size();
    shape += (i == 0 ? "" : ", ") + (open ? std::string("frames") : fmt::format("{}", output.shape[i]));
  }
  return fmt::format("{}{}{}{} [{}]", words, words.empty() ? "" : " -> ", name(output.dtype), layout, shape);
}

}  // namespace stoker::transform
