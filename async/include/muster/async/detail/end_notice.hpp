// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// Learns once that something has ended, from the thread that observes the end: often the supervisor.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class end_notice {
public:
  end_notice() = default;
  end_notice(const end_notice&) = delete;
  end_notice& operator=(const end_notice&) = delete;
  /// Without a tell() before: whatever was to end is not going to say so.
  virtual ~end_notice() = default;

  /// Passes the news on. Runs no code of the program, and destroys nothing that the program has given.
  static void tell(std::unique_ptr<end_notice> self) noexcept {
    if (self != nullptr) self.release()->tell();
  }

  /// For the source of the news: where it keeps what it needs to tell them, so that asking for them allocates nothing.
  struct room {
    alignas(std::max_align_t) std::array<std::byte, 4 * sizeof(void*)> bytes;
  };
  [[nodiscard]] room& for_source() noexcept { return room_; }

private:
  /// Owns itself from now on.
  virtual void tell() noexcept = 0;

  room room_;
};

}  // namespace muster::detail
