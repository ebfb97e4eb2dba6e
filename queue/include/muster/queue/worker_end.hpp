// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/memory/arena.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/nested_end.hpp>
#include <muster/queue/worker_cache.hpp>
#include <muster/serialize/function_token.hpp>

namespace muster {

/// A worker's end of a board: claims tasks, runs them, completes them.
///
/// Thread safety: an object belongs to one thread.
/// Process safety: one per worker index; the process may die at any instruction.
class worker_end {
public:
  struct options {
    std::size_t index = 0;
    int bell = -1;                ///< eventfd that the parent may sleep on; borrowed
    std::uint64_t max_tasks = 0;  ///< leave after so many; 0: never
  };

  /// Lifetime: borrows everything.
  worker_end(board& board, arena& memory, token_decoder& functions, options settings);
  worker_end(const worker_end&) = delete;
  worker_end& operator=(const worker_end&) = delete;
  ~worker_end();

  /// Claims and runs one task, after sleeping until there is one. False when this worker is to leave: by order, or
  /// because it has run max_tasks tasks.
  /// Unblocked by: a task; an order.
  bool run_next();

private:
  friend class nested_end;

  struct claimed_task {
    std::size_t slot = 0;
    slot_word word;
  };

  bool claim(lane& from, claimed_task& task);
  bool claim_any(claimed_task& task);
  bool has_work();
  bool is_wanted();
  void run(const claimed_task& task);
  void announce(const claimed_task& task, const slot_word& asked);
  void ring_bell();
  bool spin(claimed_task& task);
  void park();
  void wake_another();
  [[nodiscard]] bool told_to_leave() const noexcept;
  [[nodiscard]] bool is_ordered_to_leave() const noexcept;
  [[nodiscard]] worker_order order() const noexcept;

  board& board_;
  arena& memory_;
  token_decoder& functions_;
  const options options_;
  worker_line& line_;
  const spin_policy spin_;
  worker_cache cache_;
  std::uint64_t looks_ = 0;  // for aging
  std::uint64_t finished_ = 0;
  const std::shared_ptr<nested_end> nested_;  // calls that tasks have made may outlive this
};

}  // namespace muster
