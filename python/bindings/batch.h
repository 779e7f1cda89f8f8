// A batch as Python holds it: arrays over its slab keep this object alive, and with it the slab.
#pragma once

#include "stoker/loader/batch.h"

#include "bindings/bindings.h"

namespace stoker::bindings {

class BatchHandle {
 public:
  explicit BatchHandle(loader::BatchPtr batch) noexcept : batch_(std::move(batch)) {}
  BatchHandle(BatchHandle&&) noexcept = default;
  BatchHandle& operator=(BatchHandle&&) = delete;
  // In a forked child the pool's locks may be held for ever by threads that are not there: nothing is given back.
  ~BatchHandle() {
    if (batch_ && origin_.is_forked()) static_cast<void>(new loader::BatchPtr(std::move(batch_)));
  }

  const loader::Batch& operator*() const noexcept { return *batch_; }
  const loader::Batch* operator->() const noexcept { return batch_.get(); }

 private:
  loader::BatchPtr batch_;
  Origin origin_;
};

}  // namespace stoker::bindings
