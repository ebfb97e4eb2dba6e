// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/host_watch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/base/standard_streams.hpp>
#include <muster/base/start_thread.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster::detail {

namespace {

unique_fd copy_of(int process) {
  return above_standard_streams(unique_fd(system_call("fcntl", ::fcntl, process, F_DUPFD_CLOEXEC, 3)));
}

unique_fd make_bell() {
  auto bell = above_standard_streams(unique_fd(system_call("eventfd", ::eventfd, 0U, EFD_CLOEXEC | EFD_NONBLOCK)));
  known_descriptor::mark(bell.get());
  return bell;
}

// What the program has closed may be a file of its own by now.
void let_go_of(unique_fd& descriptor, const known_descriptor& known) noexcept {
  if (!known.is_same()) static_cast<void>(descriptor.release());
}

}  // namespace

/// What the thread has, which may outlive its watch where the program has closed the bell.
///
/// Thread safety: safe.
struct host_watch::watched {
  watched(int process, std::function<void()> told) : host(copy_of(process)), to_tell(std::move(told)) {}
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;
  ~watched() {
    let_go_of(host, known_host);
    let_go_of(bell, known_bell);
  }

  // False when it is to stop, and where the program has closed the descriptors: then nothing can be known any more.
  [[nodiscard]] bool await_end() const {
    std::array<pollfd, 2> asked{pollfd{.fd = host.get(), .events = POLLIN, .revents = 0},
                                pollfd{.fd = bell.get(), .events = POLLIN, .revents = 0}};
    while (::poll(asked.data(), asked.size(), -1) < 0) {
      if (errno != EINTR) return false;
    }
    return asked[1].revents == 0 && known_host.is_same() && has_ended(host.get());
  }
  void tell() MUSTER_EXCLUDES(guard) {
    const scoped_lock lock(guard);
    if (to_tell) to_tell();
  }

  unique_fd host;
  unique_fd bell = make_bell();
  const known_descriptor known_host{host.get()};
  const known_descriptor known_bell{bell.get()};
  mutex guard;
  std::function<void()> to_tell MUSTER_GUARDED_BY(guard);
};

void host_watch::begin(const domain& where, std::function<void()> told) {
  if (where.host_process() < 0) return;
  watched_ = std::make_shared<watched>(where.host_process(), std::move(told));
  thread_ = start_thread([watched = watched_] {
    if (watched->await_end()) watched->tell();
  });
}

void host_watch::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const scoped_lock lock(watched_->guard);
    watched_->to_tell = nullptr;
  }
  constexpr std::uint64_t once = 1;
  if (watched_->known_bell.is_same() && ::write(watched_->bell.get(), &once, sizeof once) == sizeof once) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace muster::detail
