// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/cuda/stream.hpp>
#include <muster/memory/detail/shared_block.hpp>

namespace muster::detail {

/// Tells other processes that a device will never do what they wait for, because the context in which it was asked for
/// is broken: also where this process does not look at the device again.
///
/// Works as follows. A stream of its own waits for the mark behind what others were promised, and then calls back; the
/// driver calls back too when the context has broken, with why. The stream that works does not wait for any of it.
///
/// Requires, for all members: the device's context is current.
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
/// Lifetime: borrows the driver.
/// Cost: of each promise, an event and a call on a thread of the driver's.
class loss_watch {
public:
  explicit loss_watch(const cuda_driver& driver) : driver_(driver), stream_(driver) {}

  /// What `stream` was given by now is promised to whoever has the anchor; if it does not come, the anchor will say so:
  /// device_anchor::broken_count.
  void watch(const cuda_stream& stream, const shared_block& anchor) const;
  /// Returns when all has been told. What fails then, nobody can mend.
  void finish() const noexcept { static_cast<void>(driver_.stream_synchronize.attempt(stream_.handle())); }

private:
  const cuda_driver& driver_;
  const cuda_stream stream_;
};

}  // namespace muster::detail
