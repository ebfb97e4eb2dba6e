// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/work_future.hpp>

#include <memory>
#include <utility>

#include <muster/async/detail/callback_pause.hpp>
#include <muster/async/detail/future_source.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/collectives/detail/work_home.hpp>

namespace muster {

namespace detail {

lazy_work_home::~lazy_work_home() {
  const scoped_lock lock(mutex_);
  if (home_ != nullptr && !home_->is_here()) leave_to_parent(std::move(home_));
}

std::shared_ptr<work_home> lazy_work_home::get() {
  const scoped_lock lock(mutex_);
  if (home_ == nullptr) home_ = std::make_shared<work_home>();
  return home_;
}

void lazy_work_home::stop_watching() noexcept {
  std::shared_ptr<work_home> home;
  {
    const scoped_lock lock(mutex_);
    home = home_;
  }
  if (home != nullptr) home->stop_watching();
}

namespace {

// False when `until` passed first. What wait() throws is how it has ended, unless it has not.
bool wait_for_end(work_state& what, deadline until) {
  try {
    return what.wait(until);
  } catch (...) {
    if (!what.test_or_fail()) throw;
    return true;
  }
}

// The future's part of an operation.
class work_source final : public future_source<tensor> {
public:
  work_source(std::shared_ptr<work_state> what, std::shared_ptr<work_home> home)
      : what_(std::move(what)), home_(std::move(home)) {
    if (what_->sequence() != 0) return;
    wait_ = defer([what = what_] {
      const auto others_are_waited_for = callback_pause::if_possible();
      static_cast<void>(wait_for_end(*what, deadline::never()));
    });
  }

  bool wait(deadline until) override {
    if (is_done()) return true;
    const auto what_makes_it_may_be_behind_us = callback_pause::until(until);
    return wait_for_end(*what_, until);
  }
  [[nodiscard]] bool is_done() const override { return what_->test_or_fail(); }
  bool cancel(cancellation /*how*/) override { return what_->cancel(); }
  outcome<tensor> take() override {
    if (auto why = what_->failure()) return outcome<tensor>::of_failure(failure::of_library(std::move(why)));
    return outcome<tensor>::of_value(what_->result());
  }
  // A message is brought forward by those who wait for it.
  void when_done(std::unique_ptr<end_notice> notice) override {
    told_.when_done(std::move(notice));
    if (wait_ != nullptr) home_->watch(std::move(wait_));
  }
  void finish() noexcept { told_.finish(); }

private:
  const std::shared_ptr<work_state> what_;
  const std::shared_ptr<work_home> home_;
  deferred_ptr wait_;  // of a message, until it is watched
  made_end told_;
};

}  // namespace

struct work_access {
  static std::shared_ptr<work_state> state_of(const work& what) {
    static_cast<void>(what.state());  // throws for an empty one
    return what.state_;
  }
};

}  // namespace detail

future<tensor> future_of(const work& what) {
  const auto state = detail::work_access::state_of(what);
  auto home = state->home();
  auto source = std::make_shared<detail::work_source>(state, home);
  state->then([source](const std::exception_ptr&) { source->finish(); });
  return detail::future_access::of_source<tensor>(std::move(home), std::move(source));
}

}  // namespace muster
