// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/this_task.hpp>

#include <utility>

#include <muster/pool/detail/local_worker.hpp>
#include <muster/pool/detail/stoppable.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/queue/stop_watch.hpp>

namespace muster {

namespace {

constinit thread_local const detail::stoppable* innermost = nullptr;

const void* current_task() noexcept {
  if (const auto* const thread = detail::local_worker::current()) return thread;
  return task_call::current();
}

}  // namespace

detail::stoppable::stoppable() noexcept : task_(current_task()), before_(std::exchange(innermost, this)) {}
detail::stoppable::~stoppable() { innermost = before_; }

const detail::stoppable* detail::stoppable::current() noexcept {
  return innermost != nullptr && innermost->task_ == current_task() ? innermost : nullptr;
}

bool this_task::stop_requested() noexcept {
  if (const auto* const other = detail::stoppable::current()) return other->stop_requested();
  if (const auto* const thread = detail::local_worker::current()) return thread->stop_requested();
  const auto* call = task_call::current();
  return call != nullptr && call->stop_requested();
}

std::stop_token this_task::stop_token() {
  if (const auto* const other = detail::stoppable::current()) return other->stop_token();
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
