// SPDX-License-Identifier: BSL-1.0
#include "log_relay.hpp"

#include <pthread.h>

#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

void log_relay::say(log_level level, std::string message) {
  {
    const scoped_lock lock(mutex_);
    if (ended_) return;
    if (has_thread()) return keep({level, std::move(message)});
  }
  sink_(level, message);
}

bool log_relay::has_thread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = start_thread([this] { run(); });
  } catch (const error&) {
    return false;
  }
  ::pthread_setname_np(thread_.native_handle(), "muster-log");
  return true;
}

void log_relay::keep(entry what) {
  if (waiting_.size() == most_waiting) {
    ++dropped_;
    return;
  }
  waiting_.push_back(std::move(what));
  changed_.notify_one();
}

// Empty: that was all.
std::vector<log_relay::entry> log_relay::take_next() {
  scoped_lock lock(mutex_);
  while (waiting_.empty() && !ended_) changed_.wait(lock);
  auto next = std::exchange(waiting_, {});
  if (const auto dropped = std::exchange(dropped_, 0); dropped > 0) {
    next.push_back({log_level::warning, text(dropped,
                                             " messages were dropped here: the log's sink takes longer for "
                                             "them than they come")});
  }
  return next;
}

void log_relay::run() {
  for (auto next = take_next(); !next.empty(); next = take_next()) {
    for (const auto& each : next) sink_(each.level, each.message);
  }
}

void log_relay::end() {
  std::thread last;
  {
    const scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_one();
    last = std::move(thread_);
  }
  if (last.joinable()) last.join();
}

}  // namespace muster::detail
