// SPDX-License-Identifier: BSL-1.0
#pragma once

// What kv_store's templates need.

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/kv_store.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/remote_ref.hpp>
#include <muster/serialize/callable.hpp>

namespace muster {

namespace detail {

class kv_owner;

/// The owners that are there; none of a store of this process alone.
[[nodiscard]] std::vector<remote_ref<kv_owner>> owners_of(kv_core& of);
void set_updater_of(kv_owner& owner, kv_updater by);
void set_updater_here(kv_core& of, kv_updater by);

/// At an owner: takes the callable of a call for its updater, instead of calling it.
template <class F>
struct updater_installer {
  static void run(rpc_request& call) {
    using sent = sent_callable<F>;
    auto values = sent::template frame<>::decode(call.arguments(), &call.attachments());
    set_updater_of(*static_cast<kv_owner*>(call.object()), kv_updater(sent::restore(values, call.functions())));
    static_cast<void>(call.make_reply(0, 0));
  }
};

template <class F>
void install_updater(const remote_ref<kv_owner>& at, const F& f) {
  future_of_call<void>(send_call<F>(rpc_sending::to_value(at.handle(), {}), &updater_installer<F>::run, f)).get();
}

}  // namespace detail

template <class F>
void kv_store::set_updater(F f) const {
  static_assert(std::is_invocable_v<const F&, const store_key&, const tensor&, tensor&>,
                "muster: an updater is called as f(const store_key& key, const tensor& input, tensor& stored)");
  detail::require_sendable<typename detail::callable_parts<F>::innermost>();
  static_assert(std::tuple_size_v<typename detail::callable_parts<F>::bound> == 0,
                "muster: an updater has no bound arguments: make it a functor with a serialize function");
  for (const auto& each : detail::owners_of(*core_)) detail::install_updater(each, f);
  detail::set_updater_here(*core_, detail::kv_updater(f));
}

}  // namespace muster
