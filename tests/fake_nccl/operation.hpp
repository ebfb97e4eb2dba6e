// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <nccl.h>

#include "wire.hpp"

namespace fake_nccl {

/// What a rank was asked for.
struct request {
  enum class kind { all_reduce, reduce, reduce_scatter, broadcast, all_gather, send, receive };

  kind what;
  const std::byte* from;
  std::byte* to;
  std::size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;
};

/// The requests of one group of calls, carried out together: all of them are messages, and what is done behind.
///
/// Thread safety: belongs to one thread.
class operation {
public:
  operation(board& over, std::size_t rank, std::size_t size) : board_(over), rank_(rank), size_(size) {}

  void add(const request& what);
  /// Until it has been done, or `is_over()`. Throws ncclResult_t where another rank's message is of another size.
  void run(const std::function<bool()>& is_over);

private:
  struct message {
    ring* by = nullptr;
    bool sends = false;
    std::byte* at = nullptr;
    std::size_t left = 0;
    std::uint64_t announced = 0;  ///< its size, which goes before
    std::size_t head_left = sizeof(std::uint64_t);

    [[nodiscard]] bool is_done() const { return left == 0 && head_left == 0; }
    /// Whether anything moved.
    bool advance();
    bool advance_head();
  };

  void send(const std::byte* from, std::size_t bytes, std::size_t to);
  void receive(std::byte* to, std::size_t bytes, std::size_t from);
  void add_all_gather(const request& what, std::size_t bytes);
  void add_broadcast(const request& what, std::size_t bytes);
  void add_reduction(const request& what, std::size_t bytes, std::size_t root);
  std::byte* room(std::size_t bytes) { return rooms_.emplace_back(bytes).data(); }
  bool advance();

  board& board_;
  const std::size_t rank_;
  const std::size_t size_;
  std::vector<message> messages_;
  std::vector<std::function<void()>> behind_;
  std::vector<std::vector<std::byte>> rooms_;
};

}  // namespace fake_nccl
