// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/this_task.hpp>

#include <muster/pool/detail/local_worker.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/queue/stop_watch.hpp>

namespace muster {

bool this_task::stop_requested() noexcept {
  if (const auto* const thread = detail::local_worker::current()) return thread->stop_requested();
  const auto* call = task_call::current();
  return call != nullptr && call->stop_requested();
}

std::stop_token this_task::stop_token() {
  if (auto* const thread = detail::local_worker::current()) return thread->stop_token();
  auto* const call = task_call::current();
  return call != nullptr ? call->watch_stop().token() : std::stop_token();
}

unsigned this_task::attempt() noexcept {
  if (const auto* const thread = detail::local_worker::current()) return thread->task_stop != nullptr ? 1 : 0;
  const auto* call = task_call::current();
  return call != nullptr ? call->attempt() : 0;
}

}  // namespace muster
