// SPDX-License-Identifier: BSL-1.0
// What a rank sends, and how it waits.
#include <muster/collectives/detail/mailbox.hpp>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>

#include "local_tensor.hpp"

namespace muster::detail {

namespace {

// There is room for one: of several that were refused before the sender looks, one is told with its own.
std::string take_reason(const outbox& ring, std::uint64_t position) {
  const auto written = ring->reasons.load(std::memory_order_acquire);
  if (written == ring->reasons_read.load(std::memory_order_relaxed) || ring->reason_of != position) {
    return "its type or shape did not fit, or it could not be copied";
  }
  std::string found(ring->reason.data(), std::min<std::size_t>(ring->reason_bytes, ring->reason.size()));
  ring->reasons_read.store(written, std::memory_order_release);
  return found;
}

// A message refused by its receiver is refused by its sender too, if he still waits; else by his next message there.
error refused_message(std::size_t to, const outbox& ring, std::uint64_t position) {
  return {errc::invalid_argument, text("a message to rank ", to, " was refused there: ", take_reason(ring, position))};
}

}  // namespace

mailbox::mailbox(std::shared_ptr<rank_end> end)
    : end_(std::move(end)), incoming_(end_->size()), outgoing_(end_->size()) {
  end_->set_before_sleep([this] { relieve_senders(); });
}

mailbox::~mailbox() = default;

void mailbox::require_peer(std::size_t peer) const {
  if (peer < end_->size()) return;
  throw error(
      errc::invalid_argument,
      text("rank ", peer, " was given to send to or receive from: the group's ranks are 0 to ", end_->size() - 1));
}

std::shared_ptr<transfer> mailbox::make(transfer::direction where, std::size_t peer, std::uint64_t tag,
                                        const tensor* what) {
  return std::allocate_shared<transfer>(recycling_allocator<transfer>(transfers_), shared_from_this(), where, peer, tag,
                                        what);
}

// ---- sending

std::shared_ptr<transfer> mailbox::send(const tensor& what, std::size_t to, std::uint64_t tag) {
  require_peer(to);
  end_->require_whole({.operation = "send", .whom = to});
  end_->use_meanwhile();
  auto made = make(transfer::direction::send, to, tag, &what);
  stage(*made);
  transfer_queue ended;
  {
    const scoped_lock lock(mutex_);
    keep_from_receives(*made);
    if (!outgoing_[to].ring) open(to);
    require_no_complaint(to);
    outgoing_[to].queued.push_back(made);
    push_queued(to, ended);
  }
  call_back(ended);
  return made;
}

// Whatever can fail, before it is in a queue: others lie behind it there. What had to be copied is its owner's alone
// again: a receiver that is dead, or does not come to it, would hold a device's memory for as long as the group lasts.
void mailbox::stage(transfer& what) {
  auto& sent = what.tensor_;
  if (sent.nbytes() > message_entry::inline_bytes) {
    sent = tensor(local_input(sent).reachable(*end_->where()));
    what.block_name_ = end_->where()->blocks().name_of(sent.storage()->block());
  } else if (!is_row(sent)) {
    sent = sent.to(device::cpu()).contiguous();
  }
  if (sent.size() > 0) what.range_ = range_of(sent);
}

void mailbox::require_no_complaint(std::size_t to) {
  auto& out = outgoing_[to];
  if (out.ring->complaints.load(std::memory_order_acquire) == out.complaints) return;
  ++out.complaints;
  throw refused_message(to, out.ring, outbox::unanswered);
}

// The receiver takes over a hold on it, so what was sent can be read when the sender has left. If it has not used
// messages yet it may wait for news of another rank only, and is woken all the same (rank_end::has_first_message).
void mailbox::open(std::size_t to) {
  auto& blocks = end_->where()->blocks();
  auto& out = outgoing_[to];
  receivers_.reserve(outgoing_.size());
  out.free_acks.resize(outbox::most_acks);
  std::iota(out.free_acks.rbegin(), out.free_acks.rend(), std::size_t{0});
  out.block = blocks.allocate_shared(sizeof(outbox::memory));
  const auto ring = outbox::make(out.block.bytes());
  out.hold = blocks.send(out.block, end_->block());
  end_->memory().link(end_->rank(), to).store(out.hold, std::memory_order_seq_cst);
  out.ring = ring;  // it is open, once nothing can fail any more
  receivers_.push_back(to);
  end_->rouse(to);
}

bool mailbox::send_now(const tensor& what, std::size_t to, std::uint64_t tag) {
  require_peer(to);
  end_->require_whole({.operation = "send", .whom = to});
  end_->use_meanwhile();
  if (what.nbytes() > message_entry::inline_bytes) return false;
  const scoped_lock lock(mutex_);
  auto& out = outgoing_[to];
  if (!out.ring || !out.queued.empty() || !has_room(out)) return false;
  require_no_complaint(to);
  auto& entry = begin_entry(out, what, tag, false);
  local_input(what).copy_to(entry.after(what.dimensions()));
  end_entry(out, to, entry);
  return true;
}

// The receiver writes that line; it is looked at only when there seems to be no room.
bool mailbox::has_room(outgoing& out) {
  if (out.position - out.taken < outbox::capacity) return true;
  out.taken = out.ring->taken.load(std::memory_order_seq_cst);
  return out.position - out.taken < outbox::capacity;
}

message_entry& mailbox::begin_entry(outgoing& out, const tensor& what, std::uint64_t tag, bool is_long) {
  auto& entry = out.ring.entry(out.position);
  entry.tag = tag;
  entry.form = message_entry::pack_form(what, is_long);
  for (std::size_t each = 0; each < what.dimensions(); ++each) entry.set_size(each, what.shape()[each]);
  return entry;
}

void mailbox::end_entry(outgoing& out, std::size_t to, message_entry& entry) {
  entry.stamp.store(++out.position, std::memory_order_seq_cst);
  end_->notify(to);
  prefetch_for_write(&out.ring.entry(out.position));  // the next comes here while nobody waits for it
}

bool mailbox::try_push(outgoing& out, std::size_t to, transfer& what) {
  const auto& sent = what.tensor_;
  const bool is_long = sent.nbytes() > message_entry::inline_bytes;
  if (!has_room(out)) return false;
  if (is_long && out.free_acks.empty()) return false;
  auto& entry = begin_entry(out, sent, what.tag_, is_long);
  auto* const body = entry.after(sent.dimensions());
  if (is_long) {
    what.ack_index_ = out.free_acks.back();
    out.free_acks.pop_back();
    what.ack_ = out.position + 1;
    const auto& block = sent.storage()->block();
    const message_entry::place where{.name = what.block_name_,
                                     .offset = static_cast<std::uint64_t>(sent.const_data() - block.data()),
                                     .ack = what.ack_index_};
    std::memcpy(body, &where, sizeof where);
  } else {
    local_input(sent).copy_to(body);
  }
  end_entry(out, to, entry);
  return true;
}

bool mailbox::push_queued(std::size_t to, transfer_queue& ended) {
  auto& out = outgoing_[to];
  bool changed = false;
  while (!out.queued.empty() && try_push(out, to, out.queued.front())) {
    auto sent = out.queued.take_first();
    changed = true;
    if (sent->ack_ != 0) {
      out.unanswered.push_back(std::move(sent));
    } else {
      end(std::move(sent), nullptr, ended);
    }
  }
  return changed;
}

bool mailbox::look_at_answers(std::size_t to, transfer_queue& ended) {
  auto& out = outgoing_[to];
  bool changed = false;
  const auto is_answered = [&](const transfer& sent) { return (answer_to(out, sent) & ~outbox::refused) == sent.ack_; };
  out.unanswered.take_all_that(is_answered, [&](std::shared_ptr<transfer> sent) {
    end_answered(to, out, std::move(sent), ended);
    changed = true;
  });
  return changed;
}

std::uint64_t mailbox::answer_to(const outgoing& out, const transfer& sent) noexcept {
  return out.ring->acks[sent.ack_index_].load(std::memory_order_seq_cst);
}

void mailbox::end_answered(std::size_t to, outgoing& out, std::shared_ptr<transfer> sent, transfer_queue& ended) {
  out.free_acks.push_back(sent->ack_index_);
  std::exception_ptr failure;
  if ((answer_to(out, *sent) & outbox::refused) != 0) {
    failure = std::make_exception_ptr(refused_message(to, out.ring, sent->ack_));
  }
  end(std::move(sent), failure, ended);
}

// ---- progress

bool mailbox::advance_all(transfer_queue& ended) {
  bool changed = false;
  for (std::size_t from = 0; from < incoming_.size(); ++from) changed |= look_at_ring(from, ended);
  for (const auto to : receivers_) {
    changed |= look_at_answers(to, ended);
    changed |= push_queued(to, ended);
  }
  return changed;
}

bool mailbox::advance() {
  transfer_queue ended;
  bool changed = false;
  {
    const scoped_lock lock(mutex_);
    changed = advance_all(ended);
  }
  call_back(ended);
  return changed;
}

void mailbox::end(std::shared_ptr<transfer> which, std::exception_ptr failure, transfer_queue& ended) {
  if (which->sends()) which->tensor_ = tensor();
  if (which->has_ended()) return;  // it was given up
  which->failure_ = std::move(failure);
  which->ended_.store(true, std::memory_order_seq_cst);
  ended.push_back(std::move(which));
}

// Others of this process may wait for what this thread has brought to its end.
void mailbox::call_back(transfer_queue& ended) {
  if (ended.empty()) return;
  end_->notify_own();
  while (const auto each = ended.take_first()) {
    for (const auto& callback : std::exchange(each->callbacks_, {})) transfer::call(callback, each->failure_);
  }
}

namespace {

waiting_for reason_of(const transfer& what, std::size_t asked) {
  return {.operation = what.name(), .whom = asked == transfer::any_source ? rank_line::anybody : asked};
}

}  // namespace

// It may come, and its sender leave, between a look and that it is known that he has.
bool mailbox::test(transfer& what) {
  if (what.test()) return true;
  const auto failure = end_->failure_of(reason_of(what, what.asked_));
  if (failure == nullptr) return copy_for_who_tests(what), false;
  if (!what.test()) give_up(what, failure);
  return true;
}

// A rank that tests in a loop waits, too, and never sleeps.
void mailbox::copy_for_who_tests(transfer& what) {
  constexpr unsigned many = 128;
  if (!what.sends()) return relieve_senders();
  if (what.tests_.fetch_add(1, std::memory_order_relaxed) >= many) absorb();
}

// A message that its receiver has been told of stays where it is until it is answered: he may be reading it.
void mailbox::give_up(transfer& what, std::exception_ptr failure) {
  decltype(what.callbacks_) callbacks;
  std::shared_ptr<transfer> taken;  // until it has been told
  {
    const scoped_lock lock(mutex_);
    if (what.has_ended()) return;
    auto& queue = what.sends() ? outgoing_[what.peer_].queued : posted_;
    taken = queue.take_first_that([&](const transfer& each) { return &each == &what; });
    if (taken != nullptr && what.sends()) what.tensor_ = tensor();
    what.failure_ = std::move(failure);
    what.ended_.store(true, std::memory_order_seq_cst);
    callbacks.swap(what.callbacks_);
  }
  end_->notify_own();
  for (const auto& each : callbacks) transfer::call(each, what.failure_);
}

// Whoever sends copies what others have sent before it sleeps, not before: mostly somebody is about to ask for it.
bool mailbox::wait(transfer& what, deadline until) {
  const bool sends = what.sends();
  bool absorbs = false;
  const auto is_over = [&] {
    if (what.has_ended()) return true;
    advance();
    if (what.has_ended()) return true;
    if (absorbs) absorb();
    return what.has_ended();
  };
  const auto reason = reason_of(what, what.asked_);
  if (end_->look_until(until, is_over, reason.whom)) return await_loss(what), true;
  absorbs = sends;
  if (!end_->wait_until(reason, until, is_over)) return false;
  await_loss(what);
  return true;
}

// Whoever is told that a rank is lost can shrink the group.
void mailbox::await_loss(const transfer& what) {
  if (what.is_lost_ && !end_->is_broken()) end_->await_loss({.operation = "receive", .whom = what.peer_});
}

// Each tells by itself when it cannot come any more: who breaks the group, or leaves, wakes everybody, and so does the
// host when somebody is dead.
bool mailbox::wait_any(std::span<work_state* const> all, deadline until) {
  const bool sends = std::any_of(all.begin(), all.end(), [](const work_state* each) {
    const auto* const message = dynamic_cast<const transfer*>(each);
    return message != nullptr && message->sends();
  });
  const auto is_over = [&] {
    return std::any_of(all.begin(), all.end(), [](work_state* each) { return each->test_or_fail(); });
  };
  if (end_->look_until(until, is_over)) return true;
  return end_->wait_here(until, [&] {
    if (is_over()) return true;
    sends ? absorb() : relieve_senders();
    return false;
  });
}

bool mailbox::cancel(transfer& what) {
  transfer_queue ended;
  {
    const scoped_lock lock(mutex_);
    if (what.has_ended()) return false;
    auto& queue = what.sends() ? outgoing_[what.peer_].queued : posted_;
    auto taken = queue.take_first_that([&](const transfer& each) { return &each == &what; });
    if (taken == nullptr) return false;
    end(std::move(taken), std::make_exception_ptr(error(errc::cancelled, text(what.describe(), " was cancelled"))),
        ended);
  }
  call_back(ended);
  return true;
}

void mailbox::then(transfer& what, std::function<void(std::exception_ptr)> callback) {
  {
    const scoped_lock lock(mutex_);
    if (!what.has_ended()) {
      what.callbacks_.push_back(std::move(callback));
      return;
    }
  }
  transfer::call(callback, what.failure_);
}

// ---- the handle's side

transfer::transfer(std::shared_ptr<mailbox> box, direction where, std::size_t peer, std::uint64_t tag,
                   const tensor* what)
    : box_(std::move(box)), direction_(where), asked_(peer), peer_(peer), tag_(tag), takes_any_shape_(what == nullptr) {
  if (what != nullptr) tensor_ = *what;
}

void transfer::require_here() const { box_->end().require_here(); }

bool transfer::test() {
  if (!has_ended()) box_->advance();
  return has_ended();
}

bool transfer::test_or_fail() { return box_->test(*this); }

bool transfer::wait(deadline until) { return box_->wait(*this, until); }

bool transfer::wait_for_any(std::span<work_state* const> all, deadline until) { return box_->wait_any(all, until); }

bool transfer::cancel() { return box_->cancel(*this); }

void transfer::then(std::function<void(std::exception_ptr)> what) { box_->then(*this, std::move(what)); }

std::size_t transfer::source() const {
  if (!sends()) return peer_;
  throw error(errc::invalid_argument, "a send has no source: ask a receive");
}

std::shared_ptr<work_home> transfer::home() { return box_->end().futures().get(); }

std::string transfer::describe() const {
  const auto whom = peer_ == any_source ? std::string("any rank") : text("rank ", peer_);
  return text(name(), sends() ? " to " : " from ", whom, " with tag ", tag_);
}

std::vector<group_member> transfer::missing() const {
  if (asked_ == any_source) return {};
  return box_->end().missing_members({.whom = asked_});
}

}  // namespace muster::detail
