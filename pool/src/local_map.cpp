// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/local_map.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include <muster/async/detail/callback_pause.hpp>
#include <muster/pool/detail/local_core.hpp>
#include <muster/pool/detail/local_waits.hpp>
#include <muster/pool/detail/local_worker.hpp>

namespace muster::detail {

struct local_map_run::runners {
  local_worker_set all;
};

local_map_run::local_map_run(local_core& core, settings how)
    : core_(core),
      pool_stop_(core.stopping()),
      settings_(std::move(how)),
      policy_(settings_.chunking),
      runners_(std::make_unique<runners>()) {}

local_map_run::~local_map_run() = default;

local_map_run::range local_map_run::take(const local_worker& here) {
  const scoped_lock lock(mutex_);
  if (is_stopped() || given_up_ || untouched_ == settings_.count) return {};
  const range next{.first = untouched_, .count = policy_.next(settings_.count - untouched_)};
  untouched_ += next.count;
  ++running_;
  runners_->all.set(static_cast<std::size_t>(here.id));
  return next;
}

void local_map_run::settle(const local_worker& here, const range& which, std::size_t finished,
                           std::vector<failure> failures, std::chrono::nanoseconds elapsed) {
  ending end;
  if (settings_.fail_fast && !failures.empty()) stop_.request();  // calls back: not under the lock
  {
    const scoped_lock lock(mutex_);
    --running_;
    runners_->all.reset(static_cast<std::size_t>(here.id));
    policy_.observe(finished, elapsed);
    settled_ += which.count;
    keep(std::move(failures));
    end = end_if_complete();
  }
  announce(std::move(end));
}

// For want of memory the map is given up: its elements fail without a reason of their own.
void local_map_run::keep(std::vector<failure> failures) noexcept {
  try {
    failures_.insert(failures_.end(), failures.begin(), failures.end());
  } catch (const std::bad_alloc&) {
    if (!given_up_) given_up_ = out_of_memory();
  }
}

error_info local_map_run::out_of_memory() noexcept {
  return error_info::described(errc::out_of_memory,
                               [] { return std::string("no memory is left for the map's failures"); });
}

// Said before anybody is asked to stop: whoever then leaves out elements must not be taken to have finished them.
bool local_map_run::give_up(const error_info& why) {
  {
    const scoped_lock lock(mutex_);
    if (is_done()) return false;
    if (!given_up_) given_up_ = error_info::copy_of(why);
  }
  stop_.request();  // calls back: not under the lock
  ending end;
  {
    const scoped_lock lock(mutex_);
    end = end_if_complete();
  }
  announce(std::move(end));
  return true;
}

void local_map_run::end_if_empty() {
  ending end;
  {
    const scoped_lock lock(mutex_);
    if (settings_.count == 0) end = end_if_complete();
  }
  announce(std::move(end));
}

bool local_map_run::is_complete() const {
  const bool ends_early = given_up_ || (settings_.fail_fast && !failures_.empty());
  return running_ == 0 && (settled_ == settings_.count || ends_early);
}

local_map_run::ending local_map_run::end_if_complete() {
  if (is_done() || !is_complete()) return {};
  std::sort(failures_.begin(), failures_.end(),
            [](const failure& a, const failure& b) { return a.element < b.element; });
  if (has_place_) core_.free_place();
  done_.store(true, std::memory_order_release);
  changed_.notify_all();
  return {.now = true, .notice = std::move(notice_)};
}

void local_map_run::announce(ending end) {
  if (!end.now) return;
  end_notice::tell(std::move(end.notice));
  core_.end_unit();
}

/// A map, as what a worker of its pool waits for.
class local_map_wait final : public local_wait {
public:
  explicit local_map_wait(local_map_run& run) : run_(run) {}

  // One that is for a certain worker needs it, whether it is to be begun or to be settled; one that is given up only
  // those that are at it.
  local_worker_set needed() override {
    const scoped_lock lock(run_.mutex_);
    if (run_.is_done() || run_.hopeless_) return {};
    const auto route = run_.settings_.route;
    return route.is_shared() || run_.given_up_ ? run_.runners_->all : local_worker_set().set(route.worker());
  }

  bool end_hope(bool rest) override {
    const scoped_lock lock(run_.mutex_);
    if (run_.running_ != 0 || run_.is_done() || run_.given_up_) return false;
    if (run_.untouched_ != 0 && !rest) return false;
    run_.hopeless_ = true;
    run_.changed_.notify_all();
    return true;
  }

private:
  local_map_run& run_;
};

bool local_map_run::wait(deadline until) {
  if (is_done()) return true;
  const auto what_it_waits_for_may_be_behind_us = callback_pause::until(until);
  const auto* const here = until.is_never() ? core_.sleeper() : nullptr;
  if (here == nullptr) return sleep(until);
  wait_at(*here);
  return true;
}

void local_map_run::wait_at(const local_worker& here) {
  for (;;) {
    {
      local_map_wait what(*this);
      const local_waits::scope entered(core_.waits(), static_cast<std::size_t>(here.id), what);
      if (sleep(deadline::never())) return;
    }
    {
      const scoped_lock lock(mutex_);
      hopeless_ = false;
    }
    give_up(core_.circle_error(here));
  }
}

bool local_map_run::sleep(deadline until) {
  scoped_lock lock(mutex_);
  while (!is_done() && !hopeless_ && !until.expired()) changed_.wait_until(lock, until);
  return is_done();
}

void local_map_run::when_done(std::unique_ptr<end_notice> notice) {
  {
    const scoped_lock lock(mutex_);
    if (!is_done()) {
      notice_.swap(notice);
      return;
    }
  }
  end_notice::tell(std::move(notice));
}

error_info local_map_run::describe(const failure& which) const {
  auto error = outcome<void>::of_exception(which.exception).error();
  auto place = error.place();
  place.element = which.element;
  if (place.label.empty()) place.label = settings_.label;
  error.set_place(std::move(place));
  return error;
}

}  // namespace muster::detail
