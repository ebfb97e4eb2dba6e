// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_queue.hpp>

#include <utility>

namespace muster::detail {

local_queue::~local_queue() {
  while (pop() != nullptr) continue;  // not by recursion from one to the next
}

void local_queue::push(std::shared_ptr<local_job> job) noexcept {
  auto* const pushed = job.get();
  pushed->self_ = std::move(job);
  pushed->next_ = pushed_.load(std::memory_order_relaxed);
  // Release: whoever pops it sees all of it. Nobody takes single jobs off the stack, so the head cannot come back.
  const auto try_push = [&] {
    return pushed_.compare_exchange_weak(pushed->next_, pushed, std::memory_order_release, std::memory_order_relaxed);
  };
  while (!try_push()) continue;
}

local_job* local_queue::turned_round(local_job* newest) noexcept {
  local_job* first = nullptr;
  while (newest != nullptr) {
    auto* const older = std::exchange(newest->next_, first);
    first = std::exchange(newest, older);
  }
  return first;
}

std::shared_ptr<local_job> local_queue::pop() {
  const scoped_lock lock(mutex_);
  auto* first = ready_.load(std::memory_order_relaxed);
  if (first == nullptr && pushed_.load(std::memory_order_relaxed) != nullptr) {
    first = turned_round(pushed_.exchange(nullptr, std::memory_order_acquire));
  }
  if (first == nullptr) return nullptr;
  ready_.store(first->next_, std::memory_order_relaxed);
  return std::move(first->self_);
}

bool local_queue::empty() const {
  const scoped_lock lock(mutex_);
  return seems_empty();
}

}  // namespace muster::detail
