// Runs one loop with the widest vectors of the machine. The loop is `Kernel::run`, an always_inline function that is
// compiled twice; both give the same bits, since no build contracts float operations. Private to this folder.
#pragma once

#include "stoker/transform/resize.h"

#define STOKER_KERNEL static inline __attribute__((always_inline))

namespace stoker::transform {

#if defined(__x86_64__)
template <typename Kernel, typename... Args>
__attribute__((target("avx2"), noinline)) void run_avx2(Args... args) noexcept {
  Kernel::run(args...);
}
#endif

template <typename Kernel, typename... Args>
void run_kernel(Args... args) noexcept {
#if defined(__x86_64__)
  if (wide_kernels()) return run_avx2<Kernel>(args...);
#endif
  Kernel::run(args...);
}

}  // namespace stoker::transform
