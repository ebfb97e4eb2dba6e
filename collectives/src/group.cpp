// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/group.hpp>

#include <cstring>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

#include "crossing_errors.hpp"
#include "group_impl.hpp"

namespace muster {

detail::one_call_at_a_time::one_call_at_a_time(std::atomic<bool>& busy) : busy_(busy) {
  if (!busy.exchange(true, std::memory_order_acquire)) return;
  throw error(
      errc::invalid_argument,
      "two threads of one rank made calls of one group at the same time: nobody could say which comes first. Give "
      "each a group of its own (split, subset), or use the asynchronous forms from one");
}

group::impl::impl(std::shared_ptr<domain> where, shared_block block, std::size_t rank)
    : end(std::make_shared<detail::rank_end>(std::move(where), std::move(block), rank)),
      calls(*end),
      mail(std::make_shared<detail::mailbox>(end)),
      queued(end) {
  end->set_meanwhile([box = mail.get()] { box->advance(); });
}

// Handles of messages may outlive the group, and with them the rank's end.
group::impl::~impl() {
  queued.finish();
  calls.devices().close();
  mail->close();
  end->futures().stop_watching();
  end->depart();
  mail->release_rings();
}

work group::impl::queue(std::function<tensor()> call) {
  const detail::one_call_at_a_time guard(busy);
  auto made_now = std::make_shared<detail::queued_call>(end, made + 1, std::move(call));
  ++made;  // before it begins: a split counts its other calls in the group's thread
  try {
    queued.add(made_now);
  } catch (...) {  // no thread can be had: then there was no call
    --made;
    throw;
  }
  return work(std::move(made_now));
}

group::group(const group_ticket& ticket, std::size_t rank) {
  static_cast<void>(ticket.ranks());  // throws for an empty one
  self_ = std::make_shared<impl>(ticket.where(), ticket.block(), rank);
}

group::group(std::shared_ptr<impl> self) noexcept : self_(std::move(self)) {}
group::group(group&&) noexcept = default;
group& group::operator=(group&& other) noexcept {
  leave();
  self_ = std::move(other.self_);
  return *this;
}
group::~group() { leave(); }

// A forked child has neither the group's thread nor its memory: leaving the group is its parent's. In the group's own
// thread, as in a callback, the calls that are queued still need it.
void group::leave() noexcept {
  if (self_ == nullptr) return;
  if (!self_->end->is_here()) return detail::leave_to_parent(std::move(self_));
  if (auto& queued = self_->queued; queued.is_own_thread()) return queued.keep_to_the_end(std::move(self_));
  self_.reset();
}

group::impl& group::joined() const {
  self_->end->require_here();
  return *self_;
}

std::size_t group::rank() const noexcept { return self_->end->rank(); }
std::size_t group::size() const noexcept { return self_->end->size(); }
device_way group::way_of_devices() const { return joined().calls.devices().way(); }
bool group::is_whole() const noexcept { return self_->end->is_here() && !self_->end->is_broken(); }
group_traffic group::traffic() const noexcept { return self_->end->traffic(); }
void group::abort(const std::string& reason) noexcept {
  if (self_->end->is_here()) self_->end->break_off(reason);
}

std::vector<group_member> group::members() const {
  std::vector<group_member> all;
  all.reserve(size());
  const auto& end = *joined().end;
  for (std::size_t rank = 0; rank < size(); ++rank) all.push_back(end.member(rank));
  return all;
}

// ---- collectives

void group::barrier(const call_options& how) {
  joined().make([&] { joined().calls.barrier(how); });
}

void group::broadcast(const tensor& what, std::size_t root, const call_options& how) {
  joined().make([&] { joined().calls.broadcast(what, root, how); });
}

void group::all_reduce(const tensor& in, const tensor& out, const reduction& with, const call_options& how) {
  joined().make([&] { joined().calls.all_reduce(in, out, with, how); });
}

void group::all_reduce(std::span<const tensor> what, const reduction& with, const call_options& how) {
  joined().make([&] { joined().calls.all_reduce(what, with, how); });
}

void group::reduce(const tensor& what, std::size_t root, const reduction& with, const call_options& how) {
  joined().make([&] { joined().calls.reduce(what, nullptr, root, with, how); });
}

void group::reduce(const tensor& in, const tensor& out, std::size_t root, const reduction& with,
                   const call_options& how) {
  joined().make([&] { joined().calls.reduce(in, &out, root, with, how); });
}

tensor group::gather(const tensor& in, std::size_t root, const call_options& how) {
  return joined().make([&] { return joined().calls.gather(in, nullptr, root, how); });
}

void group::gather(const tensor& in, const tensor& out, std::size_t root, const call_options& how) {
  joined().make([&] { joined().calls.gather(in, &out, root, how); });
}

tensor group::all_gather(const tensor& in, const call_options& how) {
  return joined().make([&] { return joined().calls.all_gather(in, nullptr, how); });
}

void group::all_gather(const tensor& in, const tensor& out, const call_options& how) {
  joined().make([&] { joined().calls.all_gather(in, &out, how); });
}

tensor group::scatter(const tensor& in, std::size_t root, const call_options& how) {
  return joined().make([&] { return joined().calls.scatter(&in, root, how); });
}

void group::scatter(const tensor& in, const tensor& out, std::size_t root, const call_options& how) {
  joined().make([&] { joined().calls.scatter(&in, out, root, how); });
}

void group::reduce_scatter(const tensor& in, const tensor& out, const reduction& with, const call_options& how) {
  joined().make([&] { joined().calls.reduce_scatter(in, out, with, how); });
}

tensor group::all_to_all(const tensor& in, std::span<const std::size_t> rows, const call_options& how) {
  return joined().make([&] { return joined().calls.all_to_all(in, rows, nullptr, how); });
}

void group::all_to_all(const tensor& in, const tensor& out, const call_options& how) {
  joined().make([&] { joined().calls.all_to_all(in, out, how); });
}

// ---- asynchronous

work group::barrier_async(const call_options& how) {
  return joined().queue([calls = &joined().calls, how] { return calls->barrier(how), tensor(); });
}

work group::broadcast_async(const tensor& what, std::size_t root, const call_options& how) {
  return joined().queue([=, calls = &joined().calls] { return calls->broadcast(what, root, how), what; });
}

work group::all_reduce_async(const tensor& what, const reduction& with, const call_options& how) {
  return joined().queue([=, calls = &joined().calls] { return calls->all_reduce(what, what, with, how), what; });
}

work group::reduce_async(const tensor& what, std::size_t root, const reduction& with, const call_options& how) {
  return joined().queue([=, calls = &joined().calls] { return calls->reduce(what, nullptr, root, with, how), what; });
}

work group::gather_async(const tensor& in, std::size_t root, const call_options& how) {
  return joined().queue([=, calls = &joined().calls] { return calls->gather(in, nullptr, root, how); });
}

work group::all_gather_async(const tensor& in, const call_options& how) {
  return joined().queue([=, calls = &joined().calls] { return calls->all_gather(in, nullptr, how); });
}

work group::scatter_async(const tensor& in, std::size_t root, const call_options& how) {
  return joined().queue([=, calls = &joined().calls] { return calls->scatter(&in, root, how); });
}

work group::reduce_scatter_async(const tensor& in, const tensor& out, const reduction& with, const call_options& how) {
  return joined().queue([=, calls = &joined().calls] { return calls->reduce_scatter(in, out, with, how), out; });
}

work group::all_to_all_async(const tensor& in, std::span<const std::size_t> rows, const call_options& how) {
  return joined().queue([in, how, calls = &joined().calls, rows = std::vector(rows.begin(), rows.end())] {
    return calls->all_to_all(in, rows, nullptr, how);
  });
}

}  // namespace muster
