// SPDX-License-Identifier: BSL-1.0
#include <muster/params/detail/kv_wire.hpp>

#include <exception>
#include <memory>
#include <tuple>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/params/detail/kv_members.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

namespace {

using push_frame = codec<store_key, std::size_t, std::uint64_t, kv_gradient>;

void answer(deferred_reply& to, const kv_answer& what, const error_info* failure) noexcept {
  if (!to.try_begin()) return;
  try {
    if (failure != nullptr) return to.fail(*failure);
    reply_with<kv_answer>(to, what);
    to.send();
  } catch (...) {
    to.fail(capture_current_exception());
  }
}

// At the owner.
void take_push(rpc_request& call) {
  auto [key, rank, number, gradient] = push_frame::decode(call.arguments(), &call.attachments());
  call.drop_arguments();
  const auto later = call.defer();
  try {
    static_cast<kv_owner*>(call.object())
        ->push(key, {.rank = rank, .number = number, .gradient = std::move(gradient)},
               [later](const kv_answer& what, const error_info* failure) { answer(*later, what, failure); });
  } catch (const owner_leaves&) {
    if (later->try_begin()) later->fail(error_info(errc::peer_lost, "the owner of the key leaves"));
  } catch (...) {
    if (later->try_begin()) later->fail(capture_current_exception());
  }
}

}  // namespace

future<kv_answer> send_push(const remote_ref<kv_owner>& to, const rpc_call_options& how, const store_key& key,
                            const kv_push& what) {
  auto sending = rpc_sending::to_value(to.handle(), how);
  encode_into<store_key, std::size_t, std::uint64_t, kv_gradient>(sending, key, what.rank, what.number, what.gradient);
  return future_of_call<kv_answer>(sending.send(static_cast<std::uint64_t>(sending.functions().encode(&take_push))));
}

}  // namespace muster::detail
