// SPDX-License-Identifier: BSL-1.0
#pragma once

// What kv_store's templates need.

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/params/detail/kv_updater.hpp>
#include <muster/params/kv_store.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/remote_ref.hpp>
#include <muster/serialize/callable.hpp>

namespace muster {

namespace detail {

void set_updater_at(kv_owner& owner, kv_updater by, std::uint64_t mark);
void set_updater_of(kv_core& of, const kv_updater_setter& set);

/// At an owner: takes the callable of a call for its updater, instead of calling it.
template <class F>
struct updater_installer {
  static void run(rpc_request& call) {
    using sent = sent_callable<F>;
    auto values = sent::template frame<std::uint64_t>::decode(call.arguments(), &call.attachments());
    const auto mark = std::get<std::tuple_size_v<decltype(values)> - 1>(values);
    set_updater_at(*static_cast<kv_owner*>(call.object()), kv_updater(sent::restore(values, call.functions())), mark);
    static_cast<void>(call.make_reply(0, 0));
  }
};

template <class F>
void install_updater(const remote_ref<kv_owner>& at, const F& f, std::uint64_t mark) {
  future_of_call<void>(send_call<F>(rpc_sending::to_value(at.handle(), {}), &updater_installer<F>::run, f, mark)).get();
}

}  // namespace detail

template <class F>
void kv_store::set_updater(F f) const {
  static_assert(std::is_invocable_v<const F&, const store_key&, const tensor&, tensor&>,
                "muster: an updater is called as f(const store_key& key, const tensor& input, tensor& stored)");
  detail::require_sendable<typename detail::callable_parts<F>::innermost>();
  static_assert(std::tuple_size_v<typename detail::callable_parts<F>::bound> == 0,
                "muster: an updater has no bound arguments: make it a functor with a serialize function");
  detail::set_updater_of(*core_, [f = std::move(f)](const remote_ref<detail::kv_owner>& at, std::uint64_t mark) {
    detail::install_updater(at, f, mark);
  });
}

}  // namespace muster
