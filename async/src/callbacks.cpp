// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/callbacks.hpp>

#include <utility>

#include <muster/async/detail/callback_executor.hpp>
#include <muster/base/error.hpp>

namespace muster::detail {

void prepare(callback_executor& where, deferred_call& call) {
  where.reserve(call);
  try {
    where.prepare();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): as callback_executor::post says
  }
}

bool try_post(callback_executor& where, deferred_ptr& call) noexcept { return where.try_post(call); }

boost::asio::io_context* loop_of(const callback_executor& where) noexcept { return where.loop(); }

void post_at(callback_executor& where, clock::time_point when, deferred_ptr call) {
  static_cast<void>(where.post_at(when, std::move(call)));
}

}  // namespace muster::detail
