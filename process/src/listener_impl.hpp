// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/detail/mutex.hpp>
#include <muster/process/listener.hpp>

#include "join_messages.hpp"
#include "log_relay.hpp"
#include "supervisor_impl.hpp"
#include "unix_socket.hpp"

namespace muster {

namespace detail {
class guest;
}

/// What a listener's handle leads to; it lives as long as handlers on the supervisor's loop need it.
///
/// Thread safety: members marked "loop" belong to the supervisor's thread; those guarded by the mutex are for all.
class listener::impl : public std::enable_shared_from_this<listener::impl> {
public:
  impl(supervisor& watcher, const std::filesystem::path& path, listener_options options);

  void start();
  void stop();
  [[nodiscard]] bool is_owner() const noexcept { return hub_.is_owner(); }

  void add(const std::string& name, detail::offered_value what) MUSTER_EXCLUDES(mutex_);
  bool withdraw(const std::string& name) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<guest_info> guests() const MUSTER_EXCLUDES(mutex_);

  /// For guests. Throws errc::invalid_argument when there is no such offer.
  [[nodiscard]] detail::found_value find(const std::string& name, const std::string& type) const
      MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] detail::names_message names(const std::string& from) const MUSTER_EXCLUDES(mutex_);
  void came(const guest_info& who) MUSTER_EXCLUDES(mutex_);
  void left(const guest_info& who) MUSTER_EXCLUDES(mutex_);

private:
  [[nodiscard]] std::string describe_offers() const MUSTER_REQUIRES(mutex_);

  // Loop.
  void listen();
  void accept_some();
  void admit(unique_fd connection);
  void make_room();
  void rest();

  supervisor::impl& hub_;
  const listener_options options_;
  const std::shared_ptr<detail::log_relay> log_ = std::make_shared<detail::log_relay>(options_.log);
  std::unique_ptr<detail::listening_socket> socket_;             // loop, once started
  std::unique_ptr<boost::asio::posix::stream_descriptor> door_;  // loop: watches the socket, which owns the descriptor
  boost::asio::steady_timer rest_timer_;                         // loop
  bool stopped_ = false;                                         // loop
  std::deque<std::weak_ptr<detail::guest>> silent_;              // loop: who came first is first

  mutable mutex mutex_;
  std::map<std::string, detail::offered_value> offers_ MUSTER_GUARDED_BY(mutex_);
  std::vector<guest_info> guests_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
