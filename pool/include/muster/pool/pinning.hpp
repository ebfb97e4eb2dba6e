// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/cpu_list.hpp>

namespace muster {

/// Which processors a pool's workers may run on: pool_options::pin.
///
///     muster::pool pool({.workers = 8, .pin = muster::pinning::one_each()});
///     muster::pool near({.workers = 4, .pin = muster::pinning::near_device("0000:3b:00.0")});
///
/// A worker is bound before its program is executed, so that memory that it touches first comes from there, threads
/// that it starts stay there, and libraries count these processors only; so does OMP_NUM_THREADS, where the program's
/// environment does not set it, for which workers that have the same processors share them. Only processors that the
/// process may use (process_cpus()) count. By default workers run on all of those, or, if they are pinned to devices
/// (device_choice), near those: a library may have bound the calling thread to one processor (an OpenMP runtime, a
/// database driver), and the workers would share it. `as_caller()` asks for just that. A worker that is started when
/// its processors have been taken from the program (by a change of its cpuset) is not bound; the log says so once.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class pinning {
public:
  pinning() noexcept = default;
  /// Wherever the thread may that makes the pool, for all workers; `workers = 0` is as many as that thread may keep
  /// busy.
  [[nodiscard]] static pinning as_caller() { return pinning(choice::as_caller); }
  /// A processor for each worker: one of every core first, then the cores' others, then from the start again.
  [[nodiscard]] static pinning one_each() { return pinning(choice::each_cpu); }
  /// All processors of one NUMA node for each worker, in turn.
  [[nodiscard]] static pinning node_each() { return pinning(choice::each_node); }
  /// All processors of that NUMA node for all workers.
  [[nodiscard]] static pinning to_node(unsigned node) {
    pinning made(choice::one_node);
    made.node_ = node;
    return made;
  }
  /// Those that are nearest to a PCI device, by its address as lspci -D says it, for all workers.
  [[nodiscard]] static pinning near_device(std::string address) {
    pinning made(choice::near_device);
    made.address_ = std::move(address);
    return made;
  }
  /// These, for each worker in turn: `to({{0, 1}, {2, 3}})`.
  [[nodiscard]] static pinning to(std::vector<cpu_list> lists) {
    pinning made(choice::lists);
    made.lists_ = std::move(lists);
    return made;
  }

  /// What that is on this machine: worker `i` gets list `i` modulo their number; none: no worker is bound.
  /// Throws errc::invalid_argument when a list has no processor that the program may use, and says which those are.
  /// Cost: reads a few files of /sys; `system_root` is where it is, a test passes a made-up one.
  [[nodiscard]] std::vector<cpu_list> resolve(const std::string& system_root = "/") const;
  /// How many processors may be kept busy: by the process, or, as_caller(), by the calling thread. As effective_cpus().
  [[nodiscard]] unsigned processors(const std::string& system_root = "/") const;

private:
  enum class choice : std::uint8_t { none, as_caller, each_cpu, each_node, one_node, near_device, lists };
  class resolver;

  explicit pinning(choice made) noexcept : choice_(made) {}

  choice choice_ = choice::none;
  unsigned node_ = 0;            // one_node
  std::string address_;          // near_device
  std::vector<cpu_list> lists_;  // lists
};

}  // namespace muster
