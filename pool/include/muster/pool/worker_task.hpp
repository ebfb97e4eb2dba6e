// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <tuple>
#include <utility>

#include <muster/queue/outgoing_frame.hpp>
#include <muster/serialize/callable.hpp>
#include <muster/serialize/function_token.hpp>

namespace muster {

namespace detail {

/// What the token of a worker_task names: decodes and runs it.
using worker_task_thunk = void(std::span<const std::byte> frame, token_decoder& functions);

template <class Callable, class Sent, class Bound>
struct worker_task_code;

template <class Callable, class... Sent, class... Bound>
struct worker_task_code<Callable, std::tuple<Sent...>, std::tuple<Bound...>> {
  using frame = codec<Sent..., Bound...>;

  static void run(std::span<const std::byte> bytes, token_decoder& functions) {
    auto values = frame::decode(bytes);
    [&]<std::size_t... S, std::size_t... B>(std::index_sequence<S...>, std::index_sequence<B...>) {
      std::tuple<Sent...> sent{std::move(std::get<S>(values))...};
      auto callable = callable_wire<Callable>::restore(sent, functions);
      std::invoke(callable, std::as_const(std::get<sizeof...(Sent) + B>(values))...);
    }(std::index_sequence_for<Sent...>{}, std::index_sequence_for<Bound...>{});
  }

  static outgoing_frame encode(arena& memory, const std::tuple<Sent...>& sent, const std::tuple<Bound...>& bound) {
    const auto all = std::tuple_cat(std::apply([](const auto&... each) { return std::tie(each...); }, sent),
                                    std::apply([](const auto&... each) { return std::tie(each...); }, bound));
    return std::apply([&](const auto&... each) { return outgoing_frame::of<Sent..., Bound...>(memory, each...); }, all);
  }
};

}  // namespace detail

/// Something that every worker runs: an initializer or finalizer. Made from any callable that can be sent and called
/// without arguments; bind arguments with muster::bind_front.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class worker_task {
public:
  worker_task() = default;

  template <class F>
    requires(!std::is_same_v<F, worker_task> && !std::is_null_pointer_v<F>)
  worker_task(F callable) {  // NOLINT(google-explicit-constructor): reads like an assignment of the function
    using parts = detail::callable_parts<F>;
    using innermost = typename parts::innermost;
    detail::require_sendable<innermost>();
    detail::require_transportable_call<F>();
    using code =
        detail::worker_task_code<innermost, typename detail::callable_wire<innermost>::sent, typename parts::bound>;
    thunk_ = &code::run;
    encode_ = [callable = std::move(callable)](arena& memory, token_encoder& functions) {
      return code::encode(memory, detail::callable_wire<innermost>::send(parts::callable_of(callable), functions),
                          parts::bound_of(callable));
    };
  }

  [[nodiscard]] explicit operator bool() const noexcept { return thunk_ != nullptr; }
  [[nodiscard]] detail::worker_task_thunk* thunk() const noexcept { return thunk_; }
  [[nodiscard]] outgoing_frame encode(arena& memory, token_encoder& functions) const {
    return encode_(memory, functions);
  }

private:
  detail::worker_task_thunk* thunk_ = nullptr;
  std::function<outgoing_frame(arena&, token_encoder&)> encode_;
};

}  // namespace muster
