// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/output_relay.hpp>

#include <exception>

#include <muster/async/detail/callback_executor.hpp>

namespace muster::detail {

void output_relay::push(const worker_output& line) noexcept {
  const scoped_lock lock(mutex_);
  if (waiting_.size() >= most_lines || bytes_ + line.text.size() > most_bytes) {
    ++waiting_.back().dropped;  // it is full, so there is one
    return;
  }
  try {
    waiting_.push_back(line);
    if (to_.mark()) to_.mark()(waiting_.back());
    bytes_ += line.text.size();
    if (!scheduled_) schedule();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory, or no thread; the next line tries again
  }
}

void output_relay::schedule() {
  scheduled_ = callbacks_->try_post([self = shared_from_this()] { self->deliver(); });
}

// A turn has an end, so that other callbacks of the pool come to theirs; save after the executor was stopped, when
// nobody else would deliver the rest.
void output_relay::deliver() {
  constexpr std::size_t turn = 256;
  std::exception_ptr failure;
  for (std::size_t count = 1;; ++count) {
    worker_output line;
    {
      const scoped_lock lock(mutex_);
      if (waiting_.empty()) {
        scheduled_ = false;
        break;
      }
      if (count > turn || failure) {
        schedule();
        if (scheduled_) break;
        scheduled_ = true;  // it is still this one that looks at them
      }
      line = std::move(waiting_.front());
      waiting_.pop_front();
      bytes_ -= line.text.size();
    }
    try {
      to_.to()(line);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);  // to be logged
}

}  // namespace muster::detail
