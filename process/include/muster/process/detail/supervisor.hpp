// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/base/log.hpp>
#include <muster/memory/domain.hpp>

namespace muster {

/// The one thread of a domain that watches its worker processes: it starts them, hears of their deaths by pidfd,
/// recovers what they had, and notices completions that nobody waits for. It runs no user code, so nothing that a
/// program does delays it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Process safety: belongs to the process that made it; in a forked child its destructor does nothing.
/// Lifetime: crews keep their supervisor alive.
class supervisor {
public:
  /// Requires: the caller is the domain's host.
  /// Throws EMFILE or EAGAIN when descriptors or threads run out.
  explicit supervisor(std::shared_ptr<domain> watched, log_sink log = log_to_stderr);
  /// Makes the domain as well; throws what that throws.
  explicit supervisor(const domain_options& options, log_sink log = log_to_stderr)
      : supervisor(std::make_shared<domain>(options), std::move(log)) {}
  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;
  /// Waits for the thread. Requires: not called on it.
  ~supervisor();

  /// The one that all pools of this program share; made when first asked for, gone with its last user.
  /// Throws errc::invalid_argument when it exists already with a smaller arena than `options` asks for.
  [[nodiscard]] static std::shared_ptr<supervisor> of_program(const domain_options& options);

  [[nodiscard]] const std::shared_ptr<domain>& shared() const noexcept;

  class impl;
  /// For crews.
  [[nodiscard]] impl& internals() noexcept { return *impl_; }

private:
  std::unique_ptr<impl> impl_;
};

}  // namespace muster
