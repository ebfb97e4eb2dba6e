// SPDX-License-Identifier: BSL-1.0
// What a message that is under way reads or writes is not for another one to write.
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/collectives/detail/mailbox.hpp>
#include <muster/device/overlap.hpp>

#include "overlap_check.hpp"

namespace muster::detail {

namespace {

// Ranges first: most transfers that are under way lie elsewhere.
bool do_overlap(const tensor& a, const address_range& of_a, const tensor& b, const address_range& of_b) {
  return of_a.first < of_b.last && of_b.first < of_a.last && overlap_of(a, b) != overlap::none;
}

[[noreturn]] void refuse(const std::string& name, const tensor& what, const std::string& other_name,
                         const tensor& other) {
  throw error(errc::invalid_argument, text(describe_overlap(name, what, other_name, other),
                                           "; wait for that message before its tensor is used for another"));
}

}  // namespace

template <class Use>
void mailbox::for_each_send(Use use) {
  for (const auto to : receivers_) {
    outgoing_[to].queued.for_each(use);
    outgoing_[to].unanswered.for_each(use);
  }
}

// A short one that finds no room is read later: so it gets memory of its own.
void mailbox::keep_from_receives(transfer& sent) {
  posted_.for_each([&](const transfer& each) {
    if (!do_overlap(sent.tensor_, sent.range_, each.tensor_, each.range_)) return;
    if (sent.tensor_.nbytes() > message_entry::inline_bytes) {
      refuse(text("the tensor of ", sent.describe()), sent.tensor_, text("that of ", each.describe()), each.tensor_);
    }
    sent.tensor_ = sent.tensor_.clone(memory::local);
    sent.range_ = range_of(sent.tensor_);
  });
}

void mailbox::keep_from_transfers(const transfer& received) {
  const auto& into = received.tensor_;
  require_output(received.name(), into);
  const auto refuse_for = [&](const transfer& each) {
    refuse(text("the tensor of ", received.describe()), into, text("that of ", each.describe()), each.tensor_);
  };
  posted_.for_each([&](const transfer& each) {
    if (do_overlap(into, received.range_, each.tensor_, each.range_)) refuse_for(each);
  });
  for_each_send([&](transfer& each) {
    if (each.has_ended() || !do_overlap(into, received.range_, each.tensor_, each.range_)) return;
    if (each.tensor_.nbytes() > message_entry::inline_bytes) refuse_for(each);
    each.tensor_ = each.tensor_.clone(memory::local);
    each.range_ = range_of(each.tensor_);
  });
}

bool mailbox::is_being_sent(const tensor& what) {
  bool found = false;
  for_each_send([&](const transfer& each) {
    found = found || (!each.has_ended() && overlap_of(what, each.tensor_) != overlap::none);
  });
  return found;
}

}  // namespace muster::detail
