// SPDX-License-Identifier: BSL-1.0
#include "call.hpp"

namespace fake_cuda {

namespace {

thread_local CUcontext current = nullptr;

}  // namespace

CUcontext current_handle() { return current; }

void set_current(CUcontext which) { current = which; }

std::shared_ptr<context> any_current_context() {
  return current == nullptr ? nullptr : the_machine().contexts.find(current, CUDA_ERROR_INVALID_CONTEXT);
}

std::shared_ptr<context> current_context() {
  auto found = any_current_context();
  require(found != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  require(!found->is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  if (const auto code = found->broken_by.load(); code != CUDA_SUCCESS) throw failure{code};
  return found;
}

void begin_call() {
  if (is_forked()) ++the_machine().forked_calls;
  require(!is_forked() && the_machine().is_initialized(), CUDA_ERROR_NOT_INITIALIZED);
  require(!is_on_stream(), CUDA_ERROR_NOT_PERMITTED);
}

void fail_as_asked(const char* name) {
  const auto code = the_machine().failures.next(name);
  if (code == CUDA_SUCCESS) return;
  if (const auto here = any_current_context(); here != nullptr && is_sticky(code)) here->break_by(code);
  throw failure{code};
}

}  // namespace fake_cuda
