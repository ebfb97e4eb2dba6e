// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/participant.hpp>

#include <algorithm>

#include <muster/base/assert.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

participant_table::participant_table(std::span<participant_entry> entries, pid_t host)
    : entries_(entries), records_(entries.size()) {
  MUSTER_ASSERT(entries.size() > index_of(participant_id::host) && entries.size() <= UINT16_MAX);
  {
    const scoped_lock lock(mutex_);
    records_[index_of(participant_id::none)].taken = true;
    records_[index_of(participant_id::host)] = {.taken = true, .incarnation = 1};
  }
  publish(participant_id::host, host);
}

participant_id participant_table::enrol() {
  const scoped_lock lock(mutex_);
  const auto free = std::find_if(records_.begin(), records_.end(), [](const record& each) { return !each.taken; });
  if (free == records_.end()) {
    throw error(errc::out_of_memory, text("the domain has ", records_.size() - 1,
                                          " participants, and all numbers are taken: "
                                          "use fewer workers, or raise domain_options::max_participants"));
  }
  free->taken = true;
  free->withdrawn = false;
  ++free->incarnation;
  return static_cast<participant_id>(free - records_.begin());
}

void participant_table::publish(participant_id id, pid_t pid) {
  const scoped_lock lock(mutex_);
  const auto incarnation = std::uint64_t{records_[index_of(id)].incarnation};
  entries_[index_of(id)].word.store(incarnation << 32U | static_cast<std::uint32_t>(pid), std::memory_order_release);
}

void participant_table::withdraw(participant_id id) noexcept {
  const scoped_lock lock(mutex_);
  records_[index_of(id)].withdrawn = true;
  entries_[index_of(id)].word.store(0, std::memory_order_seq_cst);
}

void participant_table::retire(participant_id id) {
  const scoped_lock lock(mutex_);
  MUSTER_ASSERT(records_[index_of(id)].taken && id != participant_id::host);
  entries_[index_of(id)].word.store(0, std::memory_order_release);
  entries_[index_of(id)].warm.store(0, std::memory_order_relaxed);
  records_[index_of(id)].taken = false;
}

std::size_t participant_table::count() const {
  const scoped_lock lock(mutex_);
  const auto taken = std::count_if(records_.begin(), records_.end(), [](const record& each) { return each.taken; });
  return static_cast<std::size_t>(taken) - 1;  // "none" is no participant
}

std::optional<std::uint32_t> participant_table::incarnation_of(participant_id id) const {
  const scoped_lock lock(mutex_);
  if (index_of(id) == 0 || index_of(id) >= records_.size()) return std::nullopt;
  const auto& found = records_[index_of(id)];
  return found.taken && !found.withdrawn ? std::optional(found.incarnation) : std::nullopt;
}

}  // namespace muster
