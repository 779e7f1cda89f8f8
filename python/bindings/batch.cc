// loader::Batch as stoker._engine.Batch: arrays in place, each of which holds the batch.
#include "bindings/batch.h"

#include <span>
#include <string>

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

namespace stoker::bindings {
namespace {

using Self = nb::handle_t<BatchHandle>;
using Numpy = nb::ndarray<nb::numpy>;
using Dlpack = nb::ndarray<nb::array_api>;  // an object with __dlpack__ and __dlpack_device__

BatchHandle& batch_of(Self self) {
  return nb::cast<BatchHandle&>(self);
}

nb::dlpack::dtype dlpack_type(DType type) noexcept {
  using Code = nb::dlpack::dtype_code;
  const auto make = [type](Code code) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(size_of(type) * 8), 1};
  };
  switch (type) {
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return make(Code::UInt);
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return make(Code::Int);
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return make(Code::Float);
    case DType::bf16:
      return make(Code::Bfloat);
    case DType::boolean:
      return make(Code::Bool);
  }
  return make(Code::UInt);
}

const loader::Tensor& tensor_at(Self self, std::size_t index) {
  const auto tensors = batch_of(self)->tensors();
  if (index >= tensors.size()) throw nb::index_error("a batch has fewer tensors");
  return tensors[index];
}

// A batch without rows has no slab; arrays of nothing still need an address.
std::byte no_rows[1];

template <class Array>
Array view(Self self, const loader::Tensor& tensor, DType type) {
  const std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
  return Array(tensor.data ? tensor.data : no_rows, shape.size(), shape.data(), self, tensor.strides.data(),
               dlpack_type(type), nb::device::cpu::value);
}

// One label per row, or a row of them.
template <class T>
nb::ndarray<T, nb::numpy> label_values(Self self, std::span<T> values) {
  const std::size_t count = batch_of(self)->label_count();
  const std::size_t shape[2] = {values.size() / count, count};
  void* const data = values.data() ? static_cast<void*>(values.data()) : no_rows;
  return nb::ndarray<T, nb::numpy>(data, count == 1 ? 1 : 2, shape, self);
}

template <class T>
nb::ndarray<T, nb::numpy, nb::ndim<1>> row_values(Self self, std::span<T> values) {
  const std::size_t shape[1] = {values.size()};
  void* const data = values.data() ? static_cast<void*>(values.data()) : no_rows;
  return nb::ndarray<T, nb::numpy, nb::ndim<1>>(data, 1, shape, self);
}

}  // namespace

void bind_batch(nb::module_& module) {
  module.def(
      "dtype_name",
      [](std::int64_t code) {
        if (code < 0 || code > static_cast<std::int64_t>(DType::boolean)) throw nb::index_error("no such element type");
        return std::string(name(static_cast<DType>(code)));
      },
      nb::arg("code"), "The name of an element type of the engine, by its number.");
  nb::class_<BatchHandle>(module, "Batch", "A batch in a slab of the pool; arrays over it keep the slab.")
      .def_prop_ro("size", [](const BatchHandle& self) { return self->size(); })
      .def_prop_ro("epoch", [](const BatchHandle& self) { return self->epoch(); })
      .def_prop_ro("step", [](const BatchHandle& self) { return self->step(); })
      .def_prop_ro("slab_bytes", [](const BatchHandle& self) { return self->slab_bytes(); })
      .def_prop_ro(
          "slab_address", [](const BatchHandle& self) { return reinterpret_cast<std::uintptr_t>(self->slab_data()); },
          "Of the first byte, in this process.")
      .def_prop_ro(
          "shared_offset", [](const BatchHandle& self) { return self->shared_offset(); },
          "The same in the loader's SharedRegion.")
      .def_prop_ro("tensor_names",
                   [](const BatchHandle& self) {
                     std::vector<std::string> names;
                     for (const loader::Tensor& tensor : self->tensors()) names.emplace_back(tensor.name);
                     return names;
                   })
      .def(
          "dtype", [](Self self, std::size_t index) { return std::string(name(tensor_at(self, index).dtype)); },
          nb::arg("index"))
      .def(
          "numpy",
          [](Self self, std::size_t index) {
            const loader::Tensor& tensor = tensor_at(self, index);
            return view<Numpy>(self, tensor, tensor.dtype == DType::bf16 ? DType::u16 : tensor.dtype);
          },
          nb::arg("index"), "In place; bfloat16 comes as uint16.")
      .def(
          "dlpack",
          [](Self self, std::size_t index) {
            const loader::Tensor& tensor = tensor_at(self, index);
            return view<Dlpack>(self, tensor, tensor.dtype);
          },
          nb::arg("index"), "In place, as an object with __dlpack__.")
      .def("labels",
           [](Self self) -> nb::object {
             const BatchHandle& batch = batch_of(self);
             if (const std::size_t classes = batch->soft_classes(); classes != 0) {
               const std::span<float> values = batch->soft_labels();
               const std::size_t shape[2] = {values.size() / classes, classes};
               void* const data = values.data() ? static_cast<void*>(values.data()) : no_rows;
               return nb::cast(nb::ndarray<float, nb::numpy>(data, 2, shape, self));
             }
             if (batch->label_kind() == dataset::LabelKind::real) {
               return nb::cast(label_values(self, batch->real_labels()));
             }
             return nb::cast(label_values(self, batch->labels()));
           })
      .def(
          "coords",
          [](Self self) -> nb::object {
            const loader::Tensor* const coords = batch_of(self)->coords();
            return coords != nullptr ? nb::cast(view<Numpy>(self, *coords, coords->dtype)) : nb::none();
          },
          "Where each row lies in its sample; None where rows are whole samples.")
      .def("ids", [](Self self) { return row_values(self, batch_of(self)->ids()); })
      .def("indices", [](Self self) { return row_values(self, batch_of(self)->indices()); })
      .def("lengths", [](Self self) { return row_values(self, batch_of(self)->lengths()); })
      .def_prop_ro("packs_rows", [](const BatchHandle& self) { return self->packs_rows(); })
      .def(
          "places", [](Self self) { return row_values(self, batch_of(self)->places()); },
          "Where each row begins in the only tensor, where rows are packed.")
      .def("valid", [](Self self) { return row_values(self, batch_of(self)->valid()); })
      .def(
          "position",
          [](const BatchHandle& self, std::uint64_t row) {
            if (row >= self->size()) throw nb::index_error("a batch has fewer rows");
            return self->position_of(row);
          },
          nb::arg("row"), "Of the row's sample in the epoch, over all ranks.");
}

}  // namespace stoker::bindings
