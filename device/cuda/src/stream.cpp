// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/stream.hpp>

namespace muster {

namespace {

template <class Query, class Handle>
bool is_done(const Query& query, Handle which) {
  const auto result = query.attempt(which);
  if (result == CUDA_ERROR_NOT_READY) return false;
  if (result != CUDA_SUCCESS) query(which);  // throws, unless it is well after all
  return true;
}

}  // namespace

cuda_event::cuda_event(const cuda_driver& driver) : driver_(&driver) {
  driver.event_create(&handle_, CU_EVENT_DISABLE_TIMING);
}

// Fails where the context is gone already, and the event with it.
cuda_event::~cuda_event() {
  if (handle_ != nullptr) static_cast<void>(driver_->event_destroy.attempt(handle_));
}

bool cuda_event::is_reached() const { return is_done(driver_->event_query, handle_); }

void cuda_event::wait() const { driver_->event_synchronize(handle_); }

cuda_stream::cuda_stream(const cuda_driver& driver) : driver_(driver) {
  driver.stream_create(&handle_, CU_STREAM_NON_BLOCKING);
}

cuda_stream::~cuda_stream() { static_cast<void>(driver_.stream_destroy.attempt(handle_)); }

bool cuda_stream::is_idle() const { return is_done(driver_.stream_query, handle_); }

void cuda_stream::record(cuda_event& mark) const { driver_.event_record(mark.handle(), handle_); }

void cuda_stream::wait_for(const cuda_event& mark) const { driver_.stream_wait_event(handle_, mark.handle(), 0); }

void cuda_stream::synchronize() const { driver_.stream_synchronize(handle_); }

}  // namespace muster
