// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>
#include <muster/parallel/detail/world_memory.hpp>
#include <muster/parallel/detail/world_ticket.hpp>
#include <muster/pool/pool.hpp>

namespace muster::detail {

/// A rank that is a worker of a pool, as the caller sees it: the task that it is at as long as it is that rank.
///
/// Thread safety: one thread at a time; the pool tells it of the task's end meanwhile.
class rank_process {
public:
  rank_process(pool& workers, std::size_t worker, std::size_t rank) noexcept
      : pool_(workers), worker_(worker), rank_(rank) {}

  /// Has the worker become the rank. Requires: it is not one, or it has ended.
  void start(const world_ticket& ticket, const world_memory& memory);

  /// Whether the process that was the rank is gone; looks at the rank's line and at who has that number now.
  [[nodiscard]] bool is_gone(const domain& where) const noexcept {
    return identity_.pid != 0 && !identity_.is_alive(where);
  }
  /// Whether it has said that it is the rank; from then on it is known who that is.
  [[nodiscard]] bool is_there(const world_memory& memory) noexcept;
  /// Whether nobody is the rank, nor going to be: start() is needed.
  [[nodiscard]] bool is_vacant(const domain& where) const { return identity_.pid != 0 ? is_gone(where) : has_ended(); }
  [[nodiscard]] pid_t pid() const noexcept { return identity_.pid; }

  /// Kills the worker, if it still is the rank.
  void kill();
  /// How the task has ended, once it has: by its worker's death, or because none could be started.
  [[nodiscard]] std::optional<error_info> ended() const;
  [[nodiscard]] bool has_ended() const { return ended().has_value(); }
  /// Its number among the world's failures; 0: it has not ended.
  [[nodiscard]] std::uint64_t ended_as() const;

private:
  struct ending {
    mutable mutex guard;
    std::optional<error_info> how MUSTER_GUARDED_BY(guard);
    std::uint64_t number MUSTER_GUARDED_BY(guard) = 0;
  };

  [[nodiscard]] future<void> asked(const world_ticket& ticket, const world_memory& memory);

  pool& pool_;
  std::size_t worker_;
  std::size_t rank_;
  std::shared_ptr<ending> ending_ = std::make_shared<ending>();
  std::function<void(cancellation)> cancel_;
  rank_identity identity_;
};

}  // namespace muster::detail
