// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::detail {

/// Returns the description of the note NT_GNU_BUILD_ID in a segment of notes, or nothing. Lifetime: borrows the notes.
///
/// Thread safety: safe.
[[nodiscard]] std::string_view build_id_in(const char* notes, std::size_t bytes) noexcept;

}  // namespace muster::detail
