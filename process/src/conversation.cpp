// SPDX-License-Identifier: BSL-1.0
#include "conversation.hpp"

#include <exception>
#include <utility>

namespace muster::detail {

std::optional<message> conversation::ask(message_kind what, descriptor_request& asked, std::span<const int> descriptors,
                                         deadline until) {
  {
    const scoped_lock lock(mutex_);
    asked.number = ++asked_;
    awaited_.insert(asked.number);
  }
  try {
    send_message(socket_, what, body_of(asked), descriptors);
  } catch (const std::exception&) {
    const scoped_lock lock(mutex_);
    awaited_.erase(asked.number);
    throw;
  }
  return wait_for(asked.number, until);
}

std::optional<message> conversation::wait_for(request_number which, deadline until) {
  scoped_lock lock(mutex_);
  std::optional<message> found;
  while (!(found = take(which))) {
    if (has_ended_) {
      found.emplace().kind = message_kind::closed;
      break;
    }
    if (until.expired()) break;
    if (is_read_) {
      changed_.wait_until(lock, until);
      continue;
    }
    is_read_ = true;
    lock.unlock();
    auto heard = read(until);
    lock.lock();
    is_read_ = false;
    if (heard) file(std::move(*heard));
    changed_.notify_all();
  }
  awaited_.erase(which);
  return found;
}

std::optional<message> conversation::take(request_number which) {
  const auto found = heard_.lower_bound(which);  // the first of its number that came
  if (found == heard_.end() || found->first != which) return std::nullopt;
  return std::move(heard_.extract(found).mapped());
}

// After what cannot be understood nobody knows what comes next.
std::optional<conversation::numbered> conversation::read(deadline until) const noexcept {
  try {
    auto heard = receive_message_until(socket_, until);
    if (!heard) return std::nullopt;
    const auto number = heard->kind == message_kind::answer ? heard->read<descriptor_answer>().number : word;
    return numbered{.number = number, .what = std::move(*heard)};
  } catch (const std::exception&) {
    numbered ended;
    ended.what.kind = message_kind::closed;
    return ended;
  }
}

// An answer that nobody awaits came after its deadline.
void conversation::file(numbered&& heard) {
  if (heard.what.kind == message_kind::closed) {
    has_ended_ = true;
  } else if (heard.number == word || awaited_.contains(heard.number)) {
    heard_.emplace(heard.number, std::move(heard.what));
  }
}

}  // namespace muster::detail
