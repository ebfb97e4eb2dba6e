// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_worker.hpp>

#include <utility>

#include <muster/base/error.hpp>
#include <muster/pool/detail/local_state.hpp>

namespace muster::detail {

namespace {

thread_local constinit local_worker* this_thread = nullptr;

}  // namespace

local_worker* local_worker::current() noexcept { return this_thread; }

bool is_local_worker() noexcept { return this_thread != nullptr; }

void local_worker::require_task() const {
  if (is_at_task()) return;
  throw error(
      errc::invalid_argument,
      "this_pool:: was used outside of a task: in an initializer, a finalizer, or a context's beginning or end. "
      "Call the pool itself, while it takes tasks");
}

local_worker::scope::scope(local_worker& who) noexcept : outer_(std::exchange(this_thread, &who)) {}

local_worker::scope::~scope() { this_thread = outer_; }

}  // namespace muster::detail
