// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cuda.h>

namespace fake_cuda {

/// What a call of the driver gives instead of CUDA_SUCCESS; thrown inside, and returned by whoever was called.
struct failure {
  CUresult code;
};

inline void require(bool condition, CUresult otherwise) {
  if (!condition) throw failure{otherwise};
}

}  // namespace fake_cuda
