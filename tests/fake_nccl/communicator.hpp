// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda.h>
#include <nccl.h>

#include "operation.hpp"
#include "wire.hpp"

namespace fake_nccl {

/// The driver's, found in the process's libcuda.so.1. Throws ncclUnhandledCudaError where that is not the fake one.
struct driver {
  CUresult (*get_current)(CUcontext*);
  CUresult (*set_current)(CUcontext);
  CUresult (*run)(CUstream, void (*)(void*), void*);
  int (*physical)();

  [[nodiscard]] static const driver& of_process();
};

/// One rank's.
///
/// Thread safety: as NCCL: one thread at a time, but abort().
class communicator {
public:
  /// Begins to join.
  communicator(const ncclUniqueId& id, std::size_t rank, std::size_t size);
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator() { abort(); }

  /// Of what was begun last.
  [[nodiscard]] ncclResult_t state() const { return state_.load(); }
  /// Begins. Requires: nothing is in progress.
  void start(std::vector<request> requests, CUstream where);
  /// Ends everything that is under way, and waits for that.
  void abort();
  [[nodiscard]] std::size_t size() const { return size_; }

private:
  struct launched;

  void begin(std::function<void()> what);
  void join(ncclUniqueId id);
  void require_own_device() const;
  void run(launched& what);

  const std::size_t rank_;
  const std::size_t size_;
  CUcontext context_ = nullptr;
  board_mapping board_;
  std::atomic<ncclResult_t> state_ = ncclInProgress;
  std::atomic<bool> is_aborted_ = false;
  std::thread background_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t under_way_ = 0;  // on streams
};

}  // namespace fake_nccl
