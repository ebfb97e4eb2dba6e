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

/// The ranks of an MPI program (mpi_peer.cpp), each bound to the processor of its number: our turns and its turns can
/// alternate.
class mpi_ranks {
public:
  explicit mpi_ranks(std::size_t ranks);
  mpi_ranks(const mpi_ranks&) = delete;
  mpi_ranks& operator=(const mpi_ranks&) = delete;
  ~mpi_ranks();

  /// Whether there are an mpirun and the program for it.
  [[nodiscard]] static bool is_there();

  /// "Open MPI v4.1.4".
  [[nodiscard]] const std::string& library() const noexcept { return library_; }
  /// How long it took rank 0.
  std::chrono::nanoseconds run(const rank_command& what);

private:
  void start(const std::string& address, std::size_t ranks);
  void accept_from(int listener);

  std::vector<muster::unique_fd> ranks_;
  std::string library_;
  pid_t mpirun_ = 0;
};

}  // namespace bench
