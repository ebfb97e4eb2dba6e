// SPDX-License-Identifier: BSL-1.0
#include "neighbours.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include <muster/base/fork_count.hpp>
#include <muster/base/mutex.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

// Those of one process. A forked child makes a list of its own, since a thread that it does not have may have had the
// lock; its parent's is kept, so that nobody takes it for lost.
struct neighbourhood {
  explicit neighbourhood(const neighbourhood* from) noexcept : parents(from) {}

  static neighbourhood& of_process() {
    static std::atomic<neighbourhood*> current = nullptr;
    auto* found = current.load(std::memory_order_acquire);
    while (found == nullptr || !found->made_in.is_here()) {
      auto made = std::make_unique<neighbourhood>(found);
      if (current.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return *made.release();
    }
    return *found;
  }

  const neighbourhood* const parents;
  const process_mark made_in;
  mutex guard;
  std::vector<const arena*> arenas MUSTER_GUARDED_BY(guard);
};

// An arena whose file cannot be looked at (somebody has closed it) has nobody who asks for more.
std::size_t claimed_in(const arena& which) noexcept {
  try {
    return which.untouched_bytes();
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

neighbour::neighbour(const arena& which) : which_(which) {
  auto& all = neighbourhood::of_process();
  const scoped_lock lock(all.guard);
  all.arenas.push_back(&which_);
}

neighbour::~neighbour() {
  auto& all = neighbourhood::of_process();
  const scoped_lock lock(all.guard);
  std::erase(all.arenas, &which_);
}

memory_budget budget_beside_neighbours(const arena& of) {
  auto& all = neighbourhood::of_process();
  std::size_t claimed = 0;
  {
    const scoped_lock lock(all.guard);
    for (const auto* each : all.arenas) claimed += each != &of ? claimed_in(*each) : 0;
  }
  auto found = available_memory();
  if (claimed == 0) return found;
  found.available_bytes -= std::min<std::uint64_t>(found.available_bytes, claimed);
  found.limited_by += text(", less ", text_of_bytes(claimed), " claimed in other domains of this process");
  return found;
}

}  // namespace muster::detail
