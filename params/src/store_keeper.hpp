// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/memory/domain.hpp>
#include <muster/params/detail/store_table.hpp>

namespace muster::detail {

/// The host's part in a store: drops what a process that died had taken out of a key, or had not put there yet, and
/// everything when no process has the store any more. Kept by the domain.
///
/// Thread safety: as keepsake.
class store_keeper final : public keepsake {
public:
  static void keep(domain& where, const shared_block& memory, const store_table& table);
  store_keeper(const store_keeper&) = delete;
  store_keeper& operator=(const store_keeper&) = delete;
  ~store_keeper() override;

  [[nodiscard]] bool is_done() noexcept override { return domain_.blocks().is_sole(memory_); }

private:
  store_keeper(domain& where, const shared_block& memory, const store_table& table);
  void recover(participant_id dead) noexcept;
  void end_push(std::uint64_t hold, std::uint64_t said);
  [[nodiscard]] bool has(std::size_t line, std::uint64_t hold);
  void end_record(std::uint64_t hold);

  const process_mark made_in_;
  domain& domain_;
  const shared_block memory_;
  const store_table table_;
  recovery_registry::registration recovery_;
};

}  // namespace muster::detail
