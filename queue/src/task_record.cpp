// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/task_record.hpp>

namespace muster {

// A program may have millions of tasks pending; each costs one of these, and nothing besides while it waits.
static_assert(sizeof(task_record) == std::size_t{13} * 16);

}  // namespace muster
