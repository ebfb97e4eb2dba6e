// SPDX-License-Identifier: BSL-1.0
#include "undertaker.hpp"

#include <fcntl.h>

#include <chrono>
#include <thread>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/error.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/base/start_thread.hpp>

#include "death_delay.hpp"

namespace muster::detail {

namespace {

void wait_for(const unique_fd& process, pid_t group) {
  ::fcntl(process.get(), F_SETFL, 0);  // Asio has made it non-blocking
  try {
    static_cast<void>(reap(process.get()));
  } catch (const error&) {  // NOLINT(bugprone-empty-catch)
    // It cannot be waited for: whoever ends this program reaps it.
  }
  if (group != 0) wait_for_group(process.get(), group);
}

// One that cannot be asked is asked again.
bool is_dead(const unique_fd& process) {
  try {
    return has_ended(process.get());
  } catch (const error&) {
    return false;
  }
}

}  // namespace

undertaker::~undertaker() {
  leave_children();
  const auto until = deadline::after(std::chrono::seconds(2));
  for (delay_ = first_death_delay; !have_removed_groups() && !until.expired(); delay_ = next_death_delay(delay_)) {
    std::this_thread::sleep_for(delay_);
  }
}

void undertaker::leave_children() noexcept {
  for (auto& each : children_) {
    each.buried = {};
    if (is_done(each)) continue;
    try {
      start_thread([process = std::move(each.process), group = each.group] { wait_for(process, group); }).detach();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // No thread is to be had: it stays a zombie until this program ends.
    }
  }
}

void undertaker::take(unique_fd process, burial buried, pid_t group) {
  child made{.process = std::move(process), .buried = std::move(buried), .group = group};
  if (is_done(made)) return;
  children_.push_back(std::move(made));
  try_again_soon();
}

void undertaker::take(std::unique_ptr<memory_group> group) {
  if (group->try_to_remove()) return;
  groups_.push_back(std::move(group));
  try_again_soon();
}

void undertaker::stop() {
  stopped_ = true;
  timer_.cancel();
}

bool undertaker::is_done(child& each) {
  const bool reaped = try_reap(each.process.get()).has_value();
  if (each.buried.where != nullptr && (reaped || is_dead(each.process))) {
    const auto buried = std::exchange(each.buried, {});
    buried.where->bury(buried.participant);
  }
  return reaped && (each.group == 0 || !reap_group(each.process.get(), each.group));
}

bool undertaker::have_removed_groups() noexcept {
  std::erase_if(groups_, [](const auto& each) { return each->try_to_remove(); });
  return groups_.empty();
}

void undertaker::try_all() {
  std::erase_if(children_, is_done);
  const bool have_gone = have_removed_groups();
  if (!children_.empty() || !have_gone) try_again_later();
}

void undertaker::try_again_soon() noexcept {
  delay_ = first_death_delay;
  try_again_later();
}

// Without memory for the wait, those that there are wait for the next one, or for the supervisor's end.
void undertaker::try_again_later() noexcept {
  if (stopped_) return;
  try {
    timer_.expires_after(std::exchange(delay_, next_death_delay(delay_)));  // ends an earlier wait
    timer_.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) try_all();
    });
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace muster::detail
