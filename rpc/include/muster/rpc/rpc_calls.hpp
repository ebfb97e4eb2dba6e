// SPDX-License-Identifier: BSL-1.0
#pragma once

// Calls of an RPC group with options: `group.with({.deadline = 1s}).call("learner", score, image)`.

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <muster/async/detail/dependent_call.hpp>
#include <muster/async/future.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/remote_ref.hpp>
#include <muster/rpc/rpc_options.hpp>
#include <muster/rpc/service.hpp>

namespace muster {

/// Calls of a group with options.
///
/// Thread safety: as rpc_group.
class rpc_calls {
public:
  /// As rpc_group::call.
  template <class F, class... Args>
  auto call(const std::string& member, F f, Args&&... args) const {
    return call_async(member, std::move(f), std::forward<Args>(args)...).get();
  }
  /// As rpc_group::call_async.
  template <class F, class... Args>
  [[nodiscard]] auto call_async(const std::string& member, F f, Args&&... args) const {
    detail::check_rpc_call<F, sent_as<Args>...>();
    using function = detail::rpc_function<F, sent_as<Args>...>;
    return detail::future_of_call<typename function::result>(detail::send_call<F, sent_as<Args>...>(
        detail::rpc_sending::to_member(core_, member, how_), &function::run, f, std::forward<Args>(args)...));
  }
  /// The same, with futures among the arguments: it is sent when all of them are there, and fails as they do.
  template <class F, class... Args>
    requires(detail::is_future<Args> || ...)
  [[nodiscard]] auto call_async(const std::string& member, F f, Args&&... args) const {
    return detail::submit_when_ready(
        detail::home_of(core_),
        [calls = *this, member, f = std::move(f)]<class... Values>(Values&&... values) {
          return calls.call_async(member, f, std::forward<Values>(values)...);
        },
        std::forward<Args>(args)...);
  }
  /// As rpc_group::remote.
  template <class F, class... Args>
  [[nodiscard]] auto remote(const std::string& member, F f, Args&&... args) const {
    detail::require_sendable<typename detail::callable_parts<F>::innermost>();
    detail::require_transportable_call<F, sent_as<Args>...>();
    detail::require_invocable<F, sent_as<Args>...>();
    using maker = detail::rpc_maker<F, sent_as<Args>...>;
    static_assert(!detail::is_future<typename maker::result>,
                  "muster: remote() keeps what the function returns, and this one returns a future: wait for it there");
    static_assert(!std::is_void_v<typename maker::result>,
                  "muster: remote() keeps what the function returns, and this one returns nothing: use call()");
    detail::remote_handle made;
    static_cast<void>(detail::send_call<F, sent_as<Args>...>(detail::rpc_sending::to_maker(core_, member, how_, made),
                                                             &maker::run, f, std::forward<Args>(args)...));
    return remote_ref<typename maker::result>(std::move(made));
  }

  /// As rpc_group::call_service.
  template <class R, class... Args>
  R call_service(const std::string& name, const Args&... args) const {
    return call_service_async<R>(name, args...).get();
  }
  /// As rpc_group::call_service_async.
  template <class R, class... Args>
  [[nodiscard]] future<R> call_service_async(const std::string& name, const Args&... args) const {
    return at_once<R, Args...>(name).call_async(args...);
  }
  /// As rpc_group::remote_service.
  template <class R, class... Args>
  [[nodiscard]] remote_ref<R> remote_service(const std::string& name, const Args&... args) const {
    return at_once<R, Args...>(name).remote(args...);
  }

private:
  friend class rpc_group;
  template <class R, class... Args>
  [[nodiscard]] auto at_once(const std::string& name) const {
    using form = detail::service_form<R(sent_as<Args>...)>;
    form::check();
    return service<R(sent_as<Args>...)>(detail::find_service(core_, name, form::mark(), false)).with(how_);
  }
  rpc_calls(detail::core_ptr core, const rpc_call_options& how) : core_(std::move(core)), how_(how) {}

  detail::core_ptr core_;
  rpc_call_options how_;
};

}  // namespace muster
