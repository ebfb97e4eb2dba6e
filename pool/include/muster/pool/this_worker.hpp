// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <muster/base/device.hpp>

/// Who runs this code: a worker process, or a thread of a pool of threads, whose incarnation is always 1. Elsewhere:
/// index -1, incarnation 0, no name.
///
/// Thread safety: safe.
namespace muster::this_worker {

/// The worker's index in its pool; a replacement keeps it.
[[nodiscard]] int id() noexcept;
/// 1 in the first process with this index, 2 in its replacement, and so on.
[[nodiscard]] std::uint32_t incarnation() noexcept;
/// The name that its pool was made with: pool_options::name, or thread_pool_options::name.
[[nodiscard]] const std::string& pool_name() noexcept;

/// What this process is pinned to (pool_options::devices), as the program names it: "cuda:1". In the process itself it
/// is CUDA's device 0. The host where there is no such thing.
[[nodiscard]] muster::device device() noexcept;

/// This process must not run another task: something in it is broken for good, such as a context of CUDA's after an
/// illegal access. It finishes the task that it is at, or the element of a map, whose result or error is delivered as
/// usual. Then it runs the finalizer, leaves, and is replaced; the pool's log says why, once. An idle one leaves at
/// once. Calls that the task makes of its own pool and runs in place still run. In an initializer it means that the
/// start has failed. A task that throws an error of its own with errc::device_lost has asked for this too.
/// False where no process would be replaced: outside of a pool's worker.
/// Thread safety: safe, from any thread.
bool replace_after_task(std::string_view why) noexcept;

}  // namespace muster::this_worker
