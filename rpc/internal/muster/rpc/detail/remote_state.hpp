// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <muster/memory/detail/shared_block.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

/// Of a remote_handle.
///
/// Thread safety: safe. Lifetime: keeps the member's core.
class remote_state {
public:
  static constexpr std::size_t no_actor = ~std::size_t{0};

  /// `actor`: which member it is, where the value is an actor; its owner is the program's member that keeps it.
  remote_state(core_ptr core, const call_peer& owner, std::uint64_t id, shared_block cell,
               std::size_t actor = no_actor) noexcept
      : core_(std::move(core)), owner_(owner), id_(id), cell_(std::move(cell)), actor_(actor) {}
  remote_state(const remote_state&) = delete;
  remote_state& operator=(const remote_state&) = delete;
  ~remote_state();

  [[nodiscard]] const core_ptr& core() const noexcept { return core_; }
  [[nodiscard]] const call_peer& owner() const noexcept { return owner_; }
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
  [[nodiscard]] const shared_block& cell() const noexcept { return cell_; }
  [[nodiscard]] bool is_actor() const noexcept { return actor_ != no_actor; }
  [[nodiscard]] std::size_t actor() const noexcept { return actor_; }
  /// Which member has the value.
  [[nodiscard]] std::size_t place() const noexcept { return is_actor() ? actor_ : owner_.member; }
  [[nodiscard]] bool is_local() const noexcept {
    if (is_actor()) return actor_ == core_->index();
    return owner_.member == core_->index() && owner_.incarnation == core_->incarnation();
  }
  /// The call that makes it, where this member has made that. Thread safety: written before others have the state.
  [[nodiscard]] const call_ptr& creation() const noexcept { return creation_; }
  void set_creation(call_ptr call) noexcept { creation_ = std::move(call); }
  void set_owner(const call_peer& owner) noexcept { owner_ = owner; }
  /// Throws why the value could not be made, if that is known.
  void require_made() const;

private:
  const core_ptr core_;
  call_peer owner_;
  const std::uint64_t id_;
  shared_block cell_;
  const std::size_t actor_;
  call_ptr creation_;
};

}  // namespace muster::detail
