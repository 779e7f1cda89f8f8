// What a batch takes on the accelerator: a straight line through measured batches, a vision transformer's formulas, or
// a model that was traced. Predicted and observed stand side by side. Pure arithmetic; from any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"

namespace stoker::plan {

// A vision transformer. In a DINO run (`outputs` above 0) a student sees all views of an image, and a teacher, which is
// a frozen copy, the large ones.
struct Vit {
  double dim = 0, depth = 0, heads = 0, patch = 0, img = 224;
  double large_views = 1, small_views = 0, small_img = 96, outputs = 0;

  bool is_dino() const noexcept { return outputs > 0; }
  double tokens() const noexcept { return tokens_of(img); }  // patches and the class token
  double tokens_of(double side) const noexcept;
  double parameters() const noexcept;  // without a head; of DINO with its projection, of one of the two networks
  // Per image; training takes three times that, four with checkpointing. Of DINO: all views, and a third of what the
  // teacher takes, which has no backward pass.
  double forward_flops() const noexcept;
};
// "vit:dim=1024,depth=24,heads=16,patch=14,img=224", or "vit:large,img=224": tiny, small, base, large, huge, giant,
// which the rest changes. "dino:large,img=224,large_views=2,small_views=8,small=96,outputs=65536" is a DINO run, with
// these defaults. Throws Error(usage).
Vit parse_vit(std::string_view text);

struct Training {
  bool half = true;            // bf16 or fp16 activations; else float32
  bool checkpointing = false;  // of every layer
  bool flash = true;           // attention that keeps no matrix of tokens by tokens
  bool sgd = false;            // momentum instead of Adam
  bool teacher = false;        // a frozen copy, as in DINO, which has it always
};

struct MemoryLine {
  double fixed_bytes = 0, bytes_per_image = 0;
  std::string basis = {};  // "fitted to 5 batches", "model", "traced"
  double floor_bytes = 0;  // the optimizer's step takes that much with any batch size

  double at(double batch) const noexcept { return std::max(floor_bytes, fixed_bytes + bytes_per_image * batch); }
};

// A part of what a batch takes. Gradients come while activations go, so the peak is less than the sum of all.
struct MemoryPart {
  std::string name = {};
  double fixed_bytes = 0, bytes_per_image = 0;

  double at(double batch) const noexcept { return fixed_bytes + bytes_per_image * batch; }
};

// What python/stoker/model_memory.py found of any model.
struct TracedModel {
  double parameters = 0, forward_flops = 0;  // of one image
  double img = 224;
  MemoryLine line = {};
  std::vector<MemoryPart> parts = {};
};
TracedModel traced_of(const Json& json);  // throws Error(corrupt)

struct MemoryPoint {
  double batch = 0;
  std::optional<double> observed_bytes = {};  // none: it failed, or it was not measured
  bool out_of_memory = false;
};

MemoryLine memory_line(const Vit& vit, const Training& training);
std::vector<MemoryPart> memory_parts(const Vit& vit, const Training& training);
// Least squares. None for fewer than two different batches, or where memory does not grow with the batch.
std::optional<MemoryLine> fit_line(std::span<const MemoryPoint> points);
// The largest batch whose prediction leaves `margin` of the limit free; 0: not even one image.
std::uint64_t largest_batch(const MemoryLine& line, double limit_bytes, double margin = 0.08);

inline constexpr double kUnexplained = 1.5;  // times the prediction

struct Compared {
  MemoryPoint point;
  double predicted_bytes = 0;
  std::optional<double> ratio = {};  // observed to predicted; out of memory: the limit to predicted
  bool unexplained = false;
};
std::vector<Compared> compare(const MemoryLine& line, std::span<const MemoryPoint> points,
                              std::optional<double> limit_bytes);

}  // namespace stoker::plan
