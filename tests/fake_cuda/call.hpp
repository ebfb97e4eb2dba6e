// SPDX-License-Identifier: BSL-1.0
#pragma once

// What all functions of the driver have in common.

#include <memory>
#include <new>

#include "machine.hpp"

namespace fake_cuda {

/// The context that is current in this thread. Throws CUDA_ERROR_INVALID_CONTEXT where there is none,
/// CUDA_ERROR_CONTEXT_IS_DESTROYED, and what broke it.
[[nodiscard]] std::shared_ptr<context> current_context();
/// The same, of any state, or null.
[[nodiscard]] std::shared_ptr<context> any_current_context();
[[nodiscard]] CUcontext current_handle();
void set_current(CUcontext which);

/// Throws what has to be said before the function looks at anything.
void begin_call();
/// A failure that a test asked for, which breaks the current context if it is such a one.
void fail_as_asked(const char* name);

/// Runs the body of a function that may be called without a context.
template <class Body>
CUresult call(const char* name, const Body& body) noexcept {
  try {
    begin_call();
    fail_as_asked(name);
    body();
    return CUDA_SUCCESS;
  } catch (const failure& found) {
    return found.code;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
}

/// Runs the body, which is given the current context, of one that may not.
template <class Body>
CUresult call_in_context(const char* name, const Body& body) noexcept {
  return call(name, [&] { body(current_context()); });
}

/// The same, of one that destroys `which` of `among`. Where that is not there any more, the real driver may crash, so
/// it is counted.
template <class Registry, class Handle, class Body>
CUresult call_to_destroy(const char* name, const Registry& among, Handle which, const Body& body) noexcept {
  if (!is_forked() && !among.has(which)) ++the_machine().stale;
  return call_in_context(name, [&](const auto&) { body(); });
}

}  // namespace fake_cuda
