// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster::detail {

/// A socket that listens at a path of the file system, and the file there.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class listening_socket {
public:
  /// See listener::listener.
  explicit listening_socket(const std::filesystem::path& path);
  listening_socket(const listening_socket&) = delete;
  listening_socket& operator=(const listening_socket&) = delete;
  /// Removes the file, if it is still this socket's.
  ~listening_socket();

  [[nodiscard]] int get() const noexcept { return socket_.get(); }
  /// Accepts a connection; none when nobody waits. It does not block, and is closed on exec.
  [[nodiscard]] unique_fd accept() const;

private:
  void bind();

  std::filesystem::path path_;
  unique_fd socket_;
  const closed_in_children ends_with_this_process_{socket_.get()};  // who forks and dies listens no longer
  dev_t device_ = 0;                                                // of the file
  ino_t file_ = 0;
};

/// Connects to who listens at `path`. Sending and receiving take at most `timeout` each.
/// Throws ENOENT, ECONNREFUSED, EACCES, …; EAGAIN when the listener has too much to do.
[[nodiscard]] unique_fd connect_to(const std::filesystem::path& path, std::chrono::nanoseconds timeout);

/// Whose the other end was when it was connected.
struct peer_credentials {
  pid_t pid = 0;
  uid_t user = 0;
};
[[nodiscard]] peer_credentials credentials_of_peer(int socket);

/// A pidfd of who has connected. Throws ESRCH when it has ended.
[[nodiscard]] unique_fd process_of_peer(int socket);

/// Whether the other end has been closed.
[[nodiscard]] bool is_hung_up(int socket);

}  // namespace muster::detail
