// SPDX-License-Identifier: BSL-1.0
#pragma once

// What templates ask of a member's core, which is declared only.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <muster/async/detail/typed_source.hpp>
#include <muster/async/future.hpp>
#include <muster/rpc/detail/remote_handle.hpp>
#include <muster/rpc/detail/rpc_invocation.hpp>
#include <muster/rpc/detail/rpc_request.hpp>
#include <muster/rpc/rpc_options.hpp>
#include <muster/serialize/detail/attachments.hpp>
#include <muster/serialize/detail/function_token.hpp>
#include <muster/serialize/detail/type_mark.hpp>

namespace muster::detail {

class rpc_core;
class service_state;
using core_ptr = std::shared_ptr<rpc_core>;
using service_ptr = std::shared_ptr<service_state>;

/// A call on its way: encoded, then sent.
///
/// Thread safety: an object belongs to one thread.
class rpc_sending {
public:
  /// A function at a member, by name.
  [[nodiscard]] static rpc_sending to_member(const core_ptr& core, const std::string& member,
                                             const rpc_call_options& how);
  /// The same, whose result stays there: `made` refers to it.
  [[nodiscard]] static rpc_sending to_maker(const core_ptr& core, const std::string& member,
                                            const rpc_call_options& how, remote_handle& made);
  [[nodiscard]] static rpc_sending to_service(const service_ptr& which, const rpc_call_options& how);
  /// The same, whose result stays there.
  [[nodiscard]] static rpc_sending to_service_maker(const service_ptr& which, const rpc_call_options& how,
                                                    remote_handle& made);
  [[nodiscard]] static rpc_sending to_value(const remote_handle& which, const rpc_call_options& how);

  rpc_sending(rpc_sending&& other) noexcept;
  rpc_sending& operator=(rpc_sending&&) = delete;
  ~rpc_sending();

  [[nodiscard]] token_encoder& functions();
  /// Room for the encoded arguments. To be called once.
  [[nodiscard]] std::span<std::byte> make_room(std::size_t bytes, std::size_t attachments);
  /// Where their blocks go; nullptr where they are copied.
  [[nodiscard]] attachment_sink* attachments() noexcept;
  /// Sends it, with what runs there; of a service, what it was encoded as. Waits for room, and for a member that has
  /// not joined, until the call's deadline.
  [[nodiscard]] held_source send(std::uint64_t target);

private:
  struct parts;
  explicit rpc_sending(std::unique_ptr<parts> made) noexcept;

  std::unique_ptr<parts> parts_;
};

/// Where futures of calls come from. Throws errc::invalid_argument for what stands for none.
///@{
[[nodiscard]] std::shared_ptr<future_home> home_of(const core_ptr& core);
[[nodiscard]] std::shared_ptr<future_home> home_of(const service_ptr& which);
[[nodiscard]] std::shared_ptr<future_home> home_of(const remote_handle& which);
///@}

/// Of held_sources that are calls.
extern const source_functions rpc_functions;
/// Why there is no reply; null where there is one. Requires: it has ended.
[[nodiscard]] std::exception_ptr failure_of_call(const held_source& which);

template <class R>
[[nodiscard]] outcome<R> take_of_call(const held_source& which, const typed_functions<R>& by) {
  if (auto why = failure_of_call(which)) return outcome<R>::of_failure(failure::of_library(std::move(why)));
  return take_encoded<R>(which, by);
}
template <class R>
inline constexpr typed_functions<R> rpc_source{{&rpc_functions}, &take_of_call<R>};

template <class R>
[[nodiscard]] future<R> future_of_call(held_source call) {
  return future_access::of_handle<R>({std::move(call), rpc_source<R>});
}

template <class... Ts>
void encode_into(rpc_sending& to, const Ts&... values) {
  auto* const attachments = to.attachments();
  const auto needed = codec<Ts...>::measure(attachments != nullptr, values...);
  codec<Ts...>::encode_with(to.make_room(needed.bytes, needed.attachments), attachments, values...);
}

/// Sends a call of `F` that `Thunk` runs.
template <class F, class... Args>
[[nodiscard]] held_source send_call(rpc_sending sending, rpc_thunk* thunk, const F& f, const Args&... args) {
  sent_callable<F>::send(f, sending.functions(), [&]<class... Leading>(const Leading&... leading) {
    encode_into<Leading..., Args...>(sending, leading..., args...);
  });
  return sending.send(static_cast<std::uint64_t>(sending.functions().encode(thunk)));
}

/// What a member serves by name. `run` may be called by several threads at once.
using service_function = std::function<void(rpc_request&)>;
void serve(const core_ptr& core, const std::string& name, const type_mark& type, const service_options& how,
           service_function run);
/// Looks the service up: at once, or, if it `waits`, within the time that calls have.
[[nodiscard]] service_ptr find_service(const core_ptr& core, const std::string& name, const type_mark& type,
                                       bool waits);
/// Keeps a value of this member's own.
[[nodiscard]] remote_handle keep_value(const core_ptr& core, std::shared_ptr<void> value);
void publish_value(const core_ptr& core, const std::string& name, const type_mark& type, const remote_handle& which);
[[nodiscard]] remote_handle find_value(const core_ptr& core, const std::string& name, const type_mark& type,
                                       bool waits);

}  // namespace muster::detail
