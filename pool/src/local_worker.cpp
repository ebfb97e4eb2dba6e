// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_worker.hpp>

#include <utility>

#include <muster/pool/detail/local_state.hpp>

namespace muster::detail {

namespace {

thread_local constinit local_worker* this_thread = nullptr;

}  // namespace

local_worker* local_worker::current() noexcept { return this_thread; }

bool is_local_worker() noexcept { return this_thread != nullptr; }

local_worker::scope::scope(local_worker& who) noexcept : outer_(std::exchange(this_thread, &who)) {}

local_worker::scope::~scope() { this_thread = outer_; }

}  // namespace muster::detail
