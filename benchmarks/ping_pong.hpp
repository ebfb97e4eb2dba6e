// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/mapping.hpp>

namespace bench {

/// The fastest that two processes can answer each other: both spin on words of one shared page. What round trips are
/// compared with. The other process sleeps while it is not measured.
class ping_pong {
public:
  /// Forks the other process and binds it to the `processor`-th processor.
  explicit ping_pong(std::size_t processor);
  ping_pong(const ping_pong&) = delete;
  ping_pong& operator=(const ping_pong&) = delete;
  ~ping_pong();

  void begin();
  void run(std::size_t count);
  void end();

private:
  struct page {
    alignas(64) std::atomic<std::uint64_t> ping = 0;
    alignas(64) std::atomic<std::uint64_t> pong = 0;
    alignas(64) std::atomic<std::uint32_t> awake = 0;
  };
  [[noreturn]] void answer();

  muster::unique_fd file_;
  muster::mapping memory_;
  page& page_;
  int child_ = 0;
  std::uint64_t sent_ = 0;
};

}  // namespace bench
