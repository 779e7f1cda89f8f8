// A batch in a slab of the loader's pool. The slab returns to the pool when the last copy of the handle is dropped,
// from any thread, even after the loader was destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/dtype.h"
#include "stoker/dataset/dataset.h"

namespace stoker::loader {

// One tensor, in place. Strides count elements.
struct Tensor {
  std::string_view name;
  DType dtype = DType::u8;
  std::byte* data = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

class Batch {
 public:
  virtual ~Batch() = default;

  virtual std::uint64_t size() const noexcept = 0;  // rows, after skipped ones were taken out
  virtual std::uint64_t epoch() const noexcept = 0;
  virtual std::uint64_t step() const noexcept = 0;               // within the epoch, counted from where it was entered
  virtual std::span<const Tensor> tensors() const noexcept = 0;  // the outputs, each with its name
  const Tensor* tensor(std::string_view name) const noexcept;    // one of them; null if none has this name
  // Where each row lies in the sample that it is cut from: int64 [rows, dimensions]; null where rows are whole samples.
  virtual const Tensor* coords() const noexcept = 0;
  // One entry per row, in the slab.
  virtual dataset::LabelKind label_kind() const noexcept = 0;
  // Row after row, label_count() of each: one, or as many as Facts::label_columns.
  virtual std::uint64_t label_count() const noexcept = 0;
  virtual std::span<std::int64_t> labels() const noexcept = 0;  // class or whole number; -1 without
  virtual std::span<float> real_labels() const noexcept = 0;    // LabelKind::real, else empty
  // Where batches are mixed: float32 [rows, soft_classes()]; else empty.
  virtual std::uint64_t soft_classes() const noexcept = 0;
  virtual std::span<float> soft_labels() const noexcept = 0;
  virtual std::span<std::int64_t> ids() const noexcept = 0;
  virtual std::span<std::int64_t> indices() const noexcept = 0;  // into the data set
  virtual std::span<std::int64_t> lengths()
      const noexcept = 0;  // true frames (audio) or bytes (Decode::none); else empty
  // With Decode::none rows lie one after another, each only as long as it is, in one tensor of one dimension: places()
  // says where each begins. Elsewhere it is empty, and rows lie as the strides say.
  virtual bool packs_rows() const noexcept = 0;
  virtual std::span<std::int64_t> places() const noexcept = 0;
  virtual std::span<std::uint8_t> valid() const noexcept = 0;  // 0: padding or a zeroed bad sample
  virtual std::string name_of(std::uint64_t row) const = 0;
  virtual std::uint64_t position_of(std::uint64_t row) const noexcept = 0;  // global, in the epoch
  virtual std::uint64_t slab_bytes() const noexcept = 0;
  // Where the slab begins, in this process and in LoaderOptions::shared_region; null and 0 for a batch without rows.
  virtual const std::byte* slab_data() const noexcept = 0;
  virtual std::uint64_t shared_offset() const noexcept = 0;
};

inline const Tensor* Batch::tensor(std::string_view name) const noexcept {
  for (const Tensor& tensor : tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

using BatchPtr = std::shared_ptr<Batch>;

}  // namespace stoker::loader
