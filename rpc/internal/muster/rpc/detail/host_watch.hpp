// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include <muster/memory/domain.hpp>

namespace muster::detail {

/// Watches, in a program that has joined a domain, the process of its host: when that has ended the deaths of others
/// are not known any more. Elsewhere it does nothing.
///
/// Thread safety: belongs to its owner.
/// Cost: a thread that sleeps, and two descriptors; elsewhere none.
class host_watch {
public:
  host_watch() noexcept = default;
  host_watch(const host_watch&) = delete;
  host_watch& operator=(const host_watch&) = delete;
  ~host_watch() { stop(); }

  /// Has `told` called when the host has ended, on a thread of its own. Throws EMFILE, EAGAIN. To be called once.
  void begin(const domain& where, std::function<void()> told);
  /// Waits for what is being told. Nothing is told afterwards.
  void stop() noexcept;

private:
  struct watched;

  std::shared_ptr<watched> watched_;
  std::thread thread_;
};

}  // namespace muster::detail
