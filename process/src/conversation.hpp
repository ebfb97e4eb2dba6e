// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <muster/base/clock.hpp>
#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/detail/mutex.hpp>

#include "channel.hpp"
#include "descriptor_messages.hpp"

namespace muster::detail {

/// A control socket at whose other end is the host, for threads that wait for different things: each for the answer to
/// what it has asked, and one for what the host says otherwise.
///
/// One of those who wait reads for all, and files what is not for itself; when it has what it waits for, another goes
/// on. So no thread of its own is needed, and nobody who waits for long holds up others.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: belongs to the process that made it.
/// Lifetime: borrows both descriptors.
class conversation {
public:
  /// `host`: a pidfd of the host, whose end ends the conversation too: children that it has made by a raw system call
  /// (clone) may hold its end of the socket open. -1: only the socket tells.
  explicit conversation(int socket, int host = -1) noexcept : socket_(socket), host_(host) {}
  conversation(const conversation&) = delete;
  conversation& operator=(const conversation&) = delete;

  /// Sends what is not answered, or is answered by word. Throws as send_message.
  /// So it does when user code has closed the socket.
  void say(message_kind what, std::span<const std::byte> body = {}) const { send(what, body); }
  /// Sends a question, with a new number, and waits for its answer, or message_kind::closed; nothing at the deadline:
  /// if it comes after that it is dropped by whoever reads next. What has come by then is found. Throws as
  /// send_message.
  [[nodiscard]] std::optional<message> ask(message_kind what, descriptor_request& asked,
                                           std::span<const int> descriptors, deadline until) MUSTER_EXCLUDES(mutex_);
  /// The same for a question that the host may answer much later: at the deadline it is taken back, which the host
  /// answers at once unless it has answered already. Nothing when neither has come `overtime` after that.
  [[nodiscard]] std::optional<message> ask_in_time(message_kind what, descriptor_request& asked, deadline until,
                                                   std::chrono::nanoseconds overtime) MUSTER_EXCLUDES(mutex_);
  /// Waits for the next message that is no numbered answer, in the order in which they came; as ask.
  [[nodiscard]] std::optional<message> hear_word(deadline until) MUSTER_EXCLUDES(mutex_) {
    return wait_for(word, until);
  }

private:
  static constexpr request_number word = 0;

  /// A number that is awaited while this lives.
  class question;
  [[nodiscard]] std::optional<message> wait_for(request_number which, deadline until) MUSTER_EXCLUDES(mutex_);
  struct numbered {
    request_number number = word;
    message what;
  };
  [[nodiscard]] std::optional<message> take(request_number which) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::optional<numbered> read(deadline until) const noexcept;
  [[nodiscard]] static numbered end_of_connection();
  void file(numbered&& heard) MUSTER_REQUIRES(mutex_);

  void send(message_kind what, std::span<const std::byte> body, std::span<const int> descriptors = {}) const;

  const known_descriptor socket_;
  const int host_;

  mutex mutex_;
  condition changed_;
  bool is_read_ MUSTER_GUARDED_BY(mutex_) = false;  // by one of those who wait
  bool has_ended_ MUSTER_GUARDED_BY(mutex_) = false;
  request_number asked_ MUSTER_GUARDED_BY(mutex_) = word;  // the latest
  std::set<request_number> awaited_ MUSTER_GUARDED_BY(mutex_);
  std::multimap<request_number, message> heard_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
