// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <muster/parallel/detail/called_function.hpp>

namespace muster::detail {

/// Says that this thread is in the sink that the program has given a world for what its ranks write. Whoever closes the
/// world waits for that thread, which therefore must not wait for him. A world is known by its called_function here.
///
/// Thread safety: belongs to one thread.
class sink_call {
public:
  explicit sink_call(const called_function* world) noexcept : before_(std::exchange(here, world)) {}
  sink_call(const sink_call&) = delete;
  sink_call& operator=(const sink_call&) = delete;
  ~sink_call() { here = before_; }

  [[nodiscard]] static bool is_of(const called_function* world) noexcept { return world != nullptr && here == world; }

private:
  inline static thread_local const called_function* here = nullptr;
  const called_function* before_;
};

}  // namespace muster::detail
