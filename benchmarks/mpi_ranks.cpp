// SPDX-License-Identifier: BSL-1.0
#include "mpi_ranks.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <stdexcept>

#include <muster/base/effective_cpus.hpp>
#include <muster/base/system_call.hpp>

#include "comparison.hpp"

namespace bench {

namespace {

constexpr const char* mpirun = "/usr/bin/mpirun";

std::string peer_program() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "mpi_peer"; }

// In the abstract namespace: it leaves no file behind.
muster::unique_fd listen_at(const std::string& name) {
  muster::unique_fd made(muster::system_call("socket", ::socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), &address.sun_path[1]);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  muster::system_call("bind", ::bind, made.get(), reinterpret_cast<const sockaddr*>(&address), bytes);
  muster::system_call("listen", ::listen, made.get(), SOMAXCONN);
  return made;
}

template <class T>
T read_from(const muster::unique_fd& rank) {
  T found;
  if (muster::system_call("read", ::read, rank.get(), &found, sizeof found) == sizeof found) return found;
  throw std::runtime_error("a rank of the MPI peer has ended");
}

}  // namespace

bool mpi_ranks::is_there() { return std::filesystem::exists(mpirun) && std::filesystem::exists(peer_program()); }

mpi_ranks::mpi_ranks(std::size_t ranks) : ranks_(ranks) {
  const auto address = "muster-bench-" + std::to_string(::getpid());
  const auto listener = listen_at(address);
  start(address, ranks);
  for (std::size_t each = 0; each < ranks; ++each) accept_from(listener.get());
}

void mpi_ranks::start(const std::string& address, std::size_t ranks) {
  std::vector<std::string> words{mpirun, "--allow-run-as-root", "--bind-to", "none", "-n", std::to_string(ranks)};
  if (ranks > muster::effective_cpus()) words.emplace_back("--oversubscribe");
  words.push_back(peer_program());
  words.push_back(address);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  if (::posix_spawn(&mpirun_, mpirun, nullptr, nullptr, arguments.data(), environ) != 0) {
    throw std::runtime_error(std::string("posix_spawn of ") + mpirun + " failed");
  }
}

void mpi_ranks::accept_from(int listener) {
  constexpr int most_milliseconds = 60'000;
  pollfd coming{.fd = listener, .events = POLLIN, .revents = 0};
  if (muster::system_call("poll", ::poll, &coming, nfds_t{1}, most_milliseconds) == 0) {
    throw std::runtime_error("mpirun has not started the peer's ranks within a minute");
  }
  muster::unique_fd rank(muster::system_call("accept4", ::accept4, listener, nullptr, nullptr, SOCK_CLOEXEC));
  const auto found = read_from<rank_greeting>(rank);
  pin(found.pid, found.rank);
  library_ = &found.library[0];
  ranks_.at(found.rank) = std::move(rank);
}

// Ranks that are told nothing more end, and mpirun with them.
mpi_ranks::~mpi_ranks() {
  ranks_.clear();
  ::waitpid(mpirun_, nullptr, 0);
}

std::chrono::nanoseconds mpi_ranks::run(const rank_command& what) {
  for (const auto& each : ranks_) muster::system_call("write", ::write, each.get(), &what, sizeof what);
  std::chrono::nanoseconds took{};
  for (auto each = ranks_.rbegin(); each != ranks_.rend(); ++each) {
    took = std::chrono::nanoseconds(read_from<std::int64_t>(*each));
  }
  return took;
}

}  // namespace bench
