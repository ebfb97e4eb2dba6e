// SPDX-License-Identifier: BSL-1.0
#pragma once

// Building messages. GCC 12 has no <format>, and the library itself links no formatting library.
//
// Thread safety: all functions are safe to call from any thread.

#include <cstdint>
#include <sstream>
#include <string>

namespace muster {

/// Everything that operator<< prints, joined. Meant for error messages: it allocates.
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// `what`, or words for nothing where it is null: the what() of somebody's exception may be, and no std::string can be
/// made of that.
[[nodiscard]] inline const char* text_or_none(const char* what) noexcept {
  return what != nullptr ? what : "(no text)";
}

/// A byte count for people: `text_of_bytes(5368709120)` is "5.0 GiB".
[[nodiscard]] std::string text_of_bytes(std::uint64_t count);

}  // namespace muster
