// SPDX-License-Identifier: BSL-1.0
#pragma once

// An operation of a group as a future: to go on when it has ended, in a callback or a coroutine, also together with
// others and with tasks of pools.
//
//     auto sums = muster::future_of(group.all_reduce_async(gradients)).then([](const tensor& sum) { return norm(sum);
//     }); auto [sum, batch] = co_await muster::when_all(future_of(group.all_reduce_async(gradients)),
//     pool.apply_async(load));

#include <muster/async/future.hpp>
#include <muster/collectives/work.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

/// A future for what comes out of `what`, as work::result() says: an empty tensor of a barrier and of a send.
///
/// get() throws what work::wait() throws; errors as data have its errc. Callbacks run one after the other on a thread
/// of the group's own for them, never on the one that makes its collectives: they may wait, begin collectives, and be
/// the group's last owner. cancel() is work::cancel(). The operation goes on without the future, and the future may
/// outlive the group. A message is brought forward, and ends when its other rank is dead, by a thread that is started
/// for the first callback of a message; each that has a callback keeps one such thread asleep until it ends, and where
/// 255 do so already, waits for one of these. Throws errc::invalid_argument for an empty handle, errc::forked in a
/// forked child. Thread safety: safe. Process safety: the future belongs to this process. Cost: one allocation, and one
/// more for a message.
[[nodiscard]] future<tensor> future_of(const work& what);

}  // namespace muster
