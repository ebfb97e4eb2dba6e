// SPDX-License-Identifier: BSL-1.0
#pragma once

// What tests may ask of the libnccl.so.2 that is built here, beside what NCCL has (README.md).

#include <cstddef>

#include <dlfcn.h>

#include <nccl.h>

extern "C" {

/// After `after_calls` more calls of `function` ("ncclAllReduce"), the next one fails with `code`, once. Besides:
/// "async", the next answer of ncclCommGetAsyncError is that code; "chunk", the process is killed when it has passed on
/// that many pieces of an operation; "hang", an operation does nothing until it is aborted.
void fake_nccl_fail(const char* function, ncclResult_t code, int after_calls);

/// How often it was called in this process.
std::size_t fake_nccl_calls(const char* function);

/// Communicators that are neither destroyed nor aborted.
std::size_t fake_nccl_live();
}

namespace muster::test {

/// Those functions, where the process's NCCL is the fake one.
///
/// Thread safety: safe.
class fake_nccl {
public:
  fake_nccl() : library_(::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL)) {}  // stays open, as muster's does

  /// Whether it is the fake one. Requires for all else: it is.
  [[nodiscard]] bool is_there() const { return find("fake_nccl_live") != nullptr; }
  void fail(const char* function, ncclResult_t code, int after_calls = 0) const {
    reinterpret_cast<decltype(&fake_nccl_fail)>(find("fake_nccl_fail"))(function, code, after_calls);
  }
  [[nodiscard]] std::size_t calls(const char* function) const {
    return reinterpret_cast<decltype(&fake_nccl_calls)>(find("fake_nccl_calls"))(function);
  }
  [[nodiscard]] std::size_t live() const {
    return reinterpret_cast<decltype(&fake_nccl_live)>(find("fake_nccl_live"))();
  }

private:
  [[nodiscard]] void* find(const char* name) const { return library_ == nullptr ? nullptr : ::dlsym(library_, name); }

  void* library_;
};

}  // namespace muster::test
