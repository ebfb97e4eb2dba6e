// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the workers of the service do.

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

namespace service {

/// The hash of a file's content, or why there is none.
struct file_hash {
  std::array<std::uint8_t, 16> digest{};  ///< XXH3 of 128 bits, as xxh128sum shows it
  int failure = 0;                        ///< errno of what could not be done with the file; 0: all went well
};

/// Reads a file in pieces. What goes wrong with the file is part of the result. Running it twice does no harm.
[[nodiscard]] file_hash hash_file(const std::string& path);

void sleep_for(std::chrono::milliseconds time);

/// Kills its process with SIGABRT.
void crash();

}  // namespace service
