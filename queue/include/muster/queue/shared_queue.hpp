// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/queue/message_queue.hpp>

namespace muster {

/// A bounded queue between any processes of a domain: any number of producers and consumers, first in, first out.
///
///     muster::shared_queue<job> jobs(64);
///     auto done = pool.apply_async(work_on, jobs);   // a worker gets the same queue, not a copy
///     jobs.push(first);
///     jobs.close();                                  // work_on's jobs.pop() returns nothing when all are taken
///
/// The program makes it; workers get it as an argument, result or message, and may keep it. A copy of the object is the
/// same queue. Shared memory that a value lies in (a tensor) goes by reference: its receiver sees the same bytes.
///
/// What is promised when a process is killed, at whatever instruction: nobody else is blocked or finds a broken queue.
/// A message whose push had returned is there; of one whose push had not, nothing or all. *At most once*: a message
/// that pop() had returned is gone, one that it had not is there again, in its place. *At least once*: a message on
/// lease is there again unless ack() had returned, so its effects may have taken place without being acknowledged.
/// While its process lives, a lease that goes always puts its message back: nothing can be wanting for that then.
///
/// Order: messages are claimed in the order in which their producers claimed cells, so those of one producer in the
/// order in which it pushed them. A message that was put back comes first again, after others that were given out
/// meanwhile.
///
/// Hazards: a producer that is *stopped* (not dead) in the middle of a push holds up consumers behind its message until
/// it goes on; a consumer that is stopped just when it is woken holds up a message until the next push. A lease
/// occupies its cell. Who waits for the end of a closed queue waits for what other processes have on lease, not for
/// leases of its own.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, but for assignment.
/// Process safety: the same.
/// Visibility: what a producer wrote before push() is visible to whoever pops the message.
/// Lifetime: the queue's memory goes when nobody has an object of it any more; messages that are still in it go too.
/// Cost: values that fit (queue_options::inline_bytes) are one copy in and one copy out; others take a block of 64 KiB
/// or more. No system call unless somebody sleeps.
template <class T>
class shared_queue : public message_queue<T, queue_kind::shared> {
public:
  using message_queue<T, queue_kind::shared>::message_queue;
};

}  // namespace muster
