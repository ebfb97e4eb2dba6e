// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <muster/base/unique_fd.hpp>

#include "rank_command.hpp"

namespace bench {

/// An MPI that is installed here, and mpi_peer built with it.
struct mpi_installation {
  std::string launcher;
  std::string program;
  std::vector<std::string> options;  ///< of the launcher: of no binding, and of root

  /// The newest of PyPI's, in environments of their own under out/peers (scripts/bench); where there are none the
  /// system's.
  [[nodiscard]] static std::vector<mpi_installation> all();
};

/// The ranks of an MPI program (mpi_peer.cpp), each bound to the processor of its number: our turns and its turns can
/// alternate.
class mpi_ranks {
public:
  mpi_ranks(const mpi_installation& which, std::size_t ranks);
  mpi_ranks(const mpi_ranks&) = delete;
  mpi_ranks& operator=(const mpi_ranks&) = delete;
  ~mpi_ranks();

  /// "Open MPI 5.0.11".
  [[nodiscard]] const std::string& library() const noexcept { return library_; }
  /// How long it took rank 0.
  std::chrono::nanoseconds run(const rank_command& what);
  /// How long each took rank 0, in ns.
  std::vector<double> run_singly(rank_command what);

private:
  void start(const mpi_installation& which, const std::string& address, std::size_t ranks);
  void tell_all(const rank_command& what);
  void accept_from(int listener);

  std::vector<muster::unique_fd> ranks_;
  std::string library_;
  pid_t mpirun_ = 0;
};

}  // namespace bench
