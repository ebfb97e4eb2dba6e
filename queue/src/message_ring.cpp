// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/message_ring.hpp>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include <muster/base/assert.hpp>
#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/memory/detail/wait/wait_protocol.hpp>
#include <muster/memory/domain.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/queue/message_protocol.hpp>

#include "queue_keeper.hpp"

namespace muster {

namespace {

using finding = message_protocol::look::finding;

}  // namespace

std::shared_ptr<message_ring> message_ring::make(queue_kind kind, std::size_t capacity, const queue_options& options) {
  auto where = domain::of_program();
  if (where->self() != participant_id::host) {
    throw error(errc::invalid_argument, text("a queue of ", capacity,
                                             " messages was asked for in a worker, who cannot repair it when others "
                                             "die: make it in the program, and pass it to the task as an argument"));
  }
  const auto spin = options.spin ? *options.spin : spin_policy::of_process().budget;
  const auto shape = ring_shape::of(kind, capacity, options.inline_bytes, spin);
  where->keepsakes().tidy_some();
  auto memory = where->blocks().allocate_shared(shape.total_bytes());
  const auto ring = ring_memory::make(memory.bytes(), shape);
  where->keepsakes().add(std::make_unique<queue_keeper>(*where, memory, ring), memory.data());
  return std::shared_ptr<message_ring>(new message_ring(std::move(where), std::move(memory), ring));
}

// A queue of another domain has its sleepers, its dead and its keeper there.
std::shared_ptr<message_ring> message_ring::attach(queue_kind kind, shared_block memory) {
  const auto ring = ring_memory::attach(memory.bytes(), kind);
  auto where = domain::of_program();
  if (memory.owner() != &where->blocks()) {
    throw error(
        errc::invalid_argument,
        text("a queue of ", ring.capacity(),
             " messages was received that lies in another domain than this program's: only those who share a domain "
             "can share its queues. ",
             detail::why_apart(where->blocks(), *memory.owner())));
  }
  return std::shared_ptr<message_ring>(new message_ring(std::move(where), std::move(memory), ring));
}

message_ring::message_ring(std::shared_ptr<domain> where, shared_block memory, const ring_memory& ring) noexcept
    : domain_(std::move(where)), self_(domain_->self()), block_(std::move(memory)), ring_(ring) {}

// Not in a forked child: another thread of its parent may have had the locks when it was forked.
message_ring::~message_ring() {
  const void* const subject = block_.data();
  block_.reset();
  if (self_ == participant_id::host && is_here()) domain_->keepsakes().tidy_some(subject);
}

// The next cell is most likely the next that this thread uses, and another processor has it: it comes while this one is
// being used.
void message_ring::fetch_next(ring_position at) const noexcept {
  const auto next = at.next(capacity()).index();
  prefetch_for_write(&ring_.cell(next));
  prefetch_for_write(ring_.room(next).data() + 48);
}

// ---- pushing

// Closed is looked at again behind the claim: whoever has closed the queue and then finds no cell being written knows
// that no message comes any more.
queue_result message_ring::try_push(const message_view& what) {
  if (is_closed()) return queue_result::closed;
  const auto at = message_protocol::claim_empty(ring_, self_);
  if (!at) {
    require_sound(message_protocol::find_damage_at_tail(ring_));
    return queue_result::not_now;
  }
  fetch_next(*at);
  if (is_closed()) {
    free_cell(*at);
    return queue_result::closed;
  }
  write(*at, what);
  message_protocol::make_ready(ring_, *at);
  tell(ring_.producer(), *at);
  for (const auto name : what.holds) memory().entrust(name, self_);
  if (wait_protocol::is_awaited(ring_.items())) wake_one(ring_.items());
  wake_next_producer();
  return queue_result::done;
}

void message_ring::write(ring_position at, const message_view& what) noexcept {
  MUSTER_ASSERT(what.bytes.size() <= inline_bytes());
  ring_.set_form(at.index(), what.form);
  std::memcpy(ring_.room(at.index()).data(), what.bytes.data(), what.bytes.size());
}

queue_result message_ring::push(const message_view& what, deadline until) {
  const auto first = try_push(what);
  if (first != queue_result::not_now) return first;
  return wait_for({.word = ring_.space(), .own = ring_.producer(), .other = ring_.consumer()}, until,
                  [&] { return try_push(what); });
}

queue_result message_ring::push(const message_view& what, deadline until, bool (*is_over)(void* of), void* of) {
  const auto attempt = [&] {
    const auto found = try_push(what);
    return found == queue_result::not_now && is_over(of) ? queue_result::interrupted : found;
  };
  const auto first = attempt();
  if (first != queue_result::not_now) return first;
  return wait_for({.word = ring_.space(), .own = ring_.producer(), .other = ring_.consumer()}, until, attempt);
}

// ---- taking

// Closed is looked at first: what was pushed before it was closed is found then.
queue_result message_ring::try_claim(ring_position& at) {
  const bool ends = is_closed();
  const auto found = message_protocol::claim_ready(ring_, self_);
  at = found.at;
  if (found.what == finding::ready) {
    fetch_next(found.at);
    tell(ring_.consumer(), found.at);
    wake_next_consumer();
    return queue_result::done;
  }
  require_sound(message_protocol::find_damage_at_head(ring_));
  return ends && found.what == finding::nothing ? queue_result::closed : queue_result::not_now;
}

queue_result message_ring::claim(ring_position& at, deadline until) {
  const auto first = try_claim(at);
  if (first != queue_result::not_now) return first;
  return wait_for({.word = ring_.items(), .own = ring_.consumer(), .other = ring_.producer()}, until,
                  [&] { return try_claim(at); });
}

queue_result message_ring::claim(ring_position& at, deadline until, bool (*is_over)(void* of), void* of) {
  const auto attempt = [&] {
    const auto found = try_claim(at);
    return found == queue_result::not_now && is_over(of) ? queue_result::interrupted : found;
  };
  const auto first = attempt();
  if (first != queue_result::not_now) return first;
  return wait_for({.word = ring_.items(), .own = ring_.consumer(), .other = ring_.producer()}, until, attempt);
}

// Who waits for the end of a closed queue waits for the last message to be gone.
void message_ring::free_cell(ring_position at) noexcept {
  message_protocol::make_empty(ring_, at);
  if (wait_protocol::is_awaited(ring_.space())) wake_one(ring_.space());
  if (is_closed()) wake_all(ring_.items());
}

void message_ring::put_back(ring_position at) noexcept {
  message_protocol::make_ready(ring_, at);
  if (wait_protocol::is_awaited(ring_.items())) wake_one(ring_.items());
}

// ---- waiting

// Of several on one side each would tell another place each time, and take the line from all who look at it.
void message_ring::tell(place_word& own, ring_position at) const noexcept {
  constexpr std::size_t seldom = 16;
  if (ring_.shape().kind == queue_kind::p2p || at.index() % seldom == 0) tell_place(own);
}

template <class Attempt>
queue_result message_ring::wait_for(side where, deadline until, Attempt attempt) const {
  auto found = queue_result::not_now;
  const auto has_ended = [&] {
    found = attempt();
    return found != queue_result::not_now;
  };
  const auto prepare = [&](sleep_words& words) {
    words.announce(where.word);
    if (has_ended()) return last_look::over;
    require_sound(message_protocol::find_damage_at_tail(ring_));  // nor does anything come from the other side then
    require_sound(message_protocol::find_damage_at_head(ring_));
    return last_look::nothing;
  };
  const sleeper here(*domain_, {.spin = ring_.shape().spin}, where.own);
  return here.wait_on<1>(has_ended, prepare, [&] { return prospect_of(where.other); }, until) ? found : attempt();
}

// Who looks in vain looks at his own side only, because the other side's hint is on a line that others write to.
void message_ring::require_sound(std::optional<ring_position> damaged) const {
  if (!damaged) return;
  const message_word found(ring_.cell(damaged->index()).load(std::memory_order_relaxed));
  const auto head = ring_.head();
  const auto tail = ring_.tail();
  wake_all(ring_.items());
  wake_all(ring_.space());
  throw error(errc::corrupted,
              text("a queue of ", capacity(), " messages cannot go on: cell ", damaged->index(), " says lap ",
                   found.lap(), ", owner ", index_of(found.owner()), ", state ", static_cast<unsigned>(found.state()),
                   ", while the head is at cell ", head.index(), " of lap ", head.lap(), " and the tail at cell ",
                   tail.index(), " of lap ", tail.lap(), ": somebody has overwritten it; make another queue"));
}

void message_ring::wake_one(ring_memory::wait_word& word) const noexcept {
  const auto raised = wait_protocol::raise(word);
  if (futex_wake(futex_address(word), 1, futex_scope::shared) == 0) wait_protocol::withdraw(word, raised);
}

void message_ring::wake_all(ring_memory::wait_word& word) const noexcept {
  static_cast<void>(wait_protocol::raise(word));
  futex_wake(futex_address(word), INT_MAX, futex_scope::shared);
}

// The wake for what is still there may have gone to one who could not reach it then.
void message_ring::wake_next_consumer() noexcept {
  if (!wait_protocol::is_awaited(ring_.items())) return;
  if (message_protocol::find_ready(ring_, self_).what == finding::ready) wake_one(ring_.items());
}

void message_ring::wake_next_producer() noexcept {
  if (!wait_protocol::is_awaited(ring_.space())) return;
  if (message_protocol::find_empty(ring_)) wake_one(ring_.space());
}

void message_ring::rouse() noexcept {
  wake_all(ring_.items());
  wake_all(ring_.space());
}

void message_ring::close() noexcept {
  ring_.closed().exchange(1, std::memory_order_seq_cst);
  wake_all(ring_.items());
  wake_all(ring_.space());
}

bool message_ring::is_closed() const noexcept { return ring_.closed().load(std::memory_order_seq_cst) != 0; }

// What was freed out of order, or by whoever buried its producer, is passed by the next look for a message only.
arena& message_ring::memory() const noexcept { return domain_->blocks(); }

std::size_t message_ring::size() const noexcept {
  auto head = ring_.head();
  const auto behind = std::max<std::int64_t>(ring_.tail().ahead_of(head, capacity()), 0);
  auto waiting = std::min(static_cast<std::size_t>(behind), capacity());
  const auto is_past = [&] {
    const message_word found(ring_.cell(head.index()).load(std::memory_order_acquire));
    return laps_ahead(found.lap(), head.lap()) > 0;
  };
  for (; waiting > 0 && is_past(); --waiting) head = head.next(capacity());
  return waiting;
}

}  // namespace muster
