// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/queue/detail/task_call.hpp>

namespace muster {

/// Makes a call the current one of this thread for a scope.
class current_call {
public:
  explicit current_call(task_call& call) noexcept;
  current_call(const current_call&) = delete;
  current_call& operator=(const current_call&) = delete;
  ~current_call();
};

/// The same inside of another call, which is the current one again afterwards.
class inner_call {
public:
  explicit inner_call(task_call& call) noexcept;
  inner_call(const inner_call&) = delete;
  inner_call& operator=(const inner_call&) = delete;
  ~inner_call();

private:
  task_call* const outer_;
};

}  // namespace muster
