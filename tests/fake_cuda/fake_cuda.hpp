// SPDX-License-Identifier: BSL-1.0
#pragma once

// What tests may ask of the libcuda.so.1 that is built here, beside what the driver's API has. It stands in for the
// driver of a machine with GPUs: LD_LIBRARY_PATH puts it before the real one (tests/fake_cuda/README.md).

#include <cstddef>

#include <dlfcn.h>

#include <cuda.h>

extern "C" {

/// What a process holds of the driver.
enum fake_cuda_kind {
  fake_cuda_contexts,  ///< retained primary contexts
  fake_cuda_streams,   ///< but for a context's own
  fake_cuda_events,
  fake_cuda_modules,
  fake_cuda_allocations,   ///< handles, of memory created or imported
  fake_cuda_reservations,  ///< of addresses
  fake_cuda_mappings,
  fake_cuda_registrations,  ///< of host memory
  fake_cuda_blocks,         ///< cuMemAlloc
  fake_cuda_opened_blocks   ///< cuIpcOpenMemHandle
};

/// How many of them are alive in this process.
std::size_t fake_cuda_live(fake_cuda_kind kind);

/// How many copies this process has asked for between devices: those in which one device reached both places, or, for
/// 0, those that went by way of the host.
std::size_t fake_cuda_copies_between(int directly);

/// How many streams, events and modules this process has asked to be destroyed that were not there any more: a context
/// takes its own with it.
std::size_t fake_cuda_stale();

/// How often this process, where it was forked from one that used the driver, has called it all the same.
std::size_t fake_cuda_forked_calls();

enum fake_cuda_direction { fake_cuda_uploads, fake_cuda_downloads, fake_cuda_moves };

/// How many bytes this process has had copied: from the host to devices, to the host, and between places on devices.
std::size_t fake_cuda_copied(fake_cuda_direction which);

/// After `after_calls` more calls of `function` ("cuMemCreate", without _v2), or executions of "kernel", "copy" or
/// "memset", the next one fails with `code`, once. Codes after which the real driver's contexts are of no use break the
/// context: every later call in it fails with the same code. What is executed on a stream has no caller, so its
/// failure always breaks the context.
void fake_cuda_fail(const char* function, CUresult code, int after_calls);

/// Forgets all failures that were asked for and have not happened yet.
void fake_cuda_no_failures();

/// For other libraries that are played (fake_nccl): gives a stream of the current context a function instead of a
/// kernel. It may touch the memory of devices, and is not run in a context that is over.
CUresult fake_cuda_run(CUstream where, void (*function)(void*), void* argument);
/// The number of the current context's device among all; -1 where there is no context.
int fake_cuda_physical();
}

namespace muster::test {

/// Those functions, where the process's driver is the fake one.
///
/// Thread safety: safe.
class fake_cuda {
public:
  /// Loads the process's driver if nobody has yet.
  fake_cuda() : library_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}  // stays open, as the driver's does

  /// Whether it is the fake one. Requires for all else: it is.
  [[nodiscard]] bool is_there() const { return find("fake_cuda_live") != nullptr; }

  [[nodiscard]] std::size_t live(fake_cuda_kind kind) const {
    return reinterpret_cast<decltype(&fake_cuda_live)>(find("fake_cuda_live"))(kind);
  }
  [[nodiscard]] std::size_t copies_between(bool directly) const {
    return reinterpret_cast<decltype(&fake_cuda_copies_between)>(find("fake_cuda_copies_between"))(directly ? 1 : 0);
  }
  [[nodiscard]] std::size_t forked_calls() const {
    return reinterpret_cast<decltype(&fake_cuda_forked_calls)>(find("fake_cuda_forked_calls"))();
  }
  [[nodiscard]] std::size_t stale() const {
    return reinterpret_cast<decltype(&fake_cuda_stale)>(find("fake_cuda_stale"))();
  }
  [[nodiscard]] std::size_t copied(fake_cuda_direction which) const {
    return reinterpret_cast<decltype(&fake_cuda_copied)>(find("fake_cuda_copied"))(which);
  }
  void fail(const char* function, CUresult code, int after_calls = 0) const {
    reinterpret_cast<decltype(&fake_cuda_fail)>(find("fake_cuda_fail"))(function, code, after_calls);
  }
  void no_failures() const { reinterpret_cast<decltype(&fake_cuda_no_failures)>(find("fake_cuda_no_failures"))(); }

private:
  [[nodiscard]] void* find(const char* name) const { return library_ == nullptr ? nullptr : ::dlsym(library_, name); }

  void* library_;
};

}  // namespace muster::test
