// Transforms tried on one image, without a loader: what comes out, and what chance decided. Tests compare both with
// other libraries.
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

#include "stoker/loader/options.h"
#include "stoker/transform/action.h"
#include "stoker/transform/image_plan.h"
#include "stoker/transform/ops.h"
#include "stoker/transform/volume_plan.h"

#include "bindings/bindings.h"

namespace stoker::bindings {
namespace {

using Image = nb::ndarray<const std::uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Numpy = nb::ndarray<nb::numpy>;

class ActionList final : public transform::ActionSink {
 public:
  void act(const transform::Action& action) noexcept override { actions.push_back(action); }
  std::vector<transform::Action> actions;
};

nb::dict describe(const transform::Action& action) {
  nb::list figures, fill;
  for (const double figure : action.figures) figures.append(figure);
  for (const float value : action.fill) {
    const auto whole = static_cast<int>(value);  // Pillow takes no fractions for bytes
    value == static_cast<float>(whole) ? fill.append(whole) : fill.append(value);
  }
  static constexpr const char* kFilterWords[] = {"bilinear", "bicubic", "nearest", "box", "lanczos"};
  static constexpr const char* kPaddingWords[] = {"constant", "edge", "reflect", "symmetric"};
  nb::dict out;
  out["what"] = to_str(transform::kActs[static_cast<std::size_t>(action.what)]);
  out["figures"] = figures;
  out["filter"] = kFilterWords[static_cast<std::size_t>(action.filter)];
  out["padding"] = kPaddingWords[static_cast<std::size_t>(action.padding)];
  out["fill"] = fill;
  out["is_random"] = action.is_random;
  return out;
}

template <std::size_t kCount>
nb::list numbers_of(const std::array<double, kCount>& numbers) {
  nb::list out;
  for (const double number : numbers) out.append(number);
  return out;
}

nb::dict describe(const transform::VolumeAction& action) {
  using What = transform::VolumeAction::What;
  if (action.what == What::values) return describe(action.values);
  nb::dict out;
  if (action.what == What::turn) {
    nb::list from, mirrored;
    for (const std::uint8_t axis : action.turn.from) from.append(static_cast<int>(axis));
    for (const bool is_mirrored : action.turn.mirrored) mirrored.append(is_mirrored);
    out["what"] = "turn";
    out["from"] = from;
    out["mirrored"] = mirrored;
    return out;
  }
  out["what"] = "affine";
  out["rotate"] = numbers_of(action.affine.rotate);
  out["shear"] = numbers_of(action.affine.shear);
  out["translate"] = numbers_of(action.affine.translate);
  out["scale"] = numbers_of(action.affine.scale);
  return out;
}

void check(const Result& result) {
  if (!result.ok()) throw Error(ErrorKind::usage, std::string("cannot transform the image: ") + result.cause);
}

nb::list list_actions(const transform::ImagePlan& plan, const transform::Draw& draw) {
  ActionList list;
  check(plan.list_actions(0, draw, list));
  nb::list out;
  for (const transform::Action& action : list.actions) out.append(describe(action));
  return out;
}

transform::ImageInput input_of(std::size_t width, std::size_t height, std::size_t channels, std::uint8_t bits = 8) {
  transform::ImageInput input;
  input.bits = bits;
  input.keeps_bits = bits == 16;
  input.width = static_cast<std::uint32_t>(width), input.height = static_cast<std::uint32_t>(height);
  input.channels = static_cast<std::uint8_t>(channels);
  return input;
}

transform::ImagePlan compile(const std::string& json, std::size_t width, std::size_t height, std::size_t channels,
                             std::uint8_t bits = 8) {
  return transform::ImagePlan::compile(transform::ops_from_json(json), input_of(width, height, channels, bits), {});
}

nb::dlpack::dtype numpy_type(DType type) {
  if (type == DType::f32) return nb::dtype<float>();
  if (type == DType::f16) return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
  return nb::dtype<std::uint8_t>();
}

Numpy applied(const transform::ImagePlan& plan, const transform::Draw& draw, const Image& image) {
  const transform::ImageInput& input = plan.input();
  const Pixels pixels{reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(image.data())),
                      std::size_t{input.width} * input.channels,
                      input.width,
                      input.height,
                      input.channels,
                      DType::u8};
  const transform::Output& output = plan.outputs()[0];
  auto* const bytes = new std::byte[output.view_bytes];
  const nb::capsule owner(bytes, [](void* data) noexcept { delete[] static_cast<std::byte*>(data); });
  Scratch scratch;
  check(plan.apply(0, draw, pixels, {0, 0, input.width, input.height}, {}, bytes, scratch));
  const std::vector<std::size_t> shape(output.shape.begin(), output.shape.end());
  return Numpy(bytes, shape.size(), shape.data(), owner, nullptr, numpy_type(output.dtype));
}

// Operations on one image after another, outside of a loader. Keeps the plan of the last size. One thread calls.
class RowTransform {
 public:
  RowTransform(const std::string& json, const std::string& layout, const std::string& dtype)
      : ops_(transform::ops_from_json(json)), options_{parse_dtype(dtype), loader::parse_layout(layout)} {}

