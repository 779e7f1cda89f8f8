#include "stoker/plan/device_memory.h"

#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"

namespace stoker::plan {
namespace {

struct Named {
  std::string_view name;
  Vit vit;
};
constexpr Named kNamed[] = {{"tiny", {192, 12, 3, 16}},    {"small", {384, 12, 6, 16}},  {"base", {768, 12, 12, 16}},
                            {"large", {1024, 24, 16, 14}}, {"huge", {1280, 32, 16, 14}}, {"giant", {1536, 40, 24, 14}}};

const Named* find_named(std::string_view name) {
  for (const Named& one : kNamed) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

double* dino_field(Vit& vit, std::string_view key) {
  return key == "large_views"   ? &vit.large_views
         : key == "small_views" ? &vit.small_views
         : key == "small"       ? &vit.small_img
         : key == "outputs"     ? &vit.outputs
                                : nullptr;
}

// Bytes of what the loss of DINO keeps for one image: a log-softmax in float32 for each pair of different views, and
// the outputs of both networks.
double loss_bytes(const Vit& vit) {
  const double views = vit.large_views + vit.small_views, pairs = vit.large_views * (views - 1);
  return vit.is_dino() ? 4 * vit.outputs * (pairs + views + 2 * vit.large_views) : 0;
}

}  // namespace

double Vit::tokens_of(double side) const noexcept {
  return std::pow(std::floor(side / patch), 2) + 1;
}

double Vit::parameters() const noexcept {
  const double backbone =
      depth * (12 * dim * dim + 13 * dim) + 3 * patch * patch * dim + dim + (tokens() + 1) * dim + 2 * dim;
  if (!is_dino()) return backbone;
  const double hidden = std::min(2048.0, 2 * dim), narrow = std::min(256.0, dim);  // as stoker.targets:dino
  return backbone + (dim + 1) * hidden + (hidden + 1) * hidden + (hidden + 1) * narrow + narrow * outputs;
}

double Vit::forward_flops() const noexcept {
  const auto of_view = [&](double side) {
    const double s = tokens_of(side);
    return depth * (24 * s * dim * dim + 4 * s * s * dim) + 2 * (s - 1) * 3 * patch * patch * dim;
  };
  if (!is_dino()) return of_view(img);
  return (1 + 1.0 / 3) * large_views * of_view(img) + small_views * of_view(small_img);
}

Vit parse_vit(std::string_view text) {
  constexpr std::string_view example = "write it like vit:dim=1024,depth=24,heads=16,patch=14,img=224, or vit:large";
  const auto refuse = [&](const std::string& why) -> Error {
    return Error(ErrorKind::usage, fmt::format("cannot read the model `{}`: {}", text, why), std::string(example));
  };
  const bool is_dino = text.starts_with("dino:");
  if (!text.starts_with("vit:") && !is_dino) throw refuse("it is neither vit: nor dino: nor a model that was traced");
  Vit vit;
  if (is_dino) vit.large_views = 2, vit.small_views = 8, vit.outputs = 65536;
  std::set<std::string_view> seen;
  const std::size_t first = text.find(':') + 1;
  for (std::size_t at = first; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size()), equals = text.find('=', at);
    if (const Named* const named = at == first ? find_named(text.substr(at, end - at)) : nullptr) {
      vit.dim = named->vit.dim, vit.depth = named->vit.depth, vit.heads = named->vit.heads,
      vit.patch = named->vit.patch;
      at = end + 1;
      continue;
    }
    if (equals == std::string_view::npos || equals > end) throw refuse("a part has no `=`");
    const std::string_view key = text.substr(at, equals - at), value = text.substr(equals + 1, end - equals - 1);
    double* const field = key == "dim"     ? &vit.dim
                          : key == "depth" ? &vit.depth
                          : key == "heads" ? &vit.heads
                          : key == "patch" ? &vit.patch
                          : key == "img"   ? &vit.img
                          : !is_dino       ? nullptr
                                           : dino_field(vit, key);
    if (field == nullptr)
      throw refuse(fmt::format("`{}` is none of dim, depth, heads, patch, img{}", key,
                               is_dino ? ", large_views, small_views, small, outputs" : ""));
    unsigned number = 0;
    const auto [after, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code != std::errc{} || after != value.data() + value.size() || (number == 0 && key != "small_views") ||
        number > 1'000'000) {
      throw refuse(fmt::format("{} is `{}`, not a whole number that it can be", key, value));
    }
    if (!seen.insert(key).second) throw refuse(fmt::format("{} is given twice", key));
    *field = number;
    at = end + 1;
  }
  for (const auto& [key, value] : {std::pair("dim", vit.dim), std::pair("depth", vit.depth),
                                   std::pair("heads", vit.heads), std::pair("patch", vit.patch)}) {
    if (value == 0) throw refuse(fmt::format("{} is missing", key));
  }
  if (vit.img < vit.patch || (vit.small_views > 0 && vit.small_img < vit.patch))
    throw refuse("the image is smaller than a patch");
  return vit;
}

// Weights, gradients and Adam's two moments in float32 are 16 bytes a parameter. Activations: Korthikanti et al.,
// "Reducing Activation Recomputation in Large Transformer Models" (2022): 34 bytes per token, channel and layer in half
// precision, and 5 per pair of tokens and head where attention keeps its matrix. Checkpointing keeps each layer's
// input, in float32 because layer norms return that under autocast, and one layer's activations at a time.
MemoryLine memory_line(const Vit& vit, const Training& training) {
  const double n = vit.parameters(), d = vit.dim, layers = vit.depth;
  MemoryLine line{.basis = "model"};
  line.fixed_bytes = (training.sgd ? 12 : 16) * n + (training.teacher || vit.is_dino() ? 4 * n : 0);
  const double width = training.half ? 1 : 2;
  double most = 0;  // of one layer: views of one size go through it together
  for (const auto& [views, side] : {std::pair(vit.large_views, vit.img), std::pair(vit.small_views, vit.small_img)}) {
    if (views <= 0) continue;
    const double s = vit.tokens_of(side);
    const double layer = views * width * (34 * s * d + (training.flash ? 0 : 5 * vit.heads * s * s));
    line.bytes_per_image += training.checkpointing ? views * 4 * s * d * layers : layer * layers;
    most = std::max(most, layer);
  }
  if (training.checkpointing) line.bytes_per_image += most;
  line.bytes_per_image += loss_bytes(vit);
  return line;
}

std::vector<MemoryPart> memory_parts(const Vit& vit, const Training& training) {
  const double n = vit.parameters();
  std::vector<MemoryPart> parts = {
      {"parameters", 4 * n, 0}, {"gradients", 4 * n, 0}, {"optimizer", (training.sgd ? 4 : 8) * n, 0}};
  if (training.teacher || vit.is_dino()) parts.push_back({"teacher", 4 * n, 0});
  parts.push_back({"activations", 0, memory_line(vit, training).bytes_per_image - loss_bytes(vit)});
  if (vit.is_dino()) parts.push_back({"loss", 0, loss_bytes(vit)});
  return parts;
}

TracedModel traced_of(const Json& json) {
  const auto number = [&](const char* key) {
    if (!json[key].is_number())
      throw Error(ErrorKind::corrupt, fmt::format("cannot take a traced model: `{}` is missing", key));
    return json[key].get<double>();
  };
  TracedModel model{.parameters = number("parameter_count"),
                    .forward_flops = number("forward_flops"),
                    .img = number("img_size"),
                    .line = {number("fixed_bytes"), number("bytes_per_image"), "traced"}};
  const double parameters = number("parameters_bytes") + number("buffers_bytes"), gradients = number("gradients_bytes"),
               optimizer = number("optimizer_bytes"), kept = number("activation_bytes_per_image"),
               input = number("input_bytes_per_image");
  model.line.floor_bytes = parameters + gradients + optimizer;
  model.parts = {{"parameters", parameters, 0}, {"gradients", gradients, 0}, {"optimizer", optimizer, 0}};
  // What is left of the fixed part: weights in half precision that the backward pass keeps.
  const double rest = model.line.fixed_bytes - parameters - optimizer;
  model.parts.push_back({"activations", std::max(0.0, rest), kept});
  model.parts.push_back({"input", 0, input});
  if (const double temporary = model.line.bytes_per_image - kept - input; temporary > 0)
    model.parts.push_back({"temporary", 0, temporary});
  return model;
}

std::optional<MemoryLine> fit_line(std::span<const MemoryPoint> points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  std::set<double> batches;
  for (const MemoryPoint& point : points) {
    if (!point.observed_bytes || point.out_of_memory) continue;
    batches.insert(point.batch);
    n += 1, x += point.batch, y += *point.observed_bytes;
    xx += point.batch * point.batch, xy += point.batch * *point.observed_bytes;
  }
  if (batches.size() < 2) return std::nullopt;
  const double slope = (n * xy - x * y) / (n * xx - x * x);
  if (!(slope > 0)) return std::nullopt;
  return MemoryLine{.fixed_bytes = (y - slope * x) / n,
                    .bytes_per_image = slope,
                    .basis = fmt::format("fitted to {} batches", batches.size())};
}

std::uint64_t largest_batch(const MemoryLine& line, double limit_bytes, double margin) {
  const double room = limit_bytes * (1 - margin) - line.fixed_bytes;
  if (room < line.bytes_per_image || line.bytes_per_image <= 0) return 0;
  return static_cast<std::uint64_t>(std::floor(room / line.bytes_per_image * (1 + 1e-12)));
}

std::vector<Compared> compare(const MemoryLine& line, std::span<const MemoryPoint> points,
                              std::optional<double> limit_bytes) {
  std::vector<Compared> all;
  for (const MemoryPoint& point : points) {
    Compared one{.point = point, .predicted_bytes = line.at(point.batch)};
    const std::optional<double> seen = point.out_of_memory ? limit_bytes : point.observed_bytes;
    if (seen && one.predicted_bytes > 0) {
      one.ratio = *seen / one.predicted_bytes;
      // Below the prediction is as little explained as above it, but for a limit, which only has to be reached.
      one.unexplained = *one.ratio > kUnexplained || (!point.out_of_memory && *one.ratio < 1 / kUnexplained);
    }
    all.push_back(one);
  }
  return all;
}

}  // namespace stoker::plan
