// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/replacement.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster {

namespace detail {

replacement& replacement::of_this_process() noexcept {
  static replacement instance;  // of the process: it has one life
  return instance;
}

bool replacement::ask(std::string_view why) noexcept {
  try {
    const scoped_lock lock(mutex_);
    if (!possible_) return false;
    if (due_.exchange(true, std::memory_order_relaxed)) return true;
    why_ = why;
    if (parent_ != nullptr) parent_->report_unfit(why_);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // The parent is gone, or there is no memory for the reason: it leaves all the same.
  }
  return true;
}

void replacement::prepare() {
  const scoped_lock lock(mutex_);
  possible_ = true;
}

void replacement::require_none() {
  const scoped_lock lock(mutex_);
  if (due_.load(std::memory_order_relaxed)) {
    throw error(errc::start_failed, text("it asked for another process in its place: ", why_));
  }
}

void replacement::serve(worker_environment& parent) {
  const scoped_lock lock(mutex_);
  parent_ = &parent;
  if (due_.load(std::memory_order_relaxed)) parent.report_unfit(why_);  // since it was required not to be
}

void replacement::leave() {
  const scoped_lock lock(mutex_);
  parent_ = nullptr;
}

// What another task ended with, and this one passes on, says nothing of this process.
void note_failed_task() noexcept {
  try {
    throw;
  } catch (const error& failure) {
    if (failure.code() == errc::device_lost && remote_info(failure) == nullptr) {
      this_worker::replace_after_task(failure.what());
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): no error of a device
  }
}

}  // namespace detail

bool this_worker::replace_after_task(std::string_view why) noexcept {
  return detail::replacement::of_this_process().ask(why);
}

}  // namespace muster
