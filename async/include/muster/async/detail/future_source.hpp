// SPDX-License-Identifier: BSL-1.0
#pragma once

// Sources that are objects of this process: tasks of threads, maps, and what callbacks make.

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <muster/async/detail/end_notice.hpp>
#include <muster/async/detail/future_handle.hpp>
#include <muster/async/detail/outcome.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// Where a future gets its value from, when that is an object: whatever the value's type.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class untyped_source {
public:
  untyped_source() = default;
  untyped_source(const untyped_source&) = delete;
  untyped_source& operator=(const untyped_source&) = delete;
  virtual ~untyped_source() = default;

  // As source_functions say.
  virtual bool wait(deadline until) = 0;
  [[nodiscard]] virtual bool is_done() const = 0;
  virtual void when_done(std::unique_ptr<end_notice> notice) = 0;
  virtual bool cancel(cancellation /*how*/) { return false; }
  [[nodiscard]] virtual bool runs_here() const noexcept { return false; }
};

/// … of a value of type R.
///
/// Thread safety: as untyped_source.
template <class R>
class future_source : public untyped_source {
public:
  /// Requires: is_done(); called once.
  virtual outcome<R> take() = 0;
};

/// Of held_sources whose `what` is an untyped_source.
extern const source_functions object_functions;

/// Whether the calling thread may have to run itself what it waits for: one of a pool of threads.
[[nodiscard]] bool helps_while_waiting() noexcept;
/// By such a thread, when it begins and ends to be one.
void set_helps_while_waiting(bool on) noexcept;

/// What a callback makes, but for its value.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class made_end {
public:
  using canceller = std::function<void(cancellation)>;
  /// Waits for what it is made of, until then at most.
  using waiter = std::function<void(deadline)>;

  made_end() = default;
  made_end(canceller cancel, waiter wait) : cancel_(std::move(cancel)), wait_(std::move(wait)) {}

  /// The value is there. Called once.
  void finish() noexcept MUSTER_EXCLUDES(mutex_);
  bool wait(deadline until) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_done() const MUSTER_EXCLUDES(mutex_);
  void when_done(std::unique_ptr<end_notice> notice) MUSTER_EXCLUDES(mutex_);
  bool cancel(cancellation how) MUSTER_EXCLUDES(mutex_);

private:
  const canceller cancel_;
  const waiter wait_;
  mutable mutex mutex_;
  condition changed_;
  bool done_ MUSTER_GUARDED_BY(mutex_) = false;
  std::unique_ptr<end_notice> notice_ MUSTER_GUARDED_BY(mutex_);
};

/// The source of a future whose value a callback makes: of then(), when_all() and the like. Cancelling it is cancelling
/// what it is made of; and a thread of a pool that waits for it waits for that first, since it may have to run it
/// itself.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class R>
class local_state final : public future_source<R> {
public:
  local_state() = default;
  /// Both may be called by any thread, at any time.
  explicit local_state(made_end::canceller cancel, made_end::waiter wait = nullptr)
      : end_(std::move(cancel), std::move(wait)) {}

  /// Requires: called once.
  void complete(outcome<R> how) noexcept {
    outcome_.emplace(std::move(how));
    end_.finish();
  }

  bool wait(deadline until) override { return end_.wait(until); }
  [[nodiscard]] bool is_done() const override { return end_.is_done(); }
  outcome<R> take() override { return std::move(*outcome_); }
  void when_done(std::unique_ptr<end_notice> notice) override { end_.when_done(std::move(notice)); }
  /// False: whether anything was withdrawn shows when it ends.
  bool cancel(cancellation how) override { return end_.cancel(how); }

private:
  made_end end_;
  std::optional<outcome<R>> outcome_;  // written before finish(), read after is_done()
};

}  // namespace muster::detail
