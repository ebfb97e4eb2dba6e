// SPDX-License-Identifier: BSL-1.0
// What a rank receives.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/combine.hpp>
#include <muster/collectives/detail/mailbox.hpp>
#include <muster/device/detail/stores.hpp>

#include "broken_word.hpp"
#include "local_tensor.hpp"

namespace muster::detail {

namespace {

// What is kept for messages to come. How many wait at once depends on who is late: so there are more from the first on
// than just as many as have come.
constexpr std::size_t arrivals_at_once = 16;
constexpr std::size_t most_spare = 1024;
constexpr std::size_t most_spare_copies = 256;
constexpr std::size_t most_spare_bytes = std::size_t{64} << 20U;
// What is copied at once of a sender that can tell of nothing more. It goes on with the first; short messages one by
// one would take a sleep each.
constexpr std::size_t most_absorbed = 32;
constexpr std::size_t most_absorbed_bytes = std::size_t{1} << 20U;

// Of a short message. Its sender may say anything: more than there can be is never much more here.
std::size_t short_bytes(dtype type, const tensor_shape& shape) {
  constexpr auto too_many = message_entry::inline_bytes + 1;
  std::size_t bytes = dtype_size(type);
  for (const std::size_t size : shape) bytes = std::min(too_many, bytes * std::min(size, too_many));
  return bytes;
}

// Lets go of what a handle has kept, but not of the handle.
class borrowed_again {
public:
  borrowed_again(arena& blocks, const shared_block& which) : blocks_(blocks), which_(which) {}
  borrowed_again(const borrowed_again&) = delete;
  borrowed_again& operator=(const borrowed_again&) = delete;
  ~borrowed_again() {
    if (which_) blocks_.unkeep(which_);
  }

private:
  arena& blocks_;
  const shared_block& which_;
};

void put_elements(const tensor& into, const std::byte* elements) {
  const auto bytes = into.nbytes();
  local_output to(into);
  copy(to.contiguous(), elements, bytes, stores_for(bytes));
  to.finish();
}

}  // namespace

std::shared_ptr<transfer> mailbox::receive(const tensor* into, std::size_t from, std::uint64_t tag) {
  if (from != transfer::any_source) require_peer(from);
  end_->use_meanwhile();
  auto made = make(transfer::direction::receive, from, tag, into);
  if (into != nullptr && into->size() > 0) made->range_ = range_of(*into);
  transfer_queue ended;
  {
    const scoped_lock lock(mutex_);
    if (into != nullptr) keep_from_transfers(*made);
    if (!meet_arrival(made, ended)) posted_.push_back(made);
  }
  call_back(ended);
  return made;
}

// The oldest that fits. What lies in the rings still is newer.
bool mailbox::meet_arrival(const std::shared_ptr<transfer>& what, transfer_queue& ended) {
  std::size_t from = 0;
  std::optional<arrival_list::iterator> oldest;
  for (std::size_t rank = 0; rank < incoming_.size(); ++rank) {
    if (what->peer_ != transfer::any_source && what->peer_ != rank) continue;
    auto& waiting = incoming_[rank].waiting;
    const auto found =
        std::find_if(waiting.begin(), waiting.end(), [&](const arrival& each) { return each.tag == what->tag_; });
    if (found == waiting.end() || (oldest && (*oldest)->order < found->order)) continue;
    oldest = found;
    from = rank;
  }
  if (!oldest) return false;
  arrival_list met;
  met.splice(met.end(), incoming_[from].waiting, *oldest);
  if (met.front().ack) --incoming_[from].unanswered;
  deliver(from, met.front(), what, ended);
  put_back(std::move(met));
  return true;
}

mailbox::arrival_list mailbox::spare_arrival() {
  if (spare_arrivals_.empty()) spare_arrivals_.resize(arrivals_at_once);
  arrival_list one;
  one.splice(one.end(), spare_arrivals_, std::prev(spare_arrivals_.end()));  // the last used is in the caches
  return one;
}

void mailbox::put_back(arrival_list used) {
  for (auto& each : used) put_back(std::exchange(each.copy, tensor()));
  if (spare_arrivals_.size() < most_spare) spare_arrivals_.splice(spare_arrivals_.end(), used);
}

// A program that does the same over and over is sent tensors of the same forms.
tensor mailbox::spare_copy(dtype type, const tensor_shape& shape) {
  const auto fits = [&](const tensor& each) { return each.dtype() == type && each.shape() == shape; };
  const auto found = std::find_if(spare_copies_.begin(), spare_copies_.end(), fits);
  if (found == spare_copies_.end()) return tensor::empty(type, shape, memory::local);
  auto taken = std::move(*found);
  spare_copies_.erase(found);
  spare_bytes_ -= taken.nbytes();
  return taken;
}

void mailbox::put_back(tensor used) {
  const auto bytes = used.nbytes();
  if (used.storage() == nullptr || bytes > most_spare_bytes) return;
  while (spare_copies_.size() == most_spare_copies || spare_bytes_ > most_spare_bytes - bytes) {
    spare_bytes_ -= spare_copies_.front().nbytes();
    spare_copies_.erase(spare_copies_.begin());
  }
  spare_copies_.push_back(std::move(used));
  spare_bytes_ += bytes;
}

// Nothing was sent yet, or who sent it is dead, or has taken it back: then nothing.
shared_block mailbox::take_link(std::size_t from) {
  auto& link = end_->memory().link(from, end_->rank());
  auto hold = link.load(std::memory_order_seq_cst);
  if (hold == 0 || hold == group_memory::link_taken) return {};
  if (!link.compare_exchange_strong(hold, group_memory::link_taken)) return {};
  try {
    return end_->where()->blocks().receive(hold);
  } catch (const error&) {
    return {};
  }
}

bool mailbox::attach(std::size_t from) {
  auto& in = incoming_[from];
  if (in.ring) return true;
  in.block = take_link(from);
  if (!in.block) return false;
  in.ring = outbox::attach(in.block.bytes());
  return true;
}

bool mailbox::look_at_ring(std::size_t from, transfer_queue& ended) {
  if (closed_ || !attach(from)) return false;
  auto& in = incoming_[from];
  bool changed = false;
  for (;;) {
    const auto& entry = in.ring.entry(in.position);
    if (entry.stamp.load(std::memory_order_seq_cst) != in.position + 1) break;
    take(from, entry, ended);
    pass_entry(from);
    changed = true;
  }
  return changed;
}

// The sender may wait for room.
void mailbox::pass_entry(std::size_t from) {
  auto& in = incoming_[from];
  if (++in.position - in.told < outbox::most_untold) return;
  in.told = in.position;
  in.ring->taken.store(in.told, std::memory_order_seq_cst);
  end_->notify(from);
}

bool mailbox::receive_soon(const tensor& into, std::size_t from, std::uint64_t tag) {
  constexpr int looks_at_once = 8;
  if (from == transfer::any_source || into.nbytes() > message_entry::inline_bytes) return false;
  require_peer(from);
  end_->use_meanwhile();
  if (contention::of_this_thread().is_on() || end_->ask(from) == prospect::futile) return false;
  for (int look = 0; look < end_->looks(); look += looks_at_once) {
    const scoped_lock lock(mutex_);
    for (int each = 0; each < looks_at_once; ++each) {
      const auto found = take_short(into, from, tag);
      if (found != find::nothing) return found == find::taken;
      relax_processor();
    }
  }
  return false;
}

// Straight from the ring. Whatever is not as simple as that goes the way of all messages.
mailbox::find mailbox::take_short(const tensor& into, std::size_t from, std::uint64_t tag) {
  auto& in = incoming_[from];
  if (closed_ || !posted_.empty() || !in.waiting.empty() || !attach(from)) return find::another;
  const auto& entry = in.ring.entry(in.position);
  if (entry.stamp.load(std::memory_order_acquire) != in.position + 1) return find::nothing;
  bool fits = entry.tag == tag && entry.form == message_entry::pack_form(into, false);
  for (std::size_t each = 0; each < into.dimensions(); ++each) fits &= entry.size_of(each) == into.shape()[each];
  if (!fits || !is_row(into) || is_being_sent(into)) return find::another;
  if (into.size() > 0) std::memcpy(into.data(), entry.after(into.dimensions()), into.nbytes());
  pass_entry(from);
  return find::taken;
}

void mailbox::take(std::size_t from, const message_entry& entry, transfer_queue& ended) {
  auto& in = incoming_[from];
  auto taken = spare_arrival();
  auto& message = taken.front();
  message.order = ++arrivals_;
  if (!read(entry, in.position + 1, message)) {
    complain(from, outbox::unanswered, "it is of no type or shape that there is");
    return put_back(std::move(taken));
  }
  const auto fits = [&](const transfer& each) {
    return each.tag_ == message.tag && (each.peer_ == from || each.peer_ == transfer::any_source);
  };
  if (auto receiver = posted_.take_first_that(fits)) {
    deliver(from, message, std::move(receiver), ended);
    return put_back(std::move(taken));
  }
  if (message.elements != nullptr) {  // the entry will be another's
    std::memcpy(message.room.data(), message.elements, short_bytes(message.type, message.shape));
    message.elements = message.room.data();
  }
  if (message.ack) ++in.unanswered;
  in.waiting.splice(in.waiting.end(), taken);
}

// Every field but the order; the elements stay where they are.
bool mailbox::read(const message_entry& entry, std::uint64_t position, arrival& message) {
  const auto form = entry.form;
  const auto type = message_entry::type_in(form);
  const auto dimensions = message_entry::dimensions_in(form);
  if (type >= dtype_count || dimensions > tensor::max_dimensions) return false;
  message.tag = entry.tag;
  message.type = static_cast<dtype>(type);
  message.shape = {};
  for (std::size_t each = 0; each < dimensions; ++each) message.shape.push_back(entry.size_of(each));
  message.elements = nullptr;
  message.ack.reset();
  if (!message_entry::is_long(form)) {
    message.elements = entry.after(dimensions);
    return short_bytes(message.type, message.shape) <= message_entry::inline_bytes;
  }
  message_entry::place where{};
  std::memcpy(&where, entry.after(dimensions), sizeof where);
  message.name = where.name;
  message.offset = where.offset;
  message.ack = std::min<std::size_t>(where.ack, outbox::most_acks - 1);
  message.position = position;
  return true;
}

void mailbox::deliver(std::size_t from, arrival& message, std::shared_ptr<transfer> to, transfer_queue& ended) {
  std::exception_ptr failure;
  to->peer_ = from;
  try {
    const bool is_copied = message.elements == nullptr && !message.ack;
    if (!to->takes_any_shape_) {
      require_fit(from, message, to->tensor_);
      fill(from, message, to->tensor_);
    } else if (is_copied) {
      to->tensor_ = std::move(message.copy);
    } else {
      to->tensor_ = tensor::empty(message.type, message.shape, message.ack ? memory::shared : memory::local);
      fill(from, message, to->tensor_);
    }
  } catch (const peer_lost&) {
    failure = std::current_exception();
    to->is_lost_ = true;
  } catch (const std::exception& why) {  // of this rank's own: the sender must not wait for it
    failure = std::current_exception();
    if (message.ack) {
      complain(from, message.position, why.what());
      answer(from, message, true);
    }
  }
  end(std::move(to), failure, ended);
}

void mailbox::require_fit(std::size_t from, arrival& message, const tensor& into) {
  if (into.dtype() == message.type && into.shape() == message.shape) return;
  const auto why = text("the message with tag ", message.tag, " of rank ", from, " is ", message.type, ' ',
                        message.shape, ", and rank ", end_->rank(), " wanted ", into.dtype(), ' ', into.shape());
  complain(from, message.ack ? message.position : outbox::unanswered, why);
  answer(from, message, true);
  throw error(errc::invalid_argument, why);
}

// Requires: the forms are the same.
void mailbox::fill(std::size_t from, arrival& message, const tensor& into) {
  if (message.elements != nullptr) return put_elements(into, message.elements);
  if (message.ack) return fetch(from, message, into);
  into.copy_from(message.copy);
}

// Announced before it is looked where it lies: its sender may be leaving, and let go of it where it says.
void mailbox::fetch(std::size_t from, arrival& message, const tensor& into) {
  auto& announced = incoming_[from].ring->acks[*message.ack];
  announced.store(outbox::reading | message.position, std::memory_order_seq_cst);
  try {
    const borrowed_again scope(end_->where()->blocks(), there_);
    put_elements(into, find_elements(from, message, into.nbytes()));
  } catch (const std::exception&) {
    announced.store(0, std::memory_order_seq_cst);
    end_->notify(from);
    throw;
  }
  answer(from, message, false);
}

// The sender's block is held meanwhile: should it die, nobody else gets the memory before it has been read. One that it
// has handed over the ring keeps.
const std::byte* mailbox::find_elements(std::size_t from, const arrival& message, std::size_t bytes) {
  auto& blocks = end_->where()->blocks();
  const auto& place = incoming_[from].ring->handovers[*message.ack];
  const auto hold = place.hold.load(std::memory_order_seq_cst);
  const auto offset = hold == 0 ? message.offset : place.offset.load(std::memory_order_relaxed);
  try {
    if (hold == 0) {
      blocks.borrow_into(there_, message.name);
      blocks.keep(there_);
    } else if (hold != outbox::withdrawn) {
      there_ = blocks.borrow_sent(hold);
    }
    const bool is_there = offset <= there_.size() && bytes <= there_.size() - offset;
    if (is_there && hold != outbox::withdrawn) return there_.data() + offset;
  } catch (const error& failure) {
    if (failure.code() != errc::corrupted) throw;
  }
  throw peer_lost(text("receive cannot end in rank ", end_->rank(), ": the message with tag ", message.tag, " of ",
                       describe({end_->member(from)}), " is gone: that rank is dead, or has left"),
                  {.operation = "receive", .missing = {}, .lost = {end_->member(from)}});
}

// The sender may be leaving: either it sees the answer, or what it hands over is seen here.
void mailbox::answer(std::size_t from, arrival& message, bool refused) {
  if (!message.ack) return;
  auto& ring = *incoming_[from].ring;
  ring.acks[*message.ack].store(message.position | (refused ? outbox::refused : 0), std::memory_order_seq_cst);
  drop_handover(ring.handovers[*message.ack]);
  message.ack.reset();
  end_->notify(from);
}

void mailbox::drop_handover(outbox::handover& which) noexcept {
  if (which.hold.load(std::memory_order_seq_cst) == 0) return;
  const auto hold = which.hold.exchange(0, std::memory_order_seq_cst);
  if (hold == 0 || hold == outbox::withdrawn) return;
  try {
    end_->where()->blocks().receive(hold).reset();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it goes with the ring
  }
}

// Before the answer, if there is one: who is told of that finds the reason.
void mailbox::complain(std::size_t from, std::uint64_t position, std::string_view why) noexcept {
  auto& ring = *incoming_[from].ring;
  const auto written = ring.reasons.load(std::memory_order_relaxed);
  if (ring.reasons_read.load(std::memory_order_acquire) == written) {
    ring.reason_of = position;
    ring.reason_bytes = static_cast<std::uint32_t>(std::min(why.size(), ring.reason.size()));
    std::memcpy(ring.reason.data(), why.data(), ring.reason_bytes);
    ring.reasons.store(written + 1, std::memory_order_release);
  }
  if (position == outbox::unanswered) ring.complaints.fetch_add(1, std::memory_order_release);
}

// ---- copies of what nobody has asked for yet

// Takes what lies in others' memory into this process's.
void mailbox::absorb() {
  const scoped_lock lock(mutex_);
  for (std::size_t from = 0; from < incoming_.size(); ++from) {
    for (auto& each : incoming_[from].waiting) static_cast<void>(absorb(from, each));
  }
}

// Whoever asks for one that cannot be copied is told.
bool mailbox::absorb(std::size_t from, arrival& what) {
  if (!what.ack) return false;
  try {
    what.copy = spare_copy(what.type, what.shape);
    fill(from, what, what.copy);
  } catch (const std::exception&) {
    put_back(std::exchange(what.copy, tensor()));
    return false;
  }
  --incoming_[from].unanswered;
  return true;
}

// A sender whose answers are all outstanding tells of nothing more: of no short message, and not of what is waited for
// here either.
void mailbox::relieve_senders() {
  const scoped_lock lock(mutex_);
  for (std::size_t from = 0; from < incoming_.size(); ++from) {
    if (incoming_[from].unanswered >= outbox::most_acks) absorb_newest(from);
  }
}

// Somebody is about to ask for the oldest.
void mailbox::absorb_newest(std::size_t from) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  auto& waiting = incoming_[from].waiting;
  for (auto each = waiting.rbegin(); each != waiting.rend(); ++each) {
    if (!absorb(from, *each)) continue;
    bytes += each->copy.nbytes();
    if (++count == most_absorbed || bytes >= most_absorbed_bytes) return;
  }
}

}  // namespace muster::detail
