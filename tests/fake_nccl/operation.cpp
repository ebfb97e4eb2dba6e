// SPDX-License-Identifier: BSL-1.0
#include "operation.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "combine.hpp"
#include "faults.hpp"

namespace fake_nccl {

// ---- messages

void operation::send(const std::byte* from, std::size_t bytes, std::size_t to) {
  messages_.push_back({.by = &board_.rings[rank_][to],
                       .sends = true,
                       .at = const_cast<std::byte*>(from),
                       .left = bytes,
                       .announced = bytes});
}

void operation::receive(std::byte* to, std::size_t bytes, std::size_t from) {
  messages_.push_back({.by = &board_.rings[from][rank_], .at = to, .left = bytes});
}

bool operation::message::advance_head() {
  auto* const head = reinterpret_cast<std::byte*>(&announced) + sizeof announced - head_left;
  const auto moved = sends ? by->put(head, head_left) : by->take(head, head_left);
  head_left -= moved;
  if (head_left == 0 && announced != left) throw ncclInvalidUsage;
  return moved > 0;
}

bool operation::message::advance() {
  if (head_left > 0 && (!advance_head() || head_left > 0)) return false;
  const auto moved = sends ? by->put(at, left) : by->take(at, left);
  at += moved;
  left -= moved;
  return moved > 0;
}

// Of several messages from one rank to another, and back, one at a time.
bool operation::advance() {
  bool moved = false;
  std::vector<const ring*> busy;
  for (auto& each : messages_) {
    if (std::ranges::find(busy, each.by) != busy.end()) continue;
    if (each.advance()) {
      moved = true;
      if (the_faults().next("chunk") != ncclSuccess) ::raise(SIGKILL);
    }
    if (!each.is_done()) busy.push_back(each.by);
  }
  std::erase_if(messages_, [](const message& each) { return each.is_done(); });
  return moved;
}

// As a device would, it looks again and again.
void operation::run(const std::function<bool()>& is_over) {
  const bool hangs = the_faults().next("hang") != ncclSuccess;
  for (unsigned idle = 0; hangs || !messages_.empty(); ++idle) {
    if (is_over()) return;
    if (!hangs && advance()) idle = 0;
    if (idle > 100) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  for (const auto& each : behind_) each();
}

// ---- requests

void operation::add(const request& what) {
  const auto bytes = what.count * size_of(what.type);
  const auto peer = static_cast<std::size_t>(what.peer);
  switch (what.what) {
    case request::kind::send: return send(what.from, bytes, peer);
    case request::kind::receive: return receive(what.to, bytes, peer);
    case request::kind::broadcast: return add_broadcast(what, bytes);
    case request::kind::all_gather: return add_all_gather(what, bytes);
    case request::kind::reduce: return add_reduction(what, bytes, peer);
    default: return add_reduction(what, bytes, size_);
  }
}

void operation::add_all_gather(const request& what, std::size_t bytes) {
  for (std::size_t each = 0; each < size_; ++each) {
    if (each == rank_) continue;
    send(what.from, bytes, each);
    receive(what.to + each * bytes, bytes, each);
  }
  behind_.emplace_back([what, bytes, self = rank_] { std::memmove(what.to + self * bytes, what.from, bytes); });
}

void operation::add_broadcast(const request& what, std::size_t bytes) {
  const auto root = static_cast<std::size_t>(what.peer);
  if (root != rank_) return receive(what.to, bytes, root);
  for (std::size_t each = 0; each < size_; ++each) {
    if (each != rank_) send(what.from, bytes, each);
  }
  behind_.emplace_back([what, bytes] { std::memmove(what.to, what.from, bytes); });
}

// Of all ranks, at `root`, or for each rank if that is nobody; then all the same, or each its own part.
void operation::add_reduction(const request& what, std::size_t bytes, std::size_t root) {
  const bool has_parts = what.what == request::kind::reduce_scatter;
  const auto part_for = [&](std::size_t rank) { return what.from + (has_parts ? rank * bytes : 0); };
  const bool gets_it = root == size_ || root == rank_;
  std::vector<const std::byte*> inputs(size_, nullptr);
  for (std::size_t each = 0; each < size_; ++each) {
    if (each == rank_) continue;
    if (root == size_ || root == each) send(part_for(each), bytes, each);
    if (!gets_it) continue;
    auto* const there = room(bytes);
    receive(there, bytes, each);
    inputs[each] = there;
  }
  if (!gets_it) return;
  inputs[rank_] = part_for(rank_);
  auto* const sum = room(bytes);
  behind_.emplace_back([what, bytes, inputs, sum, size = size_] {
    std::memcpy(sum, inputs[1 % size], bytes);  // not in the order of ranks
    for (std::size_t step = 2; step <= size; ++step) combine(sum, inputs[step % size], what.count, what.type, what.op);
    std::memcpy(what.to, sum, bytes);
  });
}

}  // namespace fake_nccl
