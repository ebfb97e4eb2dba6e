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
  return running.perform(what, [&] { return weighs == weight::nothing ? 0 : value(); }, index_);
}

// A worker that says that it sleeps enters the set next: who wakes it in between might as well do so after that.
void word::store(std::uint64_t desired, std::memory_order) {
  const bool is_free = kind_ == word_kind::unread || kind_ == word_kind::where;
  const access what{.writes = is_free ? 0 : resource_};
  const auto operation = [&] { return value() = desired, 0; };
  if (kind_ == word_kind::parked && desired != 0) {
    now().perform_with_next(what, operation);
  } else {
    now().perform(what, operation);
  }
}

// First to get a ticket: one that is too old leads to a task that cannot be claimed, and back here. Then, when there
// was no entry, to see whether that ticket is still good: if not, it might as well have begun to look now.
std::uint64_t word::load_head() const {
  auto& running = now();
  const bool is_old = running.reads_lane_ && value() != running.ticket_;
  const auto found = running.perform({}, [&] { return is_old ? running.ticket_ + 1 : value(); }, index_);
  if (!running.reads_lane_) running.ticket_ = found;
  running.reads_lane_ = !running.reads_lane_;
  return found;
}

std::uint64_t word::exchange_if(std::uint64_t wanted, std::uint64_t desired) {
  if (kind_ == word_kind::head) {
    const bool moves = value() == wanted;
    return now().perform({.writes = moves ? resource_ : 0}, [&] {
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
