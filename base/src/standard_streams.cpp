// SPDX-License-Identifier: BSL-1.0
#include <muster/base/standard_streams.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <muster/base/system_call.hpp>

namespace muster {

unique_fd above_standard_streams(unique_fd made) {
  if (made.get() > STDERR_FILENO) return made;
  const auto control = [](int fd, int command, int least) { return ::fcntl(fd, command, least); };
  return unique_fd(system_call("fcntl F_DUPFD_CLOEXEC", control, made.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

standard_streams_filled::standard_streams_filled() {
  const auto open = [](const char* path) { return ::open(path, O_RDWR | O_CLOEXEC); };
  for (auto& each : held_) {
    unique_fd next(system_call("open", open, "/dev/null"));
    if (next.get() > STDERR_FILENO) return;
    each = std::move(next);
  }
}

}  // namespace muster
