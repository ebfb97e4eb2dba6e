// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/change_watch.hpp>

#include <exception>
#include <utility>

#include <muster/async/detail/callback_thread.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

change_watch::change_watch(rpc_core& core) : core_(core), finder_(core.table(), core.names(), core.where()) {}

void change_watch::add(listener which) {
  auto made = std::make_shared<const listener>(std::move(which));
  const scoped_lock lock(mutex_);
  collect();  // what was before is not for it
  listeners_.push_back(std::move(made));
  if (thread_.joinable() || stopped_) return;
  thread_ = start_thread([self = shared_from_this()] { self->watch(); });
}

void change_watch::watch() noexcept {
  try {
    for (;;) static_cast<void>(core_.await_news([this] { return look(); }, deadline::never()));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the member has left
  }
}

bool change_watch::look() {
  bool is_new = false;
  bool asks = false;
  {
    const scoped_lock lock(mutex_);
    const auto before = notices_.size();
    collect();
    is_new = notices_.size() != before;
    asks = !notices_.empty() && !std::exchange(is_told_, true);
  }
  if (asks) callback_thread(core_.shared_callbacks()).execute([self = shared_from_this()] { self->tell(); });
  return is_new;
}

void change_watch::collect() {
  for (const auto& each : finder_.look()) {
    for (const auto& one : listeners_) notices_.push_back({.to = one, .what = each});
  }
}

// One after the other, whatever they throw: the first of that is for the log.
void change_watch::tell() {
  std::exception_ptr first;
  for (;;) {
    notice next;
    {
      const scoped_lock lock(mutex_);
      is_told_ = !notices_.empty();
      if (!is_told_) break;
      next = std::move(notices_.front());
      notices_.pop_front();
    }
    try {
      (*next.to)(next.what);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void change_watch::stop() noexcept {
  std::thread ended;
  {
    const scoped_lock lock(mutex_);
    stopped_ = true;
    ended = std::move(thread_);
  }
  if (ended.joinable()) ended.join();
}

}  // namespace muster::detail
