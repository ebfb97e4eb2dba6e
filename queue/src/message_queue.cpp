// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/message_queue.hpp>

#include <exception>

#include <muster/base/detail/pending_work.hpp>
#include <muster/base/error.hpp>

namespace muster::detail {

void throw_no_queue() {
  throw error(errc::invalid_argument,
              "a queue was used that there is not: the object was made without a capacity, or has been moved from; "
              "assign a queue to it first");
}

void throw_queue_cannot_go() {
  throw error(errc::not_serializable,
              "a queue is shared memory, which cannot go here (results of maps, exceptions, files): pass it as an "
              "argument, return it from a task, or push it into another queue");
}

void finish_quietly() noexcept {
  try {
    pending_work::await();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see the header
  }
}

}  // namespace muster::detail
