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

#include <muster/base/system_call.hpp>

#include "comparison.hpp"

namespace bench {

namespace {

std::string built(const std::string& program) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
}

mpi_installation of_peers(const std::string& name, std::vector<std::string> options) {
  return {.launcher = std::string(MUSTER_PEERS "/") + name + "/bin/mpirun",
          .program = built("mpi_peer_" + name),
          .options = std::move(options)};
}

bool is_there(const mpi_installation& which) {
  return std::filesystem::exists(which.launcher) && std::filesystem::exists(which.program);
}

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

std::vector<mpi_installation> mpi_installation::all() {
  const std::vector<std::string> of_open_mpi{"--allow-run-as-root", "--bind-to", "none", "--oversubscribe"};
  std::vector<mpi_installation> found{of_peers("openmpi", of_open_mpi), of_peers("mpich", {})};
  std::erase_if(found, [](const auto& each) { return !is_there(each); });
  if (!found.empty()) return found;
  found.push_back({.launcher = "/usr/bin/mpirun", .program = built("mpi_peer"), .options = of_open_mpi});
  std::erase_if(found, [](const auto& each) { return !is_there(each); });
  return found;
}

mpi_ranks::mpi_ranks(const mpi_installation& which, std::size_t ranks) : ranks_(ranks) {
  static int number = 0;
  const auto address = "muster-bench-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  const auto listener = listen_at(address);
  start(which, address, ranks);
  for (std::size_t each = 0; each < ranks; ++each) accept_from(listener.get());
}

void mpi_ranks::start(const mpi_installation& which, const std::string& address, std::size_t ranks) {
  std::vector<std::string> words{which.launcher};
  words.insert(words.end(), which.options.begin(), which.options.end());
  for (const auto& each : {std::string("-n"), std::to_string(ranks), which.program, address}) words.push_back(each);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  if (::posix_spawn(&mpirun_, which.launcher.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
    throw std::runtime_error("posix_spawn of " + which.launcher + " failed");
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

void mpi_ranks::tell_all(const rank_command& what) {
  for (const auto& each : ranks_) muster::system_call("write", ::write, each.get(), &what, sizeof what);
}

std::chrono::nanoseconds mpi_ranks::run(const rank_command& what) {
  tell_all(what);
  std::chrono::nanoseconds took{};
  for (auto each = ranks_.rbegin(); each != ranks_.rend(); ++each) {
    took = std::chrono::nanoseconds(read_from<std::int64_t>(*each));
  }
  return took;
}

std::vector<double> mpi_ranks::run_singly(rank_command what) {
  what.singly = 1;
  tell_all(what);
  std::vector<double> times(what.count);
  const auto bytes = static_cast<ssize_t>(times.size() * sizeof(double));
  for (auto each = ranks_.rbegin(); each != ranks_.rend(); ++each) {
    if (muster::system_call("read", ::read, each->get(), times.data(), static_cast<std::size_t>(bytes)) != bytes) {
      throw std::runtime_error("a rank of the MPI peer has ended");
    }
  }
  return times;
}

}  // namespace bench
