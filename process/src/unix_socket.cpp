// SPDX-License-Identifier: BSL-1.0
#include "unix_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include <muster/base/pidfd.hpp>
#include <muster/base/standard_streams.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // glibc 2.36 does not know it; kernels before 6.5 answer ENOPROTOOPT
#endif

namespace muster::detail {

namespace {

namespace fs = std::filesystem;

unique_fd make_socket(int flags) {
  return above_standard_streams(
      unique_fd(system_call("socket", ::socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0)));
}

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const auto& name = path.native();
  if (name.empty() || name.size() >= sizeof address.sun_path) {
    throw error(errc::invalid_argument, text("the path '", name, "' has ", name.size(),
                                             " characters; of a socket it has 1 to ", sizeof address.sun_path - 1));
  }
  std::copy(name.begin(), name.end(), address.sun_path);
  return address;
}

int bind_to(int socket, const sockaddr_un& address) {
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

// 0, or what went wrong.
int try_connect(int socket, const sockaddr_un& address) {
  for (;;) {
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

std::optional<struct stat> look_at(const fs::path& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) == 0) return found;
  if (errno == ENOENT) return std::nullopt;
  throw_system_error_with(errno, "lstat", path.native());
}

// The socket of a listener that was killed may still be open in a child of its that was made by a raw system call.
bool peer_has_ended(int socket) {
  try {
    return has_ended(process_of_peer(socket).get());
  } catch (const error& failure) {
    if (failure.code() == std::errc::no_such_process) return true;
    throw;
  }
}

// A listener that answers, or is too busy to, or is of another kind, lives.
bool is_deserted(const fs::path& path) {
  const auto probe = make_socket(SOCK_NONBLOCK);
  const int cause = try_connect(probe.get(), address_of(path));
  return cause == ECONNREFUSED || (cause == 0 && peer_has_ended(probe.get()));
}

[[noreturn]] void throw_taken(const fs::path& path, const char* by) {
  throw error(errc::invalid_argument, text("cannot listen at '", path.native(), "': ", by, "; choose another path"));
}

// Takes a socket out of the way that nobody listens at. Requires: whoever else would is kept off by a turn.
void remove_deserted(const fs::path& path) {
  const auto found = look_at(path);
  if (!found) return;
  if (!S_ISSOCK(found->st_mode)) throw_taken(path, "there is something that is no socket");
  if (!is_deserted(path)) throw_taken(path, "a living process listens there");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_system_error_with(errno, "unlink", path.native());
}

// Kept while a path is looked at, cleared, bound and listened at: one who has bound his socket and does not listen yet
// would pass for dead. It is a name that is nowhere in the file system, and free when its owner ends, however he does.
unique_fd take_turn(const fs::path& path) {
  struct stat folder{};
  if (::stat(path.parent_path().c_str(), &folder) != 0) return {};  // binding says so
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto name = text("muster.listen.", folder.st_dev, '.', folder.st_ino, '.');
  const auto file = path.filename().native();
  name += file.substr(file.size() - std::min(file.size(), sizeof address.sun_path - 1 - name.size()));
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  unique_fd turn = make_socket(0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(turn.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return turn;
  if (errno == EADDRINUSE) throw_taken(path, "another process is just beginning to");
  throw_system_error_with(errno, "bind", name);
}

void set_timeout(int socket, int which, std::chrono::nanoseconds time) {
  const auto microseconds = std::max<std::int64_t>(std::chrono::ceil<std::chrono::microseconds>(time).count(), 1);
  const timeval limit{.tv_sec = microseconds / 1'000'000, .tv_usec = microseconds % 1'000'000};
  system_call("setsockopt", [&](int fd) { return ::setsockopt(fd, SOL_SOCKET, which, &limit, sizeof limit); }, socket);
}

}  // namespace

listening_socket::listening_socket(const fs::path& path)
    : path_(fs::absolute(path)), socket_(make_socket(SOCK_NONBLOCK)) {
  static_cast<void>(address_of(path_));
  // The mode of the socket becomes that of the file: there is no moment in which others may connect.
  system_call("fchmod", ::fchmod, socket_.get(), mode_t{0600});
  const auto turn = take_turn(path_);
  bind();
  constexpr int backlog = 64;
  system_call("listen", ::listen, socket_.get(), backlog);
}

void listening_socket::bind() {
  const auto address = address_of(path_);
  if (bind_to(socket_.get(), address) != 0) {
    if (errno != EADDRINUSE) throw_system_error_with(errno, "bind", path_.native());
    remove_deserted(path_);
    if (bind_to(socket_.get(), address) != 0) throw_system_error_with(errno, "bind", path_.native());
  }
  if (const auto made = look_at(path_)) {
    device_ = made->st_dev;
    file_ = made->st_ino;
  }
}

listening_socket::~listening_socket() {
  struct stat found{};
  const bool is_mine =
      file_ != 0 && ::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == file_;
  if (is_mine) ::unlink(path_.c_str());
}

unique_fd listening_socket::accept() const {
  for (;;) {
    const int accepted = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (accepted >= 0) return above_standard_streams(unique_fd(accepted));
    if (errno == EAGAIN) return {};
    if (errno != EINTR && errno != ECONNABORTED) throw_system_error_with(errno, "accept4", path_.native());
  }
}

unique_fd connect_to(const fs::path& path, std::chrono::nanoseconds timeout) {
  const auto address = address_of(path);
  auto made = make_socket(0);
  set_timeout(made.get(), SO_SNDTIMEO, timeout);
  set_timeout(made.get(), SO_RCVTIMEO, timeout);
  if (const int cause = try_connect(made.get(), address); cause != 0) {
    throw_system_error_with(cause, "connect", path.native());
  }
  return made;
}

peer_credentials credentials_of_peer(int socket) {
  ucred found{};
  socklen_t length = sizeof found;
  system_call(
      "getsockopt SO_PEERCRED", [&](int fd) { return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &found, &length); },
      socket);
  return {.pid = found.pid, .user = found.uid};
}

unique_fd process_of_peer(int socket) {
  int process = -1;
  socklen_t length = sizeof process;
  const auto ask = [&](int fd) { return ::getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &process, &length); };
  if (try_system_call("getsockopt SO_PEERPIDFD", ask, socket) == 0) {
    return above_standard_streams(unique_fd(process));
  }
  if (errno != ENOPROTOOPT) throw_system_error_with(errno, "getsockopt SO_PEERPIDFD", socket);
  auto opened = open_pidfd(credentials_of_peer(socket).pid);
  // Still connected: so it had not ended when the descriptor was made, and the number was its own.
  if (is_hung_up(socket)) throw_system_error_with(ESRCH, "pidfd_open", socket);
  return opened;
}

bool is_hung_up(int socket) {
  pollfd look{.fd = socket, .events = 0, .revents = 0};
  system_call("poll", [&](int) { return ::poll(&look, 1, 0); }, socket);
  return (look.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace muster::detail
