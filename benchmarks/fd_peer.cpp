// SPDX-License-Identifier: BSL-1.0
#include "fd_peer.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include <muster/base/system_call.hpp>

#include "comparison.hpp"

namespace bench {

namespace {

constexpr std::size_t page_bytes = 4096;

// The message: how many bytes, and the descriptor.
struct envelope {
  explicit envelope(std::size_t& bytes) : part{.iov_base = &bytes, .iov_len = sizeof bytes} {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }

  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
};

void send_descriptor(int socket, int file, std::size_t bytes) {
  envelope out(bytes);
  auto* const head = CMSG_FIRSTHDR(&out.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(head), &file, sizeof file);
  muster::system_call("sendmsg", ::sendmsg, socket, &out.message, 0);
}

muster::unique_fd receive_descriptor(int socket, std::size_t& bytes) {
  envelope in(bytes);
  const auto got = ::recvmsg(socket, &in.message, 0);
  const auto* const head = CMSG_FIRSTHDR(&in.message);
  if (got <= 0 || head == nullptr) ::_exit(0);
  int file = -1;
  std::memcpy(&file, CMSG_DATA(head), sizeof file);
  return muster::unique_fd(file);
}

std::byte* map(const muster::unique_fd& file, std::size_t bytes) {
  auto* const found = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (found == MAP_FAILED) std::abort();
  return static_cast<std::byte*>(found);
}

}  // namespace

void touch(std::byte* first, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += page_bytes) first[at] = std::byte{1};
}

unsigned look_at(const std::byte* first, std::size_t bytes) {
  unsigned sum = 0;
  for (std::size_t at = 0; at < bytes; at += page_bytes) sum += std::to_integer<unsigned>(first[at]);
  return sum;
}

fd_peer::fd_peer(std::size_t processor) {
  std::array<int, 2> numbers{};
  muster::system_call("socketpair", ::socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, numbers.data());
  for (std::size_t end = 0; end < ends_.size(); ++end) ends_[end] = muster::unique_fd(numbers[end]);
  child_ = muster::system_call("fork", [] { return ::fork(); });
  if (child_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(0, processor);
  answer();
}

fd_peer::~fd_peer() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
}

void fd_peer::hand_over(std::size_t bytes) {
  const muster::unique_fd file(muster::system_call("memfd_create", ::memfd_create, "tensor", MFD_CLOEXEC));
  muster::system_call("ftruncate", ::ftruncate, file.get(), static_cast<off_t>(bytes));
  auto* const made = map(file, bytes);
  touch(made, bytes);
  send_descriptor(ends_[0].get(), file.get(), bytes);
  char answered = 0;
  muster::system_call("read", ::read, ends_[0].get(), &answered, sizeof answered);
  ::munmap(made, bytes);
}

void fd_peer::answer() {
  for (;;) {
    std::size_t bytes = 0;
    const auto file = receive_descriptor(ends_[1].get(), bytes);
    auto* const seen = map(file, bytes);
    const char sum = static_cast<char>(look_at(seen, bytes));
    ::munmap(seen, bytes);
    muster::system_call("write", ::write, ends_[1].get(), &sum, sizeof sum);
  }
}

}  // namespace bench
