// SPDX-License-Identifier: BSL-1.0
#pragma once

// Building messages, and what the kernel and other programs read. GCC 12 has no <format>, and the library itself links
// no formatting library.
//
// Thread safety: all functions are safe to call from any thread.

#include <cstdint>
#include <locale>
#include <sstream>
#include <string>

#include <muster/base/requirements.hpp>

namespace muster {

namespace detail {

/// Writes numbers as C does. A stream takes the program's global locale otherwise, which may group digits or have a
/// decimal comma.
class text_writer : public std::ostringstream {
public:
  text_writer() { imbue(std::locale::classic()); }
};

/// Reads numbers as C writes them.
class text_reader : public std::istringstream {
public:
  explicit text_reader(const std::string& what) : std::istringstream(what) { imbue(std::locale::classic()); }
};

}  // namespace detail

/// Everything that operator<< prints, joined, whatever the program's locale is: "12345", "2.5". It allocates.
template <class... Parts>
[[nodiscard]] std::string text(const Parts&... parts) {
  detail::text_writer out;
  (out << ... << parts);
  return std::move(out).str();
}

/// `what`, or words for nothing where it is null: the what() of somebody's exception may be, and no std::string can be
/// made of that.
[[nodiscard]] inline const char* text_or_none(const char* what) noexcept {
  return what != nullptr ? what : "(no text)";
}

/// A byte count for people: `text_of_bytes(5368709120)` is "5.0 GiB", whatever the program's locale is.
[[nodiscard]] std::string text_of_bytes(std::uint64_t count);

}  // namespace muster
