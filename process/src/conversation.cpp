// SPDX-License-Identifier: BSL-1.0
#include "conversation.hpp"

#include <cerrno>
#include <exception>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

class conversation::question {
public:
  question(conversation& with, descriptor_request& asked) : with_(with) {
    const scoped_lock lock(with_.mutex_);
    asked.number = number_ = ++with_.asked_;
    with_.awaited_.insert(number_);
  }
  question(const question&) = delete;
  question& operator=(const question&) = delete;
  ~question() {
    const scoped_lock lock(with_.mutex_);
    with_.awaited_.erase(number_);
    with_.heard_.erase(number_);
  }

private:
  conversation& with_;
  request_number number_ = word;
};

std::optional<message> conversation::ask(message_kind what, descriptor_request& asked, std::span<const int> descriptors,
                                         deadline until) {
  const question awaited(*this, asked);
  send(what, body_of(asked), descriptors);
  return wait_for(asked.number, until);
}

// Each question has one answer, which is read by who has asked: none is left in the socket for others to find.
std::optional<message> conversation::ask_in_time(message_kind what, descriptor_request& asked, deadline until,
                                                 std::chrono::nanoseconds overtime) {
  const question awaited(*this, asked);
  say(what, body_of(asked));
  if (!until.expired()) {
    if (auto answer = wait_for(asked.number, until)) return answer;
  }
  try {
    say(message_kind::forget, body_of(descriptor_request{.number = asked.number}));
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): who cannot be told is gone, which is heard
  }
  return wait_for(asked.number, deadline::after(overtime));
}

std::optional<message> conversation::wait_for(request_number which, deadline until) {
  scoped_lock lock(mutex_);
  std::optional<message> found;
  bool has_looked = false;  // and there was nothing more
  while (!(found = take(which))) {
    if (has_ended_) {
      found.emplace().kind = message_kind::closed;
      break;
    }
    if (until.expired() && (has_looked || is_read_)) break;
    if (is_read_) {
      changed_.wait_until(lock, until);
      continue;
    }
    is_read_ = true;
    lock.unlock();
    auto heard = read(until);
    lock.lock();
    is_read_ = false;
    has_looked = !heard;
    if (heard) file(std::move(*heard));
    changed_.notify_all();
  }
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
    if (!socket_.is_same()) return end_of_connection();
    auto heard = receive_message_until(socket_.get(), until, host_);
    if (!heard) return std::nullopt;
    const auto number = heard->kind == message_kind::answer ? heard->read<descriptor_answer>().number : word;
    return numbered{.number = number, .what = std::move(*heard)};
  } catch (const std::exception&) {
    return end_of_connection();
  }
}

conversation::numbered conversation::end_of_connection() {
  numbered ended;
  ended.what.kind = message_kind::closed;
  return ended;
}

void conversation::send(message_kind what, std::span<const std::byte> body, std::span<const int> descriptors) const {
  if (!socket_.is_same()) {
    throw error(std::error_code(EPIPE, std::system_category()),
                text("nothing can be sent to the host: code of this process has closed descriptor ", socket_.get(),
                     ", the connection to it"));
  }
  send_message(socket_.get(), what, body, descriptors);
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
