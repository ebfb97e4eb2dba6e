// SPDX-License-Identifier: BSL-1.0
// Futures of calls.
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <muster/async/detail/callback_pause.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/rpc/detail/served_call.hpp>
#include <muster/rpc/detail/wait_graph.hpp>
#include <muster/serialize/exceptions.hpp>

#include "member_claim.hpp"

namespace muster::detail {

namespace {

rpc_core& core_of(const held_source& which) noexcept { return static_cast<rpc_core&>(*which.home); }
pending_call& call_of(const held_source& which) noexcept { return *static_cast<pending_call*>(which.what.get()); }

bool call_is_done(const held_source& which) {
  auto& call = call_of(which);
  if (!call.is_done()) core_of(which).reader().catch_up();
  if (!call.is_done()) core_of(which).expire(call);
  return call.is_done();
}

/// While it lives the call that this thread serves, if it serves one of the same group, waits for another one.
///
/// Thread safety: belongs to its thread.
class waiting_edge {
public:
  waiting_edge(rpc_core& core, const pending_call& call) : core_(core) {
    const auto* const serves = served_call::current();
    if (serves == nullptr || !serves->core().shares_table_with(core)) return;
    self_ = serves->id();
    other_ = {.member = static_cast<std::uint32_t>(core.index()),
              .slot = static_cast<std::uint32_t>(call.slot()),
              .generation = call.generation()};
    core.waits().set(self_, other_);
  }
  waiting_edge(const waiting_edge&) = delete;
  waiting_edge& operator=(const waiting_edge&) = delete;
  ~waiting_edge() { core_.waits().clear(self_); }

  /// Ends the call that is waited for where that would never end.
  void end_circle(pending_call& call) const {
    if (!self_.is_any()) return;
    const auto circle = core_.waits().circle_of(other_);
    if (circle.empty()) return;
    core_.calls().cancel(call, true,
                         [&](bool) { return std::make_exception_ptr(task_error(core_.deadlock_of(circle))); });
  }

private:
  rpc_core& core_;
  call_id self_;
  call_id other_;
};

// A wait that ends before the call does, by its own time, closes no circle.
bool wait_for_call(const held_source& which, deadline until) {
  auto& call = call_of(which);
  if (call.is_done()) return true;
  std::optional<waiting_edge> edge;
  if (until.when() >= call.until().when()) {
    edge.emplace(core_of(which), call);
    edge->end_circle(call);
  }
  const auto what_makes_it_may_be_behind_us = callback_pause::until(until);
  const serving_crew::pause others_serve;
  const bool ends_first = call.until().when() < until.when();
  const bool has_ended = core_of(which).reader().wait(call, ends_first ? call.until() : until);
  if (!has_ended && ends_first) core_of(which).expire(call);
  edge.reset();  // before it waits for its turn
  return call.is_done();
}

bool cancel_call(const held_source& which, cancellation how) {
  auto& core = core_of(which);
  const bool withdrawn = core.calls().cancel(call_of(which), how == cancellation::kill, [&](bool) {
    return std::make_exception_ptr(task_error(error_info(errc::cancelled, "the call was cancelled")));
  });
  if (!withdrawn) core.tell_news();  // to what watches it where it runs
  core.reader().nudge();
  core.reader().catch_up();
  return withdrawn;
}

void notify_of_call(const held_source& which, std::unique_ptr<end_notice> notice) {
  auto& core = core_of(which);
  core.calls().notify(call_of(which), std::move(notice));
  core.reader().attend();
}

void drop_call(const held_source& /*which*/) noexcept {}

bool call_runs_here(const held_source& /*which*/) noexcept { return false; }

std::function<void(cancellation)> canceller_of_call(const held_source& which) {
  return [which](cancellation how) { cancel_call(which, how); };
}

std::function<void(deadline)> waiter_of_call(const held_source& which) {
  return [which](deadline until) { static_cast<void>(wait_for_call(which, until)); };
}

void read_call(const held_source& which, const end_reader& reader) {
  auto& core = core_of(which);
  auto& call = call_of(which);
  const acting_member here(core);
  const auto frame = call.reply().frame().subspan(sizeof(reply_head));
  std::optional<error_info> failure;
  if (call.kind() == reply_kind::error) failure.emplace(codec<error_info>::decode_value(frame));
  reader.read({.bytes = frame, .attachments = &call.reply(), .failure = failure ? &*failure : nullptr});
  call.reply().reset();
}

}  // namespace

const source_functions rpc_functions{.wait = &wait_for_call,
                                     .is_done = &call_is_done,
                                     .cancel = &cancel_call,
                                     .notify = &notify_of_call,
                                     .drop = &drop_call,
                                     .runs_here = &call_runs_here,
                                     .canceller = &canceller_of_call,
                                     .waiter = &waiter_of_call,
                                     .read = &read_call};

std::exception_ptr failure_of_call(const held_source& which) {
  const auto& call = call_of(which);
  if (call.failure() != nullptr) return call.failure();
  return call.kind() == reply_kind::lost ? core_of(which).loss_of(call.peer(), call.had_begun(), call.subject())
                                         : nullptr;
}

}  // namespace muster::detail
