// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <set>
#include <string>

namespace muster::weak {

/// The weakenings that break nothing, by name. Why: docs/design/weak-memory.md.
[[nodiscard]] inline std::set<std::string> not_needed() {
  return {
      // What the hint's release and acquire order already.
      "publish_slot_store_no_release",
      "claim_slot_load_no_acquire",
      "claim_slot_compare_no_acquire",
      "claim_slot_compare_no_release",
      // Nobody reads anything by way of it.
      "retire_slot_store_no_release",
      "seize_slot_exchange_no_release",
      "revoke_slot_load_no_acquire",
      "revoke_slot_compare_no_release",
      "complete_slot_exchange_no_acquire",
      "request_slot_fetch_or_no_acquire",
      // The parent's lock orders it.
      "any_record_load_no_acquire",
      "any_record_store_no_release",
      // The head of a lane only counts.
      "look_lane_head_load_no_acquire",
      "advance_lane_head_compare_no_acquire",
      "advance_lane_head_compare_no_release",
      "room_lane_head_load_no_acquire",
      // Another operation on the same set comes before or after.
      "any_sleeping_fetch_and_no_acquire",
      "any_sleeping_fetch_and_no_release",
      "sleep_sleeping_fetch_and_no_acquire",
      "sleep_sleeping_fetch_and_no_release",
      "sleep_spinning_compare_no_acquire",
      "sleep_spinning_compare_no_release",
      "sleep_spinning_fetch_and_no_release",
      "wake_sleeping_touch_no_acquire",
      "wake_spinning_touch_no_acquire",
      // Two that spin at once take a processor more, and miss nothing: each looks once more before it sleeps.
      "sleep_spinning_compare_plain",
      // The set orders it.
      "sleep_parked_load_no_acquire",
      "wake_parked_store_no_release",
      "order_order_load_no_acquire",
      "order_order_store_no_release",
      // The bell orders it; without the exchange it is rung more often.
      "bell_armed_exchange_no_acquire",
      "bell_armed_exchange_no_release",
      "bell_armed_exchange_plain",
  };
}

}  // namespace muster::weak
