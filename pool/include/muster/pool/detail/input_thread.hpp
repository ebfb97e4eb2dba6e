// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// The thread that goes over the input of a stream.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class input_thread {
public:
  input_thread() noexcept;
  input_thread(input_thread&& other) noexcept;
  input_thread& operator=(input_thread&& other) noexcept;
  /// Requires: it was not started, or end() has returned, or it was moved from.
  ~input_thread();

  /// Throws muster::error where no thread can be had. Requires: not started.
  void start(std::function<void()> what);
  /// Waits for it; not in that thread itself, which has only this to return from.
  void end();

private:
  struct impl;

  std::unique_ptr<impl> impl_;
};

}  // namespace muster::detail
