#include "stoker/loader/handed_batch.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "stoker/loader/slab_layout.h"

namespace stoker::loader {
namespace {

class HandedBatch final : public Batch {
 public:
  HandedBatch(std::shared_ptr<SlabPool> pool, Slab* slab, dataset::DatasetPtr dataset, const Recipe& recipe,
              const Pending& pending, std::uint64_t batch_size)
      : pool_(std::move(pool)),
        slab_(slab),
        dataset_(std::move(dataset)),
        size_(pending.kept),
        epoch_(pending.epoch),
        step_(pending.step),
        first_position_(pending.range.first),
        layout_(lay_out(recipe, batch_size, pending.length)),
        label_count_(recipe.label_count()),
        soft_classes_(recipe.soft_classes()),
        has_lengths_(recipe.facts().has_lengths),
        packs_rows_(recipe.packs_rows()) {
    for (std::size_t o = 0; o < recipe.outputs().size(); ++o) {
      Tensor made = make_tensor(recipe, o, pending.length);
      if (recipe.outputs()[o].is_coords) {
        coords_ = std::move(made);
      } else {
        tensors_.push_back(std::move(made));
      }
    }
    for (const Row& row : pending.rows) {
      if (row.skipped) skipped_positions_.push_back(row.position);
    }
  }
  ~HandedBatch() override {
    if (slab_ != nullptr) pool_->release(slab_);
  }
  HandedBatch(const HandedBatch&) = delete;
  HandedBatch& operator=(const HandedBatch&) = delete;

  std::uint64_t size() const noexcept override { return size_; }
  std::uint64_t epoch() const noexcept override { return epoch_; }
  std::uint64_t step() const noexcept override { return step_; }
  std::span<const Tensor> tensors() const noexcept override { return tensors_; }
  dataset::LabelKind label_kind() const noexcept override { return dataset_->facts().label_kind; }
  const Tensor* coords() const noexcept override { return coords_ ? &*coords_ : nullptr; }
  std::uint64_t label_count() const noexcept override { return label_count_; }
  std::span<std::int64_t> labels() const noexcept override { return at<std::int64_t>(layout_.labels, label_count_); }
  std::span<float> real_labels() const noexcept override {
    if (label_kind() != dataset::LabelKind::real) return {};
    return at<float>(layout_.real_labels, label_count_);
  }
  std::uint64_t soft_classes() const noexcept override { return soft_classes_; }
  std::span<float> soft_labels() const noexcept override { return at<float>(layout_.soft_labels, soft_classes_); }
  std::span<std::int64_t> ids() const noexcept override { return at<std::int64_t>(layout_.ids); }
  std::span<std::int64_t> indices() const noexcept override { return at<std::int64_t>(layout_.indices); }
  std::span<std::int64_t> lengths() const noexcept override {
    if (!has_lengths_) return {};
    return at<std::int64_t>(layout_.lengths);
  }
  bool packs_rows() const noexcept override { return packs_rows_; }
  std::span<std::int64_t> places() const noexcept override {
    if (!packs_rows_) return {};
    return at<std::int64_t>(layout_.places);
  }
  std::span<std::uint8_t> valid() const noexcept override { return at<std::uint8_t>(layout_.valid); }
  std::string name_of(std::uint64_t row) const override {
    return dataset_->name(static_cast<std::uint64_t>(indices()[row]));
  }
  std::uint64_t position_of(std::uint64_t row) const noexcept override {
    std::uint64_t position = first_position_ + row;
    for (const std::uint64_t skipped : skipped_positions_) position += skipped <= position;
    return position;
  }
  std::uint64_t slab_bytes() const noexcept override { return slab_ == nullptr ? 0 : slab_->arena.size(); }
  const std::byte* slab_data() const noexcept override { return slab_ == nullptr ? nullptr : slab_->arena.data(); }
  std::uint64_t shared_offset() const noexcept override { return slab_ == nullptr ? 0 : slab_->arena.shared_offset(); }

 private:
  template <typename T>
  std::span<T> at(std::size_t offset, std::uint64_t per_row = 1) const noexcept {
    if (slab_ == nullptr) return {};
    return {reinterpret_cast<T*>(slab_->arena.data() + offset), size_ * per_row};
  }

  Tensor make_tensor(const Recipe& recipe, std::size_t o, std::uint64_t length) const {
    const transform::Output& output = recipe.outputs()[o];
    Tensor tensor;
    tensor.name = output.name;
    tensor.dtype = output.dtype;
    tensor.data = slab_ == nullptr ? nullptr : slab_->arena.data() + layout_.outputs[o];
    if (!packs_rows_) tensor.shape.push_back(static_cast<std::int64_t>(size_));
    if (output.views > 1) tensor.shape.push_back(output.views);
    for (const std::uint64_t d : output.shape) tensor.shape.push_back(static_cast<std::int64_t>(d));
    if (output.varies) tensor.shape.back() = static_cast<std::int64_t>(length);
    tensor.strides.resize(tensor.shape.size());
    std::int64_t stride = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      tensor.strides[i] = stride;
      stride *= std::max<std::int64_t>(1, tensor.shape[i]);
    }
    if (output.layout == transform::Layout::channels_last && output.shape.size() == 3) {
      const std::size_t c = tensor.shape.size() - 3;
      tensor.strides[c] = 1;
      tensor.strides[c + 2] = tensor.shape[c];
      tensor.strides[c + 1] = tensor.shape[c] * tensor.shape[c + 2];
    }
    return tensor;
  }

  std::shared_ptr<SlabPool> pool_;
  Slab* slab_;  // null for a batch without rows
  dataset::DatasetPtr dataset_;
  std::uint64_t size_, epoch_, step_, first_position_;
  std::vector<std::uint64_t> skipped_positions_;  // ascending
  SlabLayout layout_;
  std::uint64_t label_count_, soft_classes_;
  bool has_lengths_, packs_rows_;
  std::vector<Tensor> tensors_;
  std::optional<Tensor> coords_;
};

}  // namespace

BatchPtr hand_out(std::shared_ptr<SlabPool> pool, Slab* slab, dataset::DatasetPtr dataset, const Recipe& recipe,
                  const Pending& pending, std::uint64_t batch_size) {
  return std::make_shared<HandedBatch>(std::move(pool), slab, std::move(dataset), recipe, pending, batch_size);
}

}  // namespace stoker::loader
