// SPDX-License-Identifier: BSL-1.0
#include "execution.hpp"

namespace muster::model {

std::uint64_t word::load(std::memory_order) const {
  if (kind_ == word_kind::head) return load_head();
  auto what = access{.reads = resource_};
  auto& running = now();
  if (kind_ == word_kind::unread || kind_ == word_kind::parked || (kind_ == word_kind::flag && value() != 0)) what = {};
  if (kind_ == word_kind::entry && value() >> 48U == running.ticket_ / lap_ + 1) what = {};
  const auto weighs = weigh();
  if (weighs != weight::matters) what = {};
  const auto found = running.perform(what, [&] { return weighs == weight::nothing ? 0 : value(); }, index_);
  if (kind_ == word_kind::entry) running.found_none_ = found >> 48U != running.ticket_ / lap_ + 1;
  return found;
}

// First to get a ticket: one that is too old leads to a task that cannot be claimed, and back here. Then, when there
// was no entry, to see whether that ticket is still good.
std::uint64_t word::load_head() const {
  auto& running = now();
  const bool again = running.reads_lane_;
  const auto what = again && value() == running.ticket_ ? access{.reads = resource_} : access{};
  const auto found =
      running.perform(what, [&] { return again && value() != running.ticket_ ? running.ticket_ + 1 : value(); }, index_);
  running.reads_lane_ = !again;
  running.found_none_ = false;
  if (!again) running.ticket_ = found;
  return found;
}

std::uint64_t word::exchange_if(std::uint64_t wanted, std::uint64_t desired) {
  if (kind_ == word_kind::head) {
    const bool moves = value() == wanted;
    return now().perform({.writes = moves ? resource_ << 1U : 0}, [&] {
      if (moves) value() = desired;
      return moves ? wanted : wanted + 1;
    });
  }
  if (value() == wanted) return change(resource_, [&](std::uint64_t) { return desired; });
  const auto weighs = weigh();
  const auto what = weighs == weight::matters ? access{.reads = resource_} : access{};
  return now().perform(what, [&] { return weighs == weight::nothing ? 0 : value(); }, index_);
}

}  // namespace muster::model
