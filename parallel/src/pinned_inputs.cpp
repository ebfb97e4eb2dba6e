// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/pinned_inputs.hpp>

#include <algorithm>

#include <muster/base/error.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/device/storage.hpp>

namespace muster::detail {

void pinned_inputs::begin(std::span<const sent_input> inputs) {
  if (on_.is_cpu()) return;
  for (const auto& each : inputs) use(each.value);
}

// By its address: what is pinned is kept, so nothing else can lie there; what is not may be taken for what lay there
// before, and is pinned one call too early then.
void pinned_inputs::use(const tensor& input) {
  if (!input.device().is_cpu() || !input.is_shared()) return;
  const auto whole = input.storage()->bytes();
  const auto found = std::ranges::find_if(
      seen_, [&](const entry& each) { return each.first == whole.data() && each.bytes == whole.size(); });
  if (found == seen_.end()) {
    seen_.push_back({.first = whole.data(), .bytes = whole.size()});
  } else if (!found->is_used) {
    found->is_used = true;
    try_to_pin(*found, input);
  }
}

// Once: what cannot be pinned now, most likely cannot later.
void pinned_inputs::try_to_pin(entry& which, const tensor& input) const {
  if (which.was_tried) return;
  which.was_tried = true;
  try {
    which.pin = kind_of(on_).open(on_)->pin(input);
  } catch (const error& failure) {
    if (failure.code() == errc::device_lost) throw;
  }
}

void pinned_inputs::end() {
  std::erase_if(seen_, [](const entry& each) { return !each.is_used; });
  for (auto& each : seen_) each.is_used = false;
}

}  // namespace muster::detail
