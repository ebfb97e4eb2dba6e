// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/requirements.hpp>

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

/// Where this process may run: where its main thread might when muster::init was called, and before that where its main
/// thread may now. What libraries bind threads to later does not count, the calling one included: a process that is
/// bound on purpose is bound before it calls muster::init, by taskset, its control group or its own main(). Throws
/// muster::error when the kernel does not say.
///
/// Thread safety: safe.
/// Process safety: a forked child has its parent's until it calls muster::init itself.
[[nodiscard]] cpu_list process_cpus();

namespace detail {

/// Notes where the main thread may run now, for process_cpus(). Does nothing where the kernel does not say.
///
/// Thread safety: safe.
void note_process_cpus() noexcept;

/// The calling thread runs from now on where the process may: for threads of pools, whichever thread has started them.
/// It stays where it is where the kernel refuses.
///
/// Thread safety: safe.
void run_where_process_may() noexcept;

}  // namespace detail

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
