// Test tool: while it lives, the plain loops run instead of the vectors.
#pragma once

#include "stoker/transform/resize.h"

namespace stoker::transform {

class WithoutWideKernels {
 public:
  WithoutWideKernels() : before_(use_wide_kernels(false)) {}
  ~WithoutWideKernels() { use_wide_kernels(before_); }
  WithoutWideKernels(const WithoutWideKernels&) = delete;
  WithoutWideKernels& operator=(const WithoutWideKernels&) = delete;

 private:
  bool before_;
};

}  // namespace stoker::transform
