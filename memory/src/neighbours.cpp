// SPDX-License-Identifier: BSL-1.0
#include "neighbours.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/of_process.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

namespace {

struct neighbourhood {
  mutex guard;
  std::vector<const arena*> arenas MUSTER_GUARDED_BY(guard);
};

constinit of_process<neighbourhood> neighbourhoods;

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
  auto& all = neighbourhoods.get();
  const scoped_lock lock(all.guard);
  all.arenas.push_back(&which_);
}

neighbour::~neighbour() {
  auto& all = neighbourhoods.get();
  const scoped_lock lock(all.guard);
  std::erase(all.arenas, &which_);
}

memory_budget budget_beside_neighbours(const arena& of) {
  auto& all = neighbourhoods.get();
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
