// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/wait/spin_policy.hpp>

#include <atomic>
#include <cstdint>

#include <muster/base/cpu_list.hpp>
#include <muster/base/effective_cpus.hpp>

namespace muster {

spin_policy spin_policy::of_process() {
  static std::atomic<std::uint64_t> known = 0;  // {processors:32, those that may be kept busy:32}
  const auto cpus = process_cpus().size();
  auto found = known.load(std::memory_order_relaxed);
  if (found >> 32U != cpus) {
    found = cpus << 32U | effective_cpus();
    known.store(found, std::memory_order_relaxed);
  }
  const auto processors = static_cast<unsigned>(found);
  return {.budget = processors < 2 ? std::chrono::nanoseconds(0) : usual_budget, .processors = processors};
}

}  // namespace muster
