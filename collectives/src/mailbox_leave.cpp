// SPDX-License-Identifier: BSL-1.0
// What a rank leaves behind. Rings that their receivers have not taken over go with the group's memory from then on,
// and long messages with the ring that tells of them: the death of the sender drops neither.
#include <muster/collectives/detail/mailbox.hpp>

#include <utility>

#include <muster/base/error.hpp>

#include "local_tensor.hpp"

namespace muster::detail {

namespace {

std::exception_ptr group_is_gone() {
  return std::make_exception_ptr(error(errc::cancelled, "the group's handle is gone"));
}

// Whether nobody else can change it any more.
bool is_alone(const tensor& what, const arena& blocks) {
  return what.storage().use_count() == 1 && blocks.is_sole(what.storage()->block());
}

}  // namespace

void mailbox::close() {
  transfer_queue ended;
  {
    const scoped_lock lock(mutex_);
    closed_ = true;
    end_all(posted_, group_is_gone(), ended);
    for (const auto to : receivers_) leave_to(to, ended);
  }
  call_back(ended);
  await_readers();
}

void mailbox::end_all(transfer_queue& which, const std::exception_ptr& failure, transfer_queue& ended) {
  while (auto each = which.take_first()) end(std::move(each), failure, ended);
}

bool mailbox::is_gone(std::size_t rank) const noexcept {
  return rank == end_->rank() || end_->has_left(rank) || end_->is_dead(rank);
}

void mailbox::leave_to(std::size_t to, transfer_queue& ended) {
  auto& out = outgoing_[to];
  look_at_answers(to, ended);
  if (is_gone(to)) {
    end_all(out.unanswered, group_is_gone(), ended);
  } else {
    push_queued(to, ended);
    hand_over_ring(to);
    transfer_queue still_read;
    while (auto each = out.unanswered.take_first()) hand_over(to, std::move(each), still_read, ended);
    out.unanswered = std::move(still_read);
  }
  end_all(out.queued, group_is_gone(), ended);
}

// Also where the receiver has taken the link: it may not have received the hold yet.
void mailbox::hand_over_ring(std::size_t to) noexcept {
  end_->where()->blocks().entrust(outgoing_[to].hold, end_->block());
}

// Whoever has the tensor may change it once its message has ended: then it is a copy that the receiver gets. It may be
// reading already, and not have seen that.
void mailbox::hand_over(std::size_t to, std::shared_ptr<transfer> sent, transfer_queue& still_read,
                        transfer_queue& ended) {
  auto& out = outgoing_[to];
  auto& blocks = end_->where()->blocks();
  auto& place = out.ring->handovers[sent->ack_index_];
  const bool stays = is_alone(sent->tensor_, blocks);
  try {
    local_input from(sent->tensor_);
    const auto& given = stays ? sent->tensor_ : from.copied(*end_->where());
    const auto& block = given.storage()->block();
    const auto hold = blocks.send(block, out.block);
    blocks.entrust(hold, out.block);
    place.offset.store(static_cast<std::uint64_t>(given.const_data() - block.data()), std::memory_order_relaxed);
    place.hold.store(hold, std::memory_order_seq_cst);
  } catch (const std::exception&) {
    place.hold.store(outbox::withdrawn, std::memory_order_seq_cst);
    if (!sent->has_ended()) sent->failure_ = group_is_gone();
  }
  const auto answer = answer_to(out, *sent);
  if (answer == (outbox::reading | sent->ack_) && !stays && !sent->has_ended()) {
    still_read.push_back(std::move(sent));
  } else if ((answer & ~outbox::refused) == sent->ack_) {
    drop_handover(place);
    end_answered(to, out, std::move(sent), ended);
  } else {
    auto failure = sent->failure_;
    end(std::move(sent), std::move(failure), ended);
  }
}

// A receiver that has been stopped is not waited for longer than for a collective.
void mailbox::await_readers() {
  const auto look = [&](bool is_late) {
    transfer_queue ended;
    bool any = false;
    {
      const scoped_lock lock(mutex_);
      for (const auto to : receivers_) {
        end_those_read(to, is_late, ended);
        any |= !outgoing_[to].unanswered.empty();
      }
    }
    call_back(ended);
    return !any;
  };
  const auto until = deadline::after(end_->memory().shape().timeout);
  if (!end_->wait_here(until, [&] { return look(false); })) look(true);
}

void mailbox::end_those_read(std::size_t to, bool is_late, transfer_queue& ended) {
  auto& out = outgoing_[to];
  const bool is_in_vain = is_late || is_gone(to);
  look_at_answers(to, ended);
  const auto is_over = [&](const transfer& sent) {
    return is_in_vain || (answer_to(out, sent) & ~outbox::reading) != sent.ack_;
  };
  out.unanswered.take_all_that(is_over, [&](std::shared_ptr<transfer> sent) {
    auto failure = is_in_vain ? group_is_gone() : sent->failure_;
    end(std::move(sent), std::move(failure), ended);
  });
}

void mailbox::release_rings() noexcept {
  const scoped_lock lock(mutex_);
  for (std::size_t from = 0; from < incoming_.size(); ++from) {
    take_link(from).reset();
    incoming_[from] = {};
  }
  for (const auto to : receivers_) {
    take_back(to);
    outgoing_[to] = {};
  }
  receivers_.clear();
  spare_copies_.clear();
  spare_bytes_ = 0;
}

// From a receiver that has left, or is dead. One that is dead may have taken it over without having received it: then
// the hold is still to be had, and else there is none any more.
void mailbox::take_back(std::size_t to) {
  const bool is_dead = end_->is_dead(to);
  if (!is_dead && !end_->has_left(to)) return;
  auto untaken = outgoing_[to].hold;
  auto& link = end_->memory().link(end_->rank(), to);
  if (!link.compare_exchange_strong(untaken, group_memory::link_taken) && !is_dead) return;
  try {
    end_->where()->blocks().receive(outgoing_[to].hold).reset();
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): it had been received
  }
}

}  // namespace muster::detail
