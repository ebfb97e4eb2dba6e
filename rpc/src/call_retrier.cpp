// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/call_retrier.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <muster/base/detail/retry_delay.hpp>
#include <muster/base/error.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/detail/outgoing_message.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

#include "request_push.hpp"

namespace muster::detail {

// Where there is no memory for that, the call ends.
void call_retrier::repeat(call_ptr call, std::shared_ptr<call_retry> how) noexcept {
  try {
    add(call, std::move(how));
  } catch (...) {
    core_.calls().fail(*call, [](bool) { return std::current_exception(); });
  }
}

void call_retrier::add(call_ptr call, std::shared_ptr<call_retry> how) {
  {
    const scoped_lock lock(mutex_);
    if (stopped_) return;
    const auto due = later(clock::now(), retry_delay(how->first_delay(), how->attempt(), jitter_));
    resting_.push_back({.call = std::move(call), .how = std::move(how), .due = due});
    has_new_ = true;
    if (!thread_.joinable()) {
      thread_ = start_thread([this] { watch(); });
    }
  }
  core_.tell_news();
}

void call_retrier::watch() noexcept {
  try {
    for (;;) {
      static_cast<void>(core_.await_news([this] { return has_work(); }, next_due()));
      look_at_all();
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the member has left
  }
}

bool call_retrier::has_work() {
  const scoped_lock lock(mutex_);
  return stopped_ || has_new_ ||
         std::any_of(resting_.begin(), resting_.end(), [&](const resting& each) { return is_ready(each); });
}

deadline call_retrier::next_due() {
  const scoped_lock lock(mutex_);
  auto first = deadline::never();
  const auto now = clock::now();
  for (const auto& each : resting_) {
    const auto over = each.call->until().when();
    const auto next = each.due > now ? std::min(each.due, over) : over;  // its time has come: its member is awaited
    if (next < first.when()) first = deadline(next);
  }
  return first;
}

bool call_retrier::is_ready(const resting& which) const {
  if (which.call->is_done() || which.call->until().expired()) return true;
  if (clock::now() < which.due) return false;
  try {
    return route_of(*which.call, *which.how).has_value();
  } catch (const std::exception&) {
    return true;  // that is its end
  }
}

void call_retrier::look_at_all() {
  std::vector<resting> all;
  {
    const scoped_lock lock(mutex_);
    if (stopped_) throw error(errc::invalid_argument, "the member has left");
    has_new_ = false;
    all.swap(resting_);
  }
  std::erase_if(all, [this](const resting& each) { return try_to_send(each); });
  const scoped_lock lock(mutex_);
  for (auto& each : all) resting_.push_back(std::move(each));
}

// False where it is too early for that. Where that has ended the call, the threads that wait for it are told.
bool call_retrier::try_to_send(const resting& which) {
  auto& call = *which.call;
  core_.expire(call);
  if (call.is_done()) return true;
  if (clock::now() < which.due) return false;
  try {
    const auto to = route_of(call, *which.how);
    if (to) send(call, *which.how, *to);
    if (call.is_done()) core_.reader().nudge();
    return to.has_value();
  } catch (...) {
    core_.calls().fail(call, [](bool) { return std::current_exception(); });
    core_.reader().nudge();
    return true;
  }
}

// No other thread changes the peer of a call that rests.
std::optional<call_retrier::route> call_retrier::route_of(const pending_call& call, const call_retry& how) const {
  const auto& table = core_.table();
  route to{.peer = call.peer()};
  std::memcpy(&to.object, how.frame.data() + offsetof(request_head, object), sizeof to.object);
  if (!how.service.empty()) {
    const auto found = core_.look_up(named_kind::service, how.service);
    if (!found) return std::nullopt;
    if (found->type != how.service_type) {
      throw error(errc::invalid_argument, text("'", how.service, "' is served by '", table.name_of(found->member),
                                               "' now as another type than that of the call that is tried again"));
    }
    return route{.peer = core_.owner_of(*found), .object = found->object};
  }
  const bool is_actor = to.peer.member >= table.shape().named;
  if (call.subject().kind == request_kind::method && !is_actor) {
    if (core_.is_gone(to.peer)) std::rethrow_exception(core_.loss_of(to.peer, true, call.subject()));
    return to;
  }
  const auto found = member_view::of(table, to.peer.member);
  if (is_actor && !is_kept_actor(table, to.peer.member) && !found.is_here(core_.where())) {
    std::rethrow_exception(core_.loss_of(to.peer, true, call.subject()));
  }
  if (!found.is_here(core_.where())) return std::nullopt;
  if (!found.serves) core_.throw_only_calls(to.peer.member, call.subject());
  to.peer = {.member = to.peer.member, .incarnation = found.incarnation, .who = found.who};
  return to;
}

void call_retrier::send(pending_call& call, const call_retry& how, const route& to) {
  const auto ring = core_.requests_of(to.peer.member);
  outgoing_message message(*ring);
  const auto room = message.make_room(how.frame.size(), how.blocks.size());
  std::memcpy(room.data(), how.frame.data(), how.frame.size());
  for (const auto& each : how.blocks) static_cast<void>(message.attach(each));
  const auto generation = core_.calls().begin_again(call, to.peer);
  if (!generation) return;
  request_head head;
  std::memcpy(&head, room.data(), sizeof head);
  head.object = to.object;
  head.slot = static_cast<std::uint32_t>(call.slot());
  head.generation = *generation;
  head.incarnation = to.peer.incarnation;
  std::memcpy(room.data(), &head, sizeof head);
  core_.table().calls_of(core_.index())[call.slot()].object.store(head.object, std::memory_order_relaxed);
  message.finish();
  push_request(core_, message, call, to.peer, *generation);
}

void call_retrier::stop() noexcept {
  std::thread ended;
  {
    const scoped_lock lock(mutex_);
    stopped_ = true;
    ended = std::move(thread_);
  }
  core_.tell_news();
  if (ended.joinable()) ended.join();
  const scoped_lock lock(mutex_);
  resting_.clear();
}

}  // namespace muster::detail
