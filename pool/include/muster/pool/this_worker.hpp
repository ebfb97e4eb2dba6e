// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

/// Who runs this code: a worker process, or a thread of a pool of threads, whose incarnation is always 1. Elsewhere:
/// index -1, incarnation 0, no name.
///
/// Thread safety: safe.
namespace muster::this_worker {

/// The worker's index in its pool; a replacement keeps it.
[[nodiscard]] int id() noexcept;
/// 1 in the first process with this index, 2 in its replacement, and so on.
[[nodiscard]] std::uint32_t incarnation() noexcept;
[[nodiscard]] const std::string& pool_name() noexcept;

}  // namespace muster::this_worker
