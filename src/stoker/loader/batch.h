// A batch in a slab of the loader's pool. The slab returns to the pool when the last copy of the handle is dropped,
// from any thread, even after the loader was destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  virtual std::uint64_t step() const noexcept = 0;  // within the epoch, counted from where it was entered
  virtual std::span<const Tensor> tensors() const noexcept = 0;
  // One entry per row, in the slab.
  virtual dataset::LabelKind label_kind() const noexcept = 0;
  virtual std::span<std::int64_t> labels() const noexcept = 0;  // class or whole number; -1 without
  virtual std::span<float> real_labels() const noexcept = 0;    // LabelKind::real, else empty
  virtual std::span<std::int64_t> ids() const noexcept = 0;
  virtual std::span<std::int64_t> indices() const noexcept = 0;  // into the data set
  virtual std::span<std::int64_t> lengths()
      const noexcept = 0;  // true frames (sound) or bytes (Decode::none); else empty
  virtual std::span<std::uint8_t> valid() const noexcept = 0;  // 0: padding or a zeroed bad sample
  virtual std::string name_of(std::uint64_t row) const = 0;
  virtual std::uint64_t position_of(std::uint64_t row) const noexcept = 0;  // global, in the epoch
  virtual std::uint64_t slab_bytes() const noexcept = 0;
};

using BatchPtr = std::shared_ptr<Batch>;

}  // namespace stoker::loader