  // `stream` tells the random numbers of these operations from those that the loader draws for the same sample.
  Numpy apply(const Image& image, std::uint64_t seed, std::uint64_t epoch, std::uint64_t id, std::uint32_t stream) {
    const transform::ImageInput input = input_of(image.shape(1), image.shape(0), image.shape(2));
    if (!plan_ || plan_->input().width != input.width || plan_->input().height != input.height ||
        plan_->input().channels != input.channels) {
      plan_ = transform::ImagePlan::compile(ops_, input, options_);
    }
    if (plan_->outputs().size() != 1 || plan_->outputs()[0].views != 1 || !plan_->columns().empty()) {
      throw Error(ErrorKind::usage, "these operations cannot follow a Python callable");
    }
    Random random(seed, epoch, id, stream);
    transform::Draw draw;
    check(plan_->draw(0, input.width, input.height, random, draw));
    return applied(*plan_, draw, image);
  }

 private:
  transform::Ops ops_;
  transform::OutputOptions options_;
  std::optional<transform::ImagePlan> plan_;
};

}  // namespace

void bind_transform(nb::module_& module) {
  module.def(
      "draw_actions",
      [](const std::string& transform, std::size_t width, std::size_t height, std::size_t channels, std::uint64_t seed,
         std::uint64_t id, std::uint8_t bits) {
        const transform::ImagePlan plan = compile(transform, width, height, channels, bits);
        Random random(seed, 0, id, 0);
        transform::Draw draw;
        check(plan.draw(0, plan.input().width, plan.input().height, random, draw));
        return list_actions(plan, draw);
      },
      nb::arg("transform"), nb::kw_only(), nb::arg("width"), nb::arg("height"), nb::arg("channels"), nb::arg("seed"),
      nb::arg("id"), nb::arg("bits") = 8,
      "What chance decides for one image of 8 or 16 bits: a list of actions, as transform/action.h names them.");
  module.def(
      "draw_volume_actions",
      [](const std::string& transform, const std::array<std::uint32_t, 3>& patch, std::uint64_t seed,
         std::uint64_t epoch, std::uint64_t id) {
        transform::VolumeInput input;
        input.patch = patch;
        input.image.channels = 1;
        const auto plan = transform::VolumePlan::compile(transform::ops_from_json(transform), input);
        nb::list out;
        for (const transform::VolumeAction& action : plan.actions(transform::VolumePlan::key_of(seed, epoch, id)))
          out.append(describe(action));
        return out;
      },
      nb::arg("transform"), nb::kw_only(), nb::arg("patch"), nb::arg("seed"), nb::arg("epoch"), nb::arg("id"),
      "What chance decides for one patch of a volume: a list of actions, as transform/volume_plan.h has them.");
  module.def(
      "transform_image",
      [](const std::string& transform, const Image& image, std::uint64_t seed, std::uint64_t id) {
        const transform::ImagePlan plan = compile(transform, image.shape(1), image.shape(0), image.shape(2));
        const transform::ImageInput& input = plan.input();
        Random random(seed, 0, id, 0);
        transform::Draw draw;
        check(plan.draw(0, input.width, input.height, random, draw));
        return nb::make_tuple(applied(plan, draw, image), list_actions(plan, draw));
      },
      nb::arg("transform"), nb::arg("image"), nb::kw_only(), nb::arg("seed"), nb::arg("id"),
      "One image [H, W, C] of uint8, transformed, and what chance decided.");
  nb::class_<RowTransform>(module, "RowTransform", "Operations on images of uint8 [H, W, C], one by one.")
      .def(nb::init<const std::string&, const std::string&, const std::string&>(), nb::arg("transform"), nb::kw_only(),
           nb::arg("layout"), nb::arg("dtype"), "`dtype`: empty is what the operations give.")
      .def("apply", &RowTransform::apply, nb::arg("image"), nb::kw_only(), nb::arg("seed"), nb::arg("epoch"),
           nb::arg("id"), nb::arg("stream"));
}

}  // namespace stoker::bindings
