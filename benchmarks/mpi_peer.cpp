// SPDX-License-Identifier: BSL-1.0
// A rank of an MPI program that does what the benchmarks tell it. mpirun starts as many as there are to be; the
// argument is the abstract address of the socket at which each is told. While it is told nothing it uses no processor.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <muster/base/system_call.hpp>
#include <muster/base/unique_fd.hpp>

#include "rank_command.hpp"

namespace bench {
namespace {

class mpi_rank {
public:
  mpi_rank() {
    ::MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    ::MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(rank_); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }
  [[nodiscard]] std::span<float> input() { return input_; }
  [[nodiscard]] std::span<float> output() { return is_in_place_ ? input_ : output_; }

  void give_room(const rank_command& what) {
    const auto count = what.bytes / sizeof(float);
    is_in_place_ = is_in_place(what.operation);
    input_.resize(count);
    output_.resize(is_in_place_ ? 0 : result_size(what.operation, count, size()));
  }

  void perform(rank_operation which) {
    const auto all = static_cast<int>(input_.size());
    const auto part = all / size_;
    switch (which) {
      case rank_operation::barrier: ::MPI_Barrier(MPI_COMM_WORLD); break;
      case rank_operation::all_reduce:
        ::MPI_Allreduce(MPI_IN_PLACE, input_.data(), all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case rank_operation::broadcast: ::MPI_Bcast(input_.data(), all, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
      case rank_operation::all_gather:
        ::MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, input_.data(), part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case rank_operation::reduce_scatter:
        ::MPI_Reduce_scatter_block(input_.data(), output_.data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case rank_operation::ping_pong:
        if (rank_ == 0) send();
        receive();
        if (rank_ == 1) send();
        break;
      case rank_operation::send: rank_ == 0 ? send() : receive(); break;
    }
  }

private:
  void send() { ::MPI_Send(input_.data(), static_cast<int>(input_.size()), MPI_FLOAT, 1 - rank_, 0, MPI_COMM_WORLD); }
  void receive() {
    ::MPI_Recv(output_.data(), static_cast<int>(output_.size()), MPI_FLOAT, 1 - rank_, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  }

  int rank_ = 0;
  int size_ = 0;
  bool is_in_place_ = true;
  std::vector<float> input_;
  std::vector<float> output_;
};

muster::unique_fd connect_to(std::string_view name) {
  muster::unique_fd made(muster::system_call("socket", ::socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(&address.sun_path[1], sizeof address.sun_path - 1);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  muster::system_call("connect", ::connect, made.get(), reinterpret_cast<const sockaddr*>(&address), bytes);
  return made;
}

// "Open MPI v5.0.11, package: …", "MPICH Version:      5.0.2\nMPICH …": the name, and the first number with a point.
std::string name_of_library(std::string_view whole) {
  const auto name = whole.substr(0, whole.starts_with("MPICH") ? 5 : whole.find(" v"));
  const auto digit = std::min(whole.find_first_of("0123456789", name.size()), whole.size());
  const auto version = whole.substr(digit, whole.find_first_not_of(".0123456789", digit) - digit);
  return std::string(name) + ' ' + std::string(version);
}

rank_greeting greeting_of(const mpi_rank& self) {
  rank_greeting made{.rank = static_cast<std::uint32_t>(self.rank()), .pid = ::getpid(), .library = {}};
  std::vector<char> text(MPI_MAX_LIBRARY_VERSION_STRING);
  int size = 0;
  ::MPI_Get_library_version(text.data(), &size);
  const auto name = name_of_library({text.data(), static_cast<std::size_t>(size)}).substr(0, sizeof made.library - 1);
  std::copy(name.begin(), name.end(), &made.library[0]);
  return made;
}

// Until the other end of the socket is closed.
void serve(std::string_view name) {
  mpi_rank self;
  const auto commands = connect_to(name);
  const auto greeting = greeting_of(self);
  muster::system_call("write", ::write, commands.get(), &greeting, sizeof greeting);
  rank_command next;
  while (muster::system_call("read", ::read, commands.get(), &next, sizeof next) == sizeof next) {
    if (next.singly != 0) {
      const auto times = rank_turn(self, next).run_singly();
      muster::system_call("write", ::write, commands.get(), times.data(), times.size() * sizeof(double));
    } else {
      const std::int64_t took = rank_turn(self, next).run().count();
      muster::system_call("write", ::write, commands.get(), &took, sizeof took);
    }
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  ::MPI_Init(&argc, &argv);
  if (argc == 2) bench::serve(argv[1]);
  ::MPI_Finalize();
  return argc == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
