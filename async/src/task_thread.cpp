// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/task_thread.hpp>

namespace muster::detail {

// Where nothing of this thread's can make it, another does: one of a pool that the task has made.
bool task_thread::wait_for(untyped_source& source, deadline until) {
  if (wait_until([&] { return source.is_done(); }, until)) return true;
  return source.wait(until);
}

}  // namespace muster::detail
