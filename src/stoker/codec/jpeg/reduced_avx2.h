// The reduced transforms with AVX2; see Kernels. Private to the kernels; call only if runs_fast_code().
#pragma once

#include "stoker/codec/jpeg/kernels.h"

namespace stoker::codec::jpeg {

Kernels::Transform transform_to_4_avx2, transform_to_2_avx2;

}  // namespace stoker::codec::jpeg
