// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/work.hpp>

#include <algorithm>
#include <vector>

#include <muster/base/error.hpp>

namespace muster {

detail::work_state& work::state() const {
  if (state_ == nullptr) throw error(errc::invalid_argument, "an empty handle of work was used: it stands for nothing");
  state_->require_here();
  return *state_;
}

void work::wait() const { static_cast<void>(wait_until(deadline::never())); }

bool work::wait_until(deadline until) const {
  if (!state().wait(until)) return false;
  if (const auto failure = state_->failure()) std::rethrow_exception(failure);
  return true;
}

bool work::test() const { return state().test_or_fail(); }

std::exception_ptr work::exception() const { return state().test_or_fail() ? state_->failure() : nullptr; }

std::uint64_t work::sequence() const { return state().sequence(); }

std::size_t work::source() const {
  wait();
  return state_->source();
}

tensor work::result() const {
  wait();
  return state_->result();
}

bool work::cancel() const { return state().cancel(); }

void work::then(std::function<void(std::exception_ptr)> what) const { state().then(std::move(what)); }

std::optional<std::size_t> wait_any(std::span<const work> works, deadline until) {
  if (works.empty()) throw error(errc::invalid_argument, "wait_any of no operations: nothing would ever end");
  std::vector<detail::work_state*> all;
  for (const auto& each : works) all.push_back(&each.state());
  const auto find = [&]() -> std::optional<std::size_t> {
    for (std::size_t index = 0; index < all.size(); ++index) {
      if (all[index]->test_or_fail()) return index;
    }
    return std::nullopt;
  };
  if (const auto found = find()) return found;
  const auto is_message = [](const detail::work_state* each) { return each->sequence() == 0; };
  const auto message = std::find_if(all.begin(), all.end(), is_message);
  static_cast<void>((message != all.end() ? *message : all.front())->wait_for_any(all, until));
  return find();
}

}  // namespace muster
