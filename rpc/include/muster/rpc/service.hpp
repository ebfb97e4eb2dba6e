// SPDX-License-Identifier: BSL-1.0
#pragma once

// A service that a member of an RPC group offers by name.
//
//     auto score = group.service<float(const tensor&)>("score");
//     float z = score(image);

#include <tuple>
#include <type_traits>
#include <utility>

#include <muster/async/detail/dependent_call.hpp>
#include <muster/async/future.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/member_lost.hpp>
#include <muster/rpc/remote_ref.hpp>
#include <muster/rpc/rpc_options.hpp>

namespace muster {

namespace detail {

/// How a service is called: what travels, and what comes back.
template <class Signature>
struct service_form;
template <class R, class... Args>
struct service_form<R(Args...)> {
  using result = reply_of<sent_result<R>>;
  using frame = codec<sent_as<Args>...>;
  using sent = result(sent_as<Args>...);
  [[nodiscard]] static type_mark mark() noexcept { return mark_of<sent>(); }
  template <class F>
  static constexpr bool fits = std::is_invocable_v<F&, sent_as<Args>&&...>;

  static consteval void check() {
    (require_transportable<sent_as<Args>>(), ...);
    require_sendable_result<result>();
  }
  /// What runs `f` for a request.
  template <class F>
  [[nodiscard]] static service_function runner(F f) {
    return [f = std::make_shared<F>(std::move(f))](rpc_request& call) {
      auto values = frame::decode(call.arguments(), &call.attachments());
      call.drop_arguments();
      const auto invoke = [&]() -> decltype(auto) {
        return std::apply([&](auto&... each) -> decltype(auto) { return call_with(*f, std::move(each)...); }, values);
      };
      run_and_reply<result>(call, invoke);
    };
  }
  [[nodiscard]] static remote_ref<result> send_maker(const service_ptr& which, const rpc_call_options& how,
                                                     const sent_as<Args>&... args) {
    static_assert(!std::is_void_v<R>, "muster: remote() keeps what the service returns, and this one returns nothing");
    remote_handle made;
    auto sending = rpc_sending::to_service_maker(which, how, made);
    encode_into<sent_as<Args>...>(sending, args...);
    static_cast<void>(sending.send(mark().fingerprint));
    return remote_ref<result>(std::move(made));
  }
  [[nodiscard]] static future<result> send(const service_ptr& which, const rpc_call_options& how,
                                           const sent_as<Args>&... args) {
    auto sending = rpc_sending::to_service(which, how);
    encode_into<sent_as<Args>...>(sending, args...);
    return future_of_call<result>(sending.send(mark().fingerprint));
  }
};

/// The signature of a callable whose call is not a template.
template <class F>
struct signature_of {};
template <class F>
  requires requires { &F::operator(); }
struct signature_of<F> {
  using type = typename signature_of<decltype(&F::operator())>::type;
};
template <class R, class... Args>
struct signature_of<R (*)(Args...)> {
  using type = R(Args...);
};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...)> {
  using type = R(Args...);
};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...) const> {
  using type = R(Args...);
};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...) noexcept> {
  using type = R(Args...);
};
template <class C, class R, class... Args>
struct signature_of<R (C::*)(Args...) const noexcept> {
  using type = R(Args...);
};

template <class F>
concept has_one_signature = requires { typename signature_of<F>::type; };

}  // namespace detail

template <class Signature>
class service;

/// A service of another member, or of one's own, checked once: its arguments are converted as in a call of a function
/// of that signature. It stands for the service that has been found: when that is gone, calls throw, and the service is
/// to be looked up again.
///
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody assigns.
/// Lifetime: keeps the membership, not the group object: calls after rpc_group::leave() throw.
template <class R, class... Args>
class service<R(Args...)> {
public:
  /// What a call returns: of a service that returns a future, what that comes to.
  using result_type = typename detail::service_form<R(Args...)>::result;

  /// Stands for none: to be assigned to.
  service() noexcept = default;
  /// For the group.
  explicit service(detail::service_ptr found) noexcept : found_(std::move(found)) {}

  /// Calls it, and waits for its result. Throws what it throws, member_lost, errc::timed_out; errc::invalid_argument
  /// where it is not served any more.
  result_type operator()(const sent_as<Args>&... args) const { return call_async(args...).get(); }
  /// The same, without waiting for it.
  [[nodiscard]] future<result_type> call_async(const sent_as<Args>&... args) const {
    return detail::service_form<R(Args...)>::send(found_, how_, args...);
  }
  /// The same, with futures among the arguments: it is sent when all of them are there, and fails as they do.
  template <class... Given>
    requires(sizeof...(Given) == sizeof...(Args) && (detail::is_future<Given> || ...))
  [[nodiscard]] future<result_type> call_async(Given&&... args) const {
    return detail::submit_when_ready(
        detail::home_of(found_), [self = *this](const sent_as<Args>&... values) { return self.call_async(values...); },
        std::forward<Given>(args)...);
  }
  /// Calls it; what it returns stays with its member. Returns a reference to that at once, as rpc_group::remote does.
  [[nodiscard]] auto remote(const sent_as<Args>&... args) const {
    return detail::service_form<R(Args...)>::send_maker(found_, how_, args...);
  }
  /// The same service, called with options.
  [[nodiscard]] service with(const rpc_call_options& how) const {
    auto other = *this;
    other.how_ = how;
    return other;
  }

private:
  detail::service_ptr found_;
  rpc_call_options how_;
};

}  // namespace muster
