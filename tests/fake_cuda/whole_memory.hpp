// SPDX-License-Identifier: BSL-1.0
#pragma once

// Memory that is allocated, and sent to other processes, as a whole: cuMemAlloc, cuIpc….

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include <cuda.h>

#include "memory.hpp"
#include "stream.hpp"

namespace fake_cuda {

/// What this process has allocated so, and what it has opened of others.
///
/// Works as follows. The memory is a memfd, as all is; a handle says which descriptor of which process that is, and is
/// opened by way of /proc, so that it is of no use when that process has freed the memory, or has ended.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class whole_memory {
public:
  explicit whole_memory(address_space& space) : space_(space) {}

  /// Throws CUDA_ERROR_OUT_OF_MEMORY.
  [[nodiscard]] CUdeviceptr allocate(ledger& counted_by, const std::shared_ptr<context>& in, std::size_t bytes,
                                     std::size_t limit);
  /// Throws CUDA_ERROR_INVALID_VALUE for what is not the beginning of what was allocated here.
  void free(CUdeviceptr first);

  /// Throws CUDA_ERROR_INVALID_VALUE likewise.
  [[nodiscard]] CUipcMemHandle handle_of(CUdeviceptr first) const;
  /// Opened again in the same context: at the same address. Throws CUDA_ERROR_INVALID_CONTEXT in the process that has
  /// allocated it, and where another context of the device has opened something of that process;
  /// CUDA_ERROR_INVALID_VALUE for what was never a handle, CUDA_ERROR_MAP_FAILED for what is none any more.
  [[nodiscard]] CUdeviceptr open(ledger& counted_by, const std::shared_ptr<context>& in, const CUipcMemHandle& handle);
  /// Throws CUDA_ERROR_INVALID_VALUE.
  void close(CUdeviceptr first);

  /// From now on that device has access to all that is, or will be, allocated on the other. False: it had before.
  bool let_access(int by_physical, int of_physical);
  /// All that is in a context goes with it.
  void forget(const context* gone);

  [[nodiscard]] std::size_t allocated() const;
  [[nodiscard]] std::size_t opened() const;

private:
  struct block {
    std::shared_ptr<const allocation> memory;
    std::shared_ptr<context> in;
    int from = 0;   // the process that has allocated it, if that is another
    int count = 1;  // how often it was opened
  };
  using blocks = std::map<CUdeviceptr, block>;

  [[nodiscard]] CUdeviceptr place(block what, blocks& among);
  void remove(blocks& among, blocks::iterator which);

  address_space& space_;
  mutable std::mutex mutex_;
  blocks allocated_;
  blocks opened_;
  std::set<std::pair<int, int>> accesses_;  // by whom, of whose
};

}  // namespace fake_cuda
