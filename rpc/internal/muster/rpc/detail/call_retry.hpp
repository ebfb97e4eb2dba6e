// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <muster/memory/detail/shared_block.hpp>
#include <muster/queue/detail/taken_message.hpp>
#include <muster/queue/retry_reasons.hpp>
#include <muster/rpc/detail/rpc_heads.hpp>
#include <muster/rpc/rpc_options.hpp>
#include <muster/serialize/detail/attachments.hpp>

namespace muster::detail {

/// Which attempts of a call are made, and what is sent each time.
///
/// Thread safety: the questions: under the lock of the ledger that has the call. The rest: written before the first
/// attempt; safe then.
class call_retry {
public:
  /// Throws errc::invalid_argument for options that cannot be.
  explicit call_retry(const rpc_call_options& how);

  /// Whether there is to be another attempt, which is counted then.
  ///@{
  /// Its member is lost. One that had not begun does not count.
  [[nodiscard]] bool tries_again_after_loss(bool had_begun) noexcept;
  /// It was answered so.
  [[nodiscard]] bool tries_again_after(reply_kind how, const taken_message& reply) noexcept;
  ///@}
  /// Which attempt comes next, and how long before it that of its delay is.
  [[nodiscard]] std::uint32_t attempt() const noexcept { return attempt_; }
  [[nodiscard]] std::chrono::nanoseconds first_delay() const noexcept { return first_delay_; }

  std::vector<std::byte> frame{};
  std::vector<shared_block> blocks{};
  std::string service{};           ///< which one, where it calls one
  std::uint64_t service_type = 0;  ///< its fingerprint

private:
  [[nodiscard]] bool count() noexcept;

  const retry_reasons reasons_;
  const std::chrono::nanoseconds first_delay_;
  unsigned left_;
  std::uint32_t attempt_ = 1;
};

/// Takes blocks on the way into a message, and notes them for further ones.
///
/// Thread safety: belongs to its thread. Lifetime: borrows both.
class noting_sink final : public attachment_sink {
public:
  noting_sink(attachment_sink& to, std::vector<shared_block>& notes) noexcept : to_(to), notes_(notes) {}
  std::uint64_t attach(const shared_block& what) override {
    notes_.push_back(what);
    return to_.attach(what);
  }

private:
  attachment_sink& to_;
  std::vector<shared_block>& notes_;
};

}  // namespace muster::detail
