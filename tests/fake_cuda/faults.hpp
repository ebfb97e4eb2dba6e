// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <cuda.h>

namespace fake_cuda {

/// Whether the real driver's context is broken after this.
[[nodiscard]] bool is_sticky(CUresult code);

/// Failures that were asked for.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class faults {
public:
  /// Reads FAKE_CUDA_FAIL: "cuMemCreate:2:0,kernel:700:3" are functions, codes, and calls that go well before.
  faults();

  void add(std::string function, CUresult code, int after_calls);
  void clear();

  /// Counts a call; CUDA_SUCCESS unless it is to fail.
  [[nodiscard]] CUresult next(std::string_view function);

private:
  struct fault {
    std::string function;
    CUresult code;
    int calls_left;
  };

  std::mutex mutex_;
  std::vector<fault> waiting_;
};

}  // namespace fake_cuda
