// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_worker.hpp>

#include <utility>

#include <muster/async/detail/future_source.hpp>
#include <muster/base/error.hpp>

namespace muster::detail {

namespace {

thread_local constinit local_worker* this_thread = nullptr;

}  // namespace

local_worker* local_worker::current() noexcept { return this_thread; }

void local_worker::require_task() const {
  if (is_at_task()) return;
  throw error(
      errc::invalid_argument,
      "this_pool:: was used outside of a task: in an initializer, a finalizer, or a context's beginning or end. "
      "Call the pool itself, while it takes tasks");
}

local_worker::scope::scope(local_worker& who) noexcept : outer_(std::exchange(this_thread, &who)) {
  set_helps_while_waiting(true);
}

local_worker::scope::~scope() {
  this_thread = outer_;
  set_helps_while_waiting(outer_ != nullptr);
}

}  // namespace muster::detail
