// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/future_handle.hpp>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/error.hpp>

namespace muster::detail {

void future_handle::require_valid() const {
  if (!valid())
    throw error(errc::invalid_argument, "this future refers to nothing: it was moved from, or get() was called before");
  if (which_.home != nullptr) which_.home->require_here();
}

void future_handle::require_noticed() const {
  require_valid();
  if (which_.home != nullptr && which_.home->only_thread() != nullptr) {
    throw error(errc::invalid_argument,
                "the end of a call that a task has made is noticed only where the task waits for it: "
                "use get(), then(), on_complete() or when_all() here");
  }
}

void future_handle::notify(std::unique_ptr<end_notice> notice) const {
  const auto kept = which_;  // this object may be the notice's
  functions().notify(kept, std::move(notice));
}

void future_handle::drop() noexcept {
  const auto& what_to_do = functions();
  auto which = release();
  if (which.home != nullptr && !which.home->is_here()) [[unlikely]] {
    leave_to_parent(std::move(which.home), std::move(which.what));
  } else {
    what_to_do.drop(which);
  }
}

}  // namespace muster::detail
