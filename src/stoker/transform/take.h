// Typed room from a Scratch. Private to this folder.
#pragma once

#include <cstddef>

#include "stoker/base/result.h"
#include "stoker/base/scratch.h"

namespace stoker::transform {

inline constexpr Result kNoRoom = failed(Code::no_memory, "no room to transform the sample");

// Uninitialised, 64-byte aligned; null when the budget refuses.
template <typename T>
T* take(Scratch& scratch, std::size_t count) noexcept {
  return reinterpret_cast<T*>(scratch.take(count * sizeof(T)).data());
}

}  // namespace stoker::transform
