// SPDX-License-Identifier: BSL-1.0
#include "graph_exchange.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/graph_form.hpp>

namespace muster::detail {

graph_link::ticket graph_exchange::start(half what) {
  scoped_lock lock(mutex_);
  require_none_gave_up();
  auto& added = unused();
  added.what = std::move(what);
  added.number = ++started_;
  const auto ticket = static_cast<graph_link::ticket>(&added - transfers_.data()) + 1;
  auto* const partner = partner_of(added.what);
  if (partner == nullptr) {
    added.state = phase::open;
    return ticket;
  }
  added.what.sends ? bring_together(added, *partner) : bring_together(*partner, added);
  lock.unlock();  // whoever is woken wants it
  changed_.notify_all();
  return ticket;
}

graph_exchange::transfer& graph_exchange::unused() {
  const auto is_unused = [](const transfer& each) { return each.state == phase::unused; };
  const auto found = std::find_if(transfers_.begin(), transfers_.end(), is_unused);
  return found != transfers_.end() ? *found : transfers_.emplace_back();
}

// The oldest that waits for it.
graph_exchange::transfer* graph_exchange::partner_of(const half& what) {
  transfer* oldest = nullptr;
  for (auto& each : transfers_) {
    const bool fits = each.state == phase::open && each.what.from == what.from && each.what.to == what.to &&
                      each.what.tag == what.tag && each.what.sends != what.sends;
    if (fits && (oldest == nullptr || each.number < oldest->number)) oldest = &each;
  }
  return oldest;
}

void graph_exchange::bring_together(transfer& send, transfer& receive) {
  const auto given = graph_form::of(send.what.elements);
  const auto room = graph_form::of(receive.what.elements);
  if (given == room) {
    receive.what.elements.copy_from(send.what.elements);
    send.state = receive.state = phase::done;
    return;
  }
  send.problem = receive.problem = text("rank ", send.what.from, " sends ", given, " to rank ", send.what.to, ", tag ",
                                        send.what.tag, ", which receives it as ", room, ": both must be the same");
  send.state = receive.state = phase::refused;
}

bool graph_exchange::take(transfer& which) {
  if (which.state == phase::open) return false;
  which.what.elements = {};
  if (std::exchange(which.state, phase::unused) == phase::done) return true;
  throw error(errc::invalid_argument, std::exchange(which.problem, {}));
}

bool graph_exchange::test(graph_link::ticket which) { return wait(which, deadline(clock::time_point())); }

bool graph_exchange::wait(graph_link::ticket which, deadline until) {
  scoped_lock lock(mutex_);
  while (!take(transfers_.at(which - 1))) {
    require_none_gave_up();
    if (until.expired()) return false;
    changed_.wait_until(lock, until);
  }
  return true;
}

void graph_exchange::abort(int rank, std::string_view why) noexcept {
  const scoped_lock lock(mutex_);
  if (aborted_) return;
  aborted_ = true;
  try {
    why_ = text("rank ", rank, " gave up: ", why);
  } catch (const std::bad_alloc&) {
    why_.clear();
  }
  changed_.notify_all();
}

void graph_exchange::require_none_gave_up() {
  if (aborted_) throw error(errc::cancelled, text("a message between ranks was cancelled: ", why_));
}

}  // namespace muster::detail
