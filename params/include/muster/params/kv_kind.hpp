// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <muster/base/requirements.hpp>

namespace muster {

/// How pushes of a key-value store become values: MXNet's types, by what they do.
///
/// Thread safety: a value; safe, and so are the functions.
enum class kv_kind : std::uint8_t {
  local,   ///< one process: each push is applied at once
  device,  ///< the same; values that are initialized on GPUs stay there, and so does what the rule remembers of them
  sync,    ///< pushes of all workers are summed, in the order of ranks, and applied together: dist_sync
  async    ///< each push is applied alone, as it comes: dist_async
};

/// From MXNet's names, in any case: local and its aliases, device, dist, dist_sync, dist_device_sync, dist_async.
/// Throws errc::invalid_argument for any other, with what there is; for nccl, p3, horovod and byteps with what to use
/// instead.
[[nodiscard]] kv_kind kv_kind_of(std::string_view name);
/// Returns the enumerator's name: "sync". Any other number gives "?".
[[nodiscard]] std::string_view to_string(kv_kind kind) noexcept;
/// Writes the same.
std::ostream& operator<<(std::ostream& out, kv_kind kind);

}  // namespace muster
