// SPDX-License-Identifier: BSL-1.0
#include "request_push.hpp"

#include <exception>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

namespace {

queue_result wait_for_room(rpc_core& core, outgoing_message& message, const call_peer& peer, deadline until) {
  struct question {
    const rpc_core& core;
    const call_peer& peer;
  } asked{.core = core, .peer = peer};
  const auto is_over = [](void* of) {
    const auto& found = *static_cast<question*>(of);
    return found.core.has_left() || found.core.is_gone(found.peer);
  };
  core.ask_for_attention(peer.member);  // the sender that has filled it may have died before that
  const serving_crew::pause others_serve;
  return message.push(until, is_over, &asked);
}

std::exception_ptr no_room_in(const rpc_core& core, const call_peer& peer, const call_subject& what) {
  return std::make_exception_ptr(task_error(
      error_info(errc::timed_out, text(what.in_words(), " was not sent in time: the inbox of '",
                                       core.table().name_of(peer.member), "' is full (rpc_ticket_options::inbox)"))));
}

}  // namespace

// A sender that finds only behind this that the member is gone takes the request back, if it can be: a member that has
// left answers what has begun, and one that is dead may have answered before.
void push_request(rpc_core& core, outgoing_message& message, pending_call& call, const call_peer& peer,
                  std::uint32_t generation) {
  auto found = message.try_push();
  if (found == queue_result::not_now) found = wait_for_room(core, message, peer, call.until());
  if (found == queue_result::done) core.ask_for_attention(peer.member);
  if (found == queue_result::not_now) {
    core.calls().fail(call, [&](bool) { return no_room_in(core, peer, call.subject()); });
  } else if (core.is_gone(peer)) {
    core.calls().lose(call, generation, [&](bool had_begun) { return core.loss_of(peer, had_begun, call.subject()); });
    core.reader().look_again();
  }
}

}  // namespace muster::detail
