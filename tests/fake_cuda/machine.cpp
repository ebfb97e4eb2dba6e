// SPDX-License-Identifier: BSL-1.0
#include "machine.hpp"

#include <pthread.h>

namespace fake_cuda {

namespace {

std::atomic<bool> forked = false;

}  // namespace

bool is_forked() { return forked; }

machine& the_machine() {
  static auto* const made = new machine;  // never destroyed
  return *made;
}

void machine::initialize() {
  const std::scoped_lock lock(mutex_);
  if (!is_initialized_) {
    devices_ = std::make_unique<const class devices>();
    require(devices_->count() != 0, CUDA_ERROR_NO_DEVICE);
    ledger_ = std::make_unique<class ledger>();
    ::pthread_atfork(nullptr, nullptr, [] { forked = true; });
    is_initialized_ = true;
  }
}

CUcontext machine::retain(CUdevice which) {
  const auto physical = devices().physical(which);
  const std::scoped_lock lock(mutex_);
  auto& found = primaries_[which];
  if (found.retained++ == 0) {
    found.alive = std::make_shared<context>(which, physical);
    found.handle = contexts.add(found.alive);
  }
  return found.handle;
}

void machine::release(CUdevice which) {
  static_cast<void>(devices().physical(which));
  primary last;
  {
    const std::scoped_lock lock(mutex_);
    auto& found = primaries_[which];
    require(found.retained > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--found.retained > 0) return;
    last = std::move(found);
    found = {};
  }
  destroy(last);
}

// Everything in it goes with it. What its streams still have in their queues they take without executing it.
void machine::destroy(primary& which) {
  const auto& gone = which.alive;
  gone->is_destroyed = true;
  const auto is_in_it = [&gone](const auto& each) { return each.in == gone; };
  functions.remove_if([&gone](const function& each) { return each.of->in == gone; });
  modules.remove_if(is_in_it);
  events.remove_if(is_in_it);
  streams.remove_if([&gone](const stream& each) { return each.in() == gone; });
  static_cast<void>(take_retired(gone.get()));
  which.own.reset();
  blocks.forget(gone.get());
}

CUstream machine::make_stream(const std::shared_ptr<context>& in, bool waits_for_default) {
  static_cast<void>(take_retired(nullptr));
  return streams.add(std::make_shared<stream>(in, waits_for_default));
}

void machine::retire(CUstream which) {
  auto removed = streams.remove(which);
  removed->end();
  const std::scoped_lock lock(mutex_);
  retired_.push_back(std::move(removed));
}

// Those that have ended, and those of that context. They are destroyed by the caller, who holds no lock.
std::vector<std::shared_ptr<stream>> machine::take_retired(const context* in) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<stream>> taken;
  std::erase_if(retired_, [&](std::shared_ptr<stream>& each) {
    if (!each->has_ended() && each->in().get() != in) return false;
    taken.push_back(std::move(each));
    return true;
  });
  return taken;
}

std::size_t machine::retained() {
  const std::scoped_lock lock(mutex_);
  std::size_t count = 0;
  for (const auto& [device, each] : primaries_) count += each.retained > 0 ? 1 : 0;
  return count;
}

std::shared_ptr<stream> machine::find_stream(CUstream which, const std::shared_ptr<context>& here) {
  if (which != nullptr && reinterpret_cast<std::uintptr_t>(which) != 1) {  // CU_STREAM_LEGACY
    auto found = streams.find(which);
    require(!found->in()->is_destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return found;
  }
  require(here != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const std::scoped_lock lock(mutex_);
  auto& own = primaries_[here->device].own;
  if (own == nullptr) own = std::make_shared<stream>(here, true);
  return own;
}

std::uint64_t machine::submit(const std::shared_ptr<stream>& on, std::function<void()> operation, bool always) {
  std::vector<std::shared_ptr<stream>> before;
  if (on->waits_for_default()) {
    const std::scoped_lock lock(mutex_);
    const auto& own = primaries_[on->in()->device].own;
    if (own == on) {
      before = streams.all();
    } else if (own != nullptr) {
      before.push_back(own);
    }
  }
  for (const auto& each : before) {
    if (each == on || each->in() != on->in() || !each->waits_for_default()) continue;
    const auto& other = each->state();
    if (const auto number = other->last(); !other->is_done(number)) {
      on->submit([other, number] { other->wait(number); });
    }
  }
  return on->submit(std::move(operation), always);
}

}  // namespace fake_cuda
