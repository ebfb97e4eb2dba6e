// SPDX-License-Identifier: BSL-1.0
// How the supervisor reads what workers write to stdout and stderr.
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include <muster/base/standard_streams.hpp>
#include <muster/base/system_call.hpp>

#include "crew_impl.hpp"
#include "output_pipe.hpp"

namespace muster {

namespace {

// Per event of the loop, so that one worker that writes without end does not hold up the others.
constexpr std::size_t most_bytes_per_event = std::size_t{64} << 10U;

}  // namespace

detail::output_pipe detail::make_output_pipe() {
  constexpr int first_free = 4;
  const auto control = [](int fd, int command, int argument) { return ::fcntl(fd, command, argument); };
  std::array<int, 2> ends{};
  system_call("pipe2", ::pipe2, ends.data(), O_CLOEXEC);
  output_pipe made{.read_end = unique_fd(ends[0]), .write_end = unique_fd(ends[1])};
  made.read_end = above_standard_streams(std::move(made.read_end));
  system_call("fcntl F_SETFL", control, made.read_end.get(), F_SETFL, O_NONBLOCK);
  if (ends[1] < first_free) {
    made.write_end = unique_fd(system_call("fcntl F_DUPFD_CLOEXEC", control, ends[1], F_DUPFD_CLOEXEC, first_free));
  }
  return made;
}

void crew::impl::listen_to_output(worker& who, output_stream which) {
  auto& pipe = who.streams[static_cast<std::size_t>(which)].pipe;
  pipe->async_wait(boost::asio::posix::stream_descriptor::wait_read, handler(who, [this, &who, which, &pipe] {
                     if (!pipe) return;
                     read_output(who, which, most_bytes_per_event);
                     if (pipe) listen_to_output(who, which);
                   }));
}

// Closes the pipe when nobody can write to it any more.
void crew::impl::read_output(worker& who, output_stream which, std::size_t most_bytes) {
  auto& stream = who.streams[static_cast<std::size_t>(which)];
  std::array<char, std::size_t{16} << 10U> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): read() fills it
  for (std::size_t done = 0; done < most_bytes;) {
    const auto length = ::read(stream.pipe->native_handle(), room.data(), room.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
      stream.pipe.reset();
      return;
    }
    done += static_cast<std::size_t>(length);
    stream.lines.add({room.data(), static_cast<std::size_t>(length)},
                     [&](std::string_view text, bool ends_line) { tell(who, which, text, ends_line); });
  }
}

// What is in the pipes when the worker is dead is what it wrote. Its children may have the other ends and go on
// writing: they are not waited for, and no more is read than a pipe can hold.
void crew::impl::end_output(worker& who) {
  for (const auto which : {output_stream::out, output_stream::err}) {
    auto& stream = who.streams[static_cast<std::size_t>(which)];
    if (stream.pipe) {
      const auto capacity = ::fcntl(stream.pipe->native_handle(), F_GETPIPE_SZ);
      read_output(who, which, capacity > 0 ? static_cast<std::size_t>(capacity) : most_bytes_per_event);
      stream.pipe.reset();
    }
    stream.lines.finish([&](std::string_view text, bool ends_line) { tell(who, which, text, ends_line); });
  }
}

void crew::impl::tell(worker& who, output_stream which, std::string_view text, bool ends_line) {
  who.last_lines.add(text);
  if (options_.capture != output_capture::lines) return;
  client_.worker_wrote({.worker = who.index,
                        .incarnation = who.incarnation,
                        .pid = who.pid,
                        .stream = which,
                        .text = std::string(text),
                        .ends_line = ends_line});
}

}  // namespace muster
