// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <nccl.h>

namespace fake_nccl {

/// Failures that were asked for, and what was called.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class faults {
public:
  /// Reads FAKE_NCCL_FAIL.
  faults();

  void add(std::string function, ncclResult_t code, int after_calls);
  /// Counts a call; ncclSuccess unless it is to fail.
  [[nodiscard]] ncclResult_t next(std::string_view function);
  [[nodiscard]] std::size_t calls(std::string_view function);

private:
  struct fault {
    std::string function;
    ncclResult_t code;
    int calls_left;
  };

  std::mutex mutex_;
  std::vector<fault> waiting_;
  std::map<std::string, std::size_t, std::less<>> calls_;
};

/// There is one, and it is never destroyed: threads may run until the process ends.
[[nodiscard]] faults& the_faults();

}  // namespace fake_nccl
