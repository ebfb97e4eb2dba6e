// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Processors by number, ascending, each once.
using cpu_list = std::vector<unsigned>;

/// Reads what the kernel writes, such as "0-3,8"; nothing when it is no such list. An empty text is an empty list.
///
/// Thread safety: safe.
[[nodiscard]] std::optional<cpu_list> parse_cpu_list(std::string_view text);

/// The same the other way round: "0-3,8".
///
/// Thread safety: safe.
[[nodiscard]] std::string describe(const cpu_list& cpus);

/// Where the calling thread may run. Throws muster::error when the kernel does not say.
///
/// Thread safety: safe.
[[nodiscard]] cpu_list allowed_cpus();

/// Where the calling thread, and what it starts, may run while this lives; then it is again as before.
///
/// Thread safety: belongs to the thread that made it.
class affinity_scope {
public:
  /// Throws muster::error: EINVAL when none of the processors is there, or may be used.
  explicit affinity_scope(const cpu_list& cpus);
  affinity_scope(const affinity_scope&) = delete;
  affinity_scope& operator=(const affinity_scope&) = delete;
  ~affinity_scope();

private:
  const cpu_list before_;
};

}  // namespace muster
