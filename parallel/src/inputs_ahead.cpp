// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/inputs_ahead.hpp>

#include <muster/base/error.hpp>
#include <muster/device/detail/device_block.hpp>

namespace muster::detail {

inputs_ahead::inputs_ahead(const share_inputs& inputs, device to) : inputs_(inputs), to_(to) {
  if (to.is_cpu() || inputs.slices() < 2 || inputs.count() == 0) return;
  lane_ = kind_of(to).open(to)->make_copy_lane();
}

inputs_ahead::~inputs_ahead() = default;

void inputs_ahead::take_into(std::vector<tensor>& given) {
  if (next_.empty()) return;
  lane_->await();
  for (auto& each : next_) given[each.input] = std::move(each.there);
  next_.clear();
}

void inputs_ahead::begin_after(std::size_t slice) {
  for (auto next = slice + 1; lane_ && next < inputs_.slices(); ++next) {
    if (const auto rows = inputs_.rows_of(next); !rows.empty()) return begin(rows);
  }
}

// What the slice before the present one lay in has been given back, and is found again, most likely; the device may
// still be reading it, which the lane waits for.
void inputs_ahead::begin(row_range rows) {
  if (!find_room(rows)) {
    next_.clear();
    lane_.reset();
  }
  if (next_.empty()) return;
  lane_->begin();
  for (const auto& each : next_) lane_->copy(each.there, each.from);
}

// Where there is none for two slices, one after the other is what there is room for.
bool inputs_ahead::find_room(row_range rows) {
  try {
    for (std::size_t input = 0; input < inputs_.count(); ++input) {
      if (inputs_.is_gathered(input)) continue;
      auto from = inputs_.view_of(input, rows);
      if (from.size() == 0 || !lane_->takes(from)) continue;
      auto there = tensor::empty(from.dtype(), from.shape(), to_);
      next_.push_back({.input = input, .from = std::move(from), .there = std::move(there)});
    }
    return true;
  } catch (const error& failure) {
    if (failure.code() != errc::out_of_memory) throw;
    return false;
  }
}

}  // namespace muster::detail
