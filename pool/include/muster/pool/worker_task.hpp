// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include <muster/queue/detail/outgoing_frame.hpp>
#include <muster/serialize/callable.hpp>
#include <muster/serialize/detail/function_token.hpp>
#include <muster/serialize/detail/sent_callable.hpp>

namespace muster {

namespace detail {

/// What the token of a worker_task names: decodes and runs it.
using worker_task_thunk = void(std::span<const std::byte> frame, token_decoder& functions);

template <class F>
struct worker_task_code {
  using sent = sent_callable<F>;

  static void run(std::span<const std::byte> bytes, token_decoder& functions) {
    auto values = sent::template frame<>::decode(bytes);
    auto callable = sent::restore(values, functions);
    sent::apply([&](const auto&... bound) { std::invoke(callable, bound...); }, values);
  }

  static outgoing_frame encode(arena& memory, token_encoder& functions, const F& callable) {
    return sent::send(callable, functions, [&](const auto&... values) {
      return outgoing_frame::sent(memory, transfer::copy, values...);  // for any number of workers
    });
  }
};

}  // namespace detail

/// Something that every worker runs: an initializer or finalizer. Made from any callable that can be sent and called
/// without arguments; bind arguments with muster::bind_front: each worker gets copies, of tensors too. What cannot be
/// copied (events, queues) throws errc::not_serializable where the pool is made.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class worker_task {
public:
  /// Runs nothing.
  worker_task() = default;

  /// Runs `callable`. A callable that cannot be sent, or not be called without arguments, does not compile.
  template <class F>
    requires(!std::is_same_v<F, worker_task> && !std::is_null_pointer_v<F>)
  worker_task(F callable) {  // NOLINT(google-explicit-constructor): reads like an assignment of the function
    using code = detail::worker_task_code<F>;
    detail::require_sendable<typename detail::callable_parts<F>::innermost>();
    detail::require_transportable_call<F>();
    thunk_ = &code::run;
    encode_ = [callable = std::move(callable)](arena& memory, token_encoder& functions) {
      return code::encode(memory, functions, callable);
    };
  }

  [[nodiscard]] explicit operator bool() const noexcept { return thunk_ != nullptr; }
  /// For the pool, which sends the callable to its workers.
  ///@{
  [[nodiscard]] detail::worker_task_thunk* thunk() const noexcept { return thunk_; }
  [[nodiscard]] outgoing_frame encode(arena& memory, token_encoder& functions) const {
    return encode_(memory, functions);
  }
  ///@}

private:
  detail::worker_task_thunk* thunk_ = nullptr;
  std::function<outgoing_frame(arena&, token_encoder&)> encode_;
};

}  // namespace muster
