// Marks functions compiled for CPUs with AVX2 and BMI2. They run only where runs_fast_code() says so.
#pragma once

#if defined(__x86_64__)
#define STOKER_JPEG_FAST [[gnu::target("avx2,bmi,bmi2")]]
#else
#define STOKER_JPEG_FAST
#endif

namespace stoker::codec::jpeg {

inline bool runs_fast_code() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

}  // namespace stoker::codec::jpeg
