// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a thread is at: for which member it acts, and which call it serves.

#include <memory>
#include <stop_token>

#include <muster/base/clock.hpp>
#include <muster/pool/detail/stoppable.hpp>
#include <muster/rpc/detail/call_stops.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

/// The member that this thread acts for: it serves a call, or decodes a reply, of that member. References that are
/// decoded meanwhile belong to that.
///
/// Thread safety: belongs to the thread that made it.
class acting_member {
public:
  explicit acting_member(rpc_core& core) noexcept;
  acting_member(const acting_member&) = delete;
  acting_member& operator=(const acting_member&) = delete;
  ~acting_member();
  /// nullptr where it acts for none.
  [[nodiscard]] static rpc_core* current() noexcept;

private:
  rpc_core* const before_;
};

/// The call that this thread serves.
///
/// Thread safety: belongs to the thread that made it.
class served_call final : public stoppable {
public:
  served_call(rpc_core& core, const request_head& head) noexcept;
  served_call(const served_call&) = delete;
  served_call& operator=(const served_call&) = delete;
  ~served_call();
  /// nullptr where it serves none.
  [[nodiscard]] static const served_call* current() noexcept;

  [[nodiscard]] rpc_core& core() const noexcept { return core_; }
  [[nodiscard]] const request_head& head() const noexcept { return head_; }
  [[nodiscard]] call_id id() const noexcept { return id_of(head_); }
  [[nodiscard]] deadline until() const noexcept;
  [[nodiscard]] bool is_wanted() const noexcept;
  [[nodiscard]] bool stop_requested() const noexcept override { return !is_wanted(); }
  [[nodiscard]] std::stop_token stop_token() const override;

private:
  rpc_core& core_;
  const request_head& head_;
  const served_call* const before_;
  mutable std::shared_ptr<watched_call> watched_;  // once its token was asked for
};

}  // namespace muster::detail
