// SPDX-License-Identifier: BSL-1.0
#include <muster/process/lifecycle.hpp>

#include <muster/base/assert.hpp>
#include <muster/base/text.hpp>

namespace muster {

namespace {

const char* hint_for(worker_lifecycle::state when) {
  return when == worker_lifecycle::state::starting
             ? "before it reached muster::init: is that the first line of main(), and does nothing before main() fail?"
             : "while it was being initialized";
}

}  // namespace

const error_info& worker_lifecycle::failure() const noexcept {
  MUSTER_ASSERT(failure_.has_value());
  return *failure_;
}

worker_lifecycle::action worker_lifecycle::start() {
  MUSTER_ASSERT(state_ == state::absent);
  state_ = state::starting;
  listens_ = false;
  failure_.reset();
  return action::spawn;
}

worker_lifecycle::action worker_lifecycle::greeted() {
  if (state_ == state::starting) state_ = state::initializing;
  return action::none;
}

worker_lifecycle::action worker_lifecycle::failed(error_info why) {
  if (state_ == state::absent) return action::none;
  failure_ = std::move(why);
  return action::kill;
}

worker_lifecycle::action worker_lifecycle::ready() {
  listens_ = true;
  if (state_ != state::initializing) return action::none;
  state_ = state::working;
  failures_ = 0;
  failure_.reset();
  return action::none;
}

worker_lifecycle::action worker_lifecycle::timed_out() {
  if (state_ == state::absent || listens_) return action::none;
  return failed(error_info(errc::start_failed, text("the worker was silent for too long ", hint_for(state_))));
}

worker_lifecycle::action worker_lifecycle::deserted() {
  if (state_ == state::starting || state_ == state::initializing) {
    return failed(error_info(errc::start_failed, text("the worker closed its control socket ", hint_for(state_))));
  }
  return state_ == state::absent ? action::none : action::kill;
}

worker_lifecycle::action worker_lifecycle::ended(const exit_status& how, const last_words& words) {
  const auto before = std::exchange(state_, state::absent);
  const bool excused = std::exchange(excused_, false);
  if (before == state::stopping || before == state::absent) return action::none;
  if (excused) failure_.reset();
  if (excused || before == state::working) return start();
  if (!failure_) failure_ = error_info(errc::start_failed, text("the worker ", to_string(how), ' ', hint_for(before)));
  if (words.some()) failure_->set_words(words);
  return start_again_or_give_up();
}

worker_lifecycle::action worker_lifecycle::start_again_or_give_up() {
  return ++failures_ >= tries_ ? action::give_up : start();
}

worker_lifecycle::action worker_lifecycle::stop() {
  // One that runs its initializer, or is ready without our knowing it yet, hears of it when it looks for its first
  // task. One that has not even been greeted has run nothing of the user's.
  const auto before = state_;
  if (before != state::absent) state_ = state::stopping;
  return before == state::starting ? action::kill : action::none;
}

}  // namespace muster
