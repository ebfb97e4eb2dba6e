// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/error.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/process/listener.hpp>

#include "channel.hpp"
#include "death_delay.hpp"
#include "descriptor_clerk.hpp"
#include "ending_stream.hpp"
#include "log_relay.hpp"
#include "supervisor_impl.hpp"
#include "unix_socket.hpp"

namespace muster::detail {

/// Tells a program why it is not let in, or not listened to any more; in vain if it does not listen itself.
///
/// Thread safety: safe.
void refuse(int connection, const std::exception& why) noexcept;

/// A program that has connected to a listener: from its hello to its burial.
///
///     connected --join--> joined --leave, or death--> buried
///
/// One whose connection ends without a word may still use the memory (a program that closes all descriptors that it
/// does not know): it is buried when it is dead, which is looked for from then on, because the pidfd of one that is
/// traced does not always say so.
///
/// Thread safety: belongs to the supervisor's thread. Owned by the supervisor (supervisor::impl::keep).
class guest : public std::enable_shared_from_this<guest> {
public:
  guest(supervisor::impl& hub, std::weak_ptr<listener::impl> host, std::shared_ptr<log_relay> log, pid_t pid,
        unique_fd connection, unique_fd process);

  /// Hears what it wants, which it is to say within `hello_timeout`, and watches it until it has left.
  void begin(std::chrono::nanoseconds hello_timeout);
  /// Whether it has connected and not joined yet.
  [[nodiscard]] bool is_silent() const noexcept { return control_ && !has_joined(); }
  /// Sends it away, for others want its place; not if it has just said what it wants.
  void make_room();

private:
  using stream = boost::asio::posix::stream_descriptor;

  [[nodiscard]] bool has_joined() const noexcept { return who_.participant != participant_id::none; }
  template <class F>
  auto unless_cancelled(F what);
  void watch();
  void listen();
  void hear();
  bool hear_next();
  void answer(message& heard);
  void answer_join(const message& heard);
  void let_in();
  void answer_ask(const message& heard);
  void answer_list(const message& heard);
  void look_for_death();
  [[nodiscard]] bool is_dead();
  void look_again_later();
  void hear_last() noexcept;
  void miss_hello();
  void give_up_on(const error& why);
  void complain(const std::exception& failure);
  void hang_up();
  void leave();
  void bury();

  supervisor::impl& hub_;
  const std::weak_ptr<listener::impl> host_;
  const std::shared_ptr<log_relay> log_;
  guest_info who_;  // no participant: it has not joined
  std::optional<ending_stream> control_;
  std::shared_ptr<descriptor_clerk> clerk_;  // once it has joined
  stream process_;                           // pidfd
  boost::asio::steady_timer hello_timer_;
  boost::asio::steady_timer death_timer_;  // armed once its connection has ended
  std::chrono::milliseconds death_delay_ = first_death_delay;
};

}  // namespace muster::detail
