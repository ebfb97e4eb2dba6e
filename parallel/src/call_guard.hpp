// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/world_core.hpp>

namespace muster::detail {

/// Refuses to wait for a call that this very thread is at: a function that calls its world in the caller's own share.
///
/// Thread safety: distinct objects: safe.
class call_guard {
public:
  call_guard(const std::atomic<std::thread::id>& caller, const std::string& world) {
    if (caller.load(std::memory_order_relaxed) != std::this_thread::get_id()) return;
    throw error(errc::invalid_argument, text("world '", world,
                                             "' was used from inside of a call of one of its functions, which would "
                                             "wait for itself: return what is needed, and use it after the call"));
  }
};

/// Says that this thread is at a call. What a function drops of its world meanwhile goes when it is over.
///
/// Thread safety: belongs to one thread, which has the world's mutex.
class world_core::presence {
public:
  explicit presence(world_core& world) noexcept : world_(world) {
    world_.caller_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  }
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;
  ~presence() MUSTER_NO_THREAD_SAFETY_ANALYSIS {
    world_.erase_dropped();
    world_.caller_.store({}, std::memory_order_relaxed);
  }

private:
  world_core& world_;
};

}  // namespace muster::detail
