// SPDX-License-Identifier: BSL-1.0
#include "channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include <muster/base/standard_streams.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

constexpr std::size_t most_descriptors = 8;

union descriptor_buffer {
  cmsghdr align;
  std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> bytes;
};

void attach_descriptors(msghdr& header, descriptor_buffer& buffer, std::span<const int> descriptors) {
  if (descriptors.empty()) return;
  header.msg_control = buffer.bytes.data();
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  auto* control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(control), descriptors.data(), descriptors.size_bytes());
}

std::vector<unique_fd> detach_descriptors(msghdr& header) {
  std::vector<unique_fd> descriptors;
  for (auto* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t index = 0; index < count; ++index) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(control) + index * sizeof(int), sizeof number);
      descriptors.emplace_back(number);
    }
  }
  for (auto& each : descriptors) each = above_standard_streams(std::move(each));
  return descriptors;
}

// Of a peer that went without reading all, the kernel says so once, before what it had sent and then its end.
bool is_told_once(int error) { return error == ECONNRESET; }

// The length of the next message; 0 when the peer is gone, nothing when there is none yet.
std::optional<std::size_t> next_length(int socket, int flags) {
  const auto length = try_system_call("recv", ::recv, socket, nullptr, 0U, MSG_PEEK | MSG_TRUNC | flags);
  if (length >= 0) return static_cast<std::size_t>(length);
  if (is_told_once(errno)) return next_length(socket, flags);
  if (errno == EAGAIN) return std::nullopt;
  throw_system_error_with(errno, "recv", socket);
}

}  // namespace

// A message has room for about 200 KiB (net.core.wmem_default).
std::vector<std::byte> body_of(const error_info& what) {
  constexpr std::size_t most_bytes = std::size_t{64} << 10U;
  auto body = body_of<error_info>(what);
  if (body.size() <= most_bytes) return body;
  auto all = what.describe();
  if (all.size() > most_bytes) {
    const auto left_out = text("… (and ", all.size() - most_bytes, " more bytes)");
    all.replace(most_bytes, std::string::npos, left_out);
  }
  return body_of<error_info>(error_info(what.code(), std::move(all)));
}

std::pair<unique_fd, unique_fd> make_channel() {
  std::array<int, 2> ends{};
  system_call("socketpair", ::socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data());
  unique_fd first(ends[0]);
  unique_fd second(ends[1]);
  return {above_standard_streams(std::move(first)), above_standard_streams(std::move(second))};
}

namespace {

ssize_t send(int socket, message_kind kind, std::span<const std::byte> body, std::span<const int> descriptors,
             int flags) {
  std::array<iovec, 2> parts = {iovec{&kind, sizeof kind},
                                iovec{const_cast<std::byte*>(body.data()), body.size()}};  // NOLINT: sendmsg only reads
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  descriptor_buffer buffer{};
  attach_descriptors(header, buffer, descriptors);
  return try_system_call("sendmsg", ::sendmsg, socket, static_cast<const msghdr*>(&header), MSG_NOSIGNAL | flags);
}

}  // namespace

void send_message(int socket, message_kind kind, std::span<const std::byte> body, std::span<const int> descriptors) {
  if (send(socket, kind, body, descriptors, 0) < 0) throw_system_error_with(errno, "sendmsg", socket);
}

bool try_send_message(int socket, message_kind kind, std::span<const std::byte> body,
                      std::span<const int> descriptors) {
  if (send(socket, kind, body, descriptors, MSG_DONTWAIT) >= 0) return true;
  if (errno == EAGAIN) return false;
  throw_system_error_with(errno, "sendmsg", socket);
}

std::optional<message> receive_message(int socket, wait_mode mode) {
  const int flags = mode == wait_mode::poll ? MSG_DONTWAIT : 0;
  const auto length = next_length(socket, flags);
  if (!length) return std::nullopt;
  message received;
  received.kind = message_kind::closed;
  if (*length == 0) return received;
  if (*length < sizeof received.kind) throw error(errc::corrupted, "a control message of less than four bytes arrived");
  received.body.resize(*length - sizeof received.kind);
  std::array<iovec, 2> parts = {iovec{&received.kind, sizeof received.kind},
                                iovec{received.body.data(), received.body.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  descriptor_buffer buffer{};
  header.msg_control = buffer.bytes.data();
  header.msg_controllen = buffer.bytes.size();
  while (try_system_call("recvmsg", ::recvmsg, socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) {
    if (!is_told_once(errno)) throw_system_error_with(errno, "recvmsg", socket);
  }
  received.descriptors = detach_descriptors(header);
  return received;
}

std::optional<message> receive_message_until(int socket, deadline until, int peer) {
  std::array<pollfd, 2> looks{pollfd{.fd = socket, .events = POLLIN, .revents = 0},
                              pollfd{.fd = peer, .events = POLLIN, .revents = 0}};  // poll ignores -1
  const auto left = std::max(until.when() - clock::now(), clock::duration(0));
  const auto whole = std::chrono::floor<std::chrono::seconds>(left);
  const timespec limit{.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
  const auto wait = [&](int) {
    return ::ppoll(looks.data(), looks.size(), until.is_never() ? nullptr : &limit, nullptr);
  };
  if (wait(socket) < 0 && errno != EINTR) throw_system_error_with(errno, "ppoll", socket);
  auto received = receive_message(socket, wait_mode::poll);  // after the look at the peer: whatever it has sent is here
  if (!received && looks[1].revents != 0) received.emplace().kind = message_kind::closed;
  return received;
}

}  // namespace muster::detail
