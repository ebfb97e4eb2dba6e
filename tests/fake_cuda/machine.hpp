// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the driver knows of this process. There is one, as there is of the real driver, and it is never destroyed:
// streams may run until the process ends.

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda.h>

#include "devices.hpp"
#include "failure.hpp"
#include "faults.hpp"
#include "ledger.hpp"
#include "memory.hpp"
#include "registry.hpp"
#include "stream.hpp"
#include "whole_memory.hpp"

namespace fake_cuda {

/// A kernel that is compiled for the host. It has one argument.
struct kernel {
  const char* name;
  std::size_t argument_bytes;
  /// Runs all blocks and threads.
  void (*run)(const std::byte* argument, const unsigned (&blocks)[3], const unsigned (&threads)[3]);
};

/// The table's end has no name.
[[nodiscard]] const kernel* all_kernels();

struct module {
  std::shared_ptr<context> in;
};

struct function {
  std::shared_ptr<module> of;
  const kernel* what;
};

/// Thread safety: distinct objects: safe. Shared objects: safe.
class machine {
public:
  faults failures;
  std::array<std::atomic<std::size_t>, 3> copied{};  // bytes, by fake_cuda_direction
  address_space space;

  registry<CUcontext, context> contexts;  // all that ever were, so that they can be told to be destroyed
  registry<CUstream, stream> streams;
  registry<CUevent, event> events;
  registry<CUmodule, module> modules;
  registry<CUfunction, function> functions;
  registry<CUmemGenericAllocationHandle, allocation> allocations;
  whole_memory blocks{space};

  // Between devices: by one that reaches both, or by way of the host.
  std::atomic<std::size_t> direct_copies = 0;
  std::atomic<std::size_t> staged_copies = 0;

  std::atomic<std::size_t> forked_calls = 0;
  std::atomic<std::size_t> stale = 0;  // handles that were to be destroyed, and were not there

  /// cuInit. Throws CUDA_ERROR_NO_DEVICE.
  void initialize();
  [[nodiscard]] bool is_initialized() const { return is_initialized_; }
  /// Requires: initialize() did not throw.
  [[nodiscard]] const class devices& devices() const { return *devices_; }
  [[nodiscard]] class ledger& ledger() { return *ledger_; }

  /// Makes a stream in that context; destroys one, which first does what it has in its queue.
  [[nodiscard]] CUstream make_stream(const std::shared_ptr<context>& in, bool waits_for_default);
  void retire(CUstream which);

  [[nodiscard]] CUcontext retain(CUdevice which);
  void release(CUdevice which);
  [[nodiscard]] std::size_t retained();

  /// The stream of that handle; of NULL the context's own.
  [[nodiscard]] std::shared_ptr<stream> find_stream(CUstream which, const std::shared_ptr<context>& here);
  /// Queues what that stream is to do next: after what was queued on the default stream, or of that, on all others.
  /// `always`: also in a context that is over.
  std::uint64_t submit(const std::shared_ptr<stream>& on, std::function<void()> operation, bool always = false);

private:
  struct primary {
    int retained = 0;
    CUcontext handle = nullptr;
    std::shared_ptr<context> alive;
    std::shared_ptr<stream> own;
  };

  void destroy(primary& which);
  [[nodiscard]] std::vector<std::shared_ptr<stream>> take_retired(const context* in);

  std::mutex mutex_;
  std::atomic<bool> is_initialized_ = false;
  std::unique_ptr<const class devices> devices_;
  std::unique_ptr<class ledger> ledger_;
  std::map<CUdevice, primary> primaries_;
  std::vector<std::shared_ptr<stream>> retired_;
};

[[nodiscard]] machine& the_machine();

/// Whether this process was forked from one that had used the driver, which it then cannot.
[[nodiscard]] bool is_forked();

}  // namespace fake_cuda
