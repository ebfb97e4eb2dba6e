// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/queue/task_call.hpp>

namespace muster {

/// Makes a call the current one of this thread for a scope.
class current_call {
public:
  explicit current_call(task_call& call) noexcept;
  current_call(const current_call&) = delete;
  current_call& operator=(const current_call&) = delete;
  ~current_call();
};

}  // namespace muster
