// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/this_task.hpp>

#include <muster/queue/task_call.hpp>

namespace muster {

bool this_task::stop_requested() noexcept {
  const auto* call = task_call::current();
  return call != nullptr && call->stop_requested();
}

}  // namespace muster
