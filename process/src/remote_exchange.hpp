// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <memory>

#include <muster/memory/detail/descriptor_exchange.hpp>
#include <muster/memory/domain.hpp>

#include "conversation.hpp"

namespace muster::detail {

/// The exchange of descriptors as a participant has it that is not the host: asks the host's descriptor_clerk.
///
/// Lifetime: borrows the domain, which owns it.
class remote_exchange final : public descriptor_exchange {
public:
  /// `patience`: how long the host may take to answer what it can answer at once.
  remote_exchange(domain& shared, std::shared_ptr<conversation> host, std::chrono::nanoseconds patience);

  void deposit(descriptor_name name, unique_fd what, const shared_block& anchor) override;
  [[nodiscard]] std::optional<unique_fd> fetch(descriptor_name name, deadline until) override;
  void withdraw(descriptor_name name) noexcept override { tell(message_kind::withdraw, {.name = name.bits()}); }
  void let_go(descriptor_name name) noexcept override { tell(message_kind::let_go, {.name = name.bits()}); }

private:
  void tell(message_kind what, const descriptor_request& about) noexcept;

  arena& memory_;
  const std::shared_ptr<conversation> host_;
  const std::chrono::nanoseconds patience_;
};

}  // namespace muster::detail
