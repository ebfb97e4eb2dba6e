// SPDX-License-Identifier: BSL-1.0
#include "loss_watch.hpp"

#include <memory>

#include "device_anchor.hpp"

namespace muster::detail {

namespace {

struct promise {
  std::shared_ptr<domain> keeper;
  shared_block anchor;
};

// On a thread of the driver's, where its functions must not be called.
void CUDA_CB look(CUstream /*stream*/, CUresult status, void* data) {
  const std::unique_ptr<const promise> given(static_cast<const promise*>(data));
  if (status != CUDA_SUCCESS) anchor_in(given->anchor).reached.fetch_or(device_anchor::broken_count);
}

}  // namespace

void loss_watch::watch(const cuda_stream& stream, const shared_block& anchor) const {
  auto given = std::make_unique<promise>(domain::of(anchor), anchor);
  cuda_event mark(driver_);
  stream.record(mark);
  stream_.wait_for(mark);
  driver_.stream_callback(stream_.handle(), look, given.get(), 0);
  static_cast<void>(given.release());  // NOLINT(bugprone-unused-return-value): look() deletes it
}

}  // namespace muster::detail
