// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <optional>

#include <muster/base/detail/fork_count.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/detail/ring_memory.hpp>

namespace muster {

/// The host's part in a queue: repairs it when a participant has died, and when nobody uses it any more drops what is
/// left in it. Kept by the domain.
///
/// Thread safety: as keepsake; recovery runs on the supervisor's thread.
class queue_keeper final : public keepsake {
public:
  /// Lifetime: borrows the domain, whose keepsake it is.
  queue_keeper(domain& where, shared_block memory, const ring_memory& ring);
  ~queue_keeper() override;

  [[nodiscard]] bool is_done() noexcept override { return domain_.blocks().is_sole(memory_); }

private:
  void recover(participant_id dead) noexcept;
  [[nodiscard]] std::optional<participant_id> names_nobody(std::size_t index) const noexcept;
  void inherit_holds(std::size_t index, participant_id dead) noexcept;
  void drop_message(std::size_t index) noexcept;

  const process_mark made_in_;
  domain& domain_;
  shared_block memory_;
  const ring_memory ring_;
  recovery_registry::registration recovery_;
};

}  // namespace muster
