// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cstdint>

namespace muster::detail {

/// What a worker that crashes sends, as it is in memory: addresses with the module that they are in, which the parent
/// gives names. Modules are at other addresses there, so each has its base.
struct crash_record {
  static constexpr std::size_t most_frames = 48;
  static constexpr std::size_t most_modules = 16;

  struct frame {
    std::uint64_t address = 0;            // within the module, as its file counts; by itself if it is in none
    std::uint32_t module = most_modules;  // index; most_modules: none
    std::uint32_t is_exact = 0;           // 1: of the instruction; 0: of the one behind a call
  };
  using module_name = std::array<char, 192>;  // ends with 0; empty: the program

  std::int32_t signal = 0;
  std::int32_t has_address = 0;  // 1: the kernel said at which address
  std::uint64_t address = 0;
  std::int32_t sender = 0;  // pid, of a signal that was sent; 0: it was not
  std::uint32_t frames_count = 0;
  std::uint32_t modules_count = 0;
  std::array<frame, most_frames> frames{};
  std::array<module_name, most_modules> modules{};
};

/// From now on this process says over the control socket where it crashed, and ends as it would have ended without.
/// Signals that the program handles itself are left alone. Does nothing in a sanitized build.
/// Requires: called once, on the main thread. Stack overflows are seen on that thread only.
void report_crashes(int control);

}  // namespace muster::detail
