// SPDX-License-Identifier: BSL-1.0
#pragma once

// A map on a pool of threads.

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/async/detail/future_source.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/pool/detail/chunk_policy.hpp>
#include <muster/pool/detail/invocation.hpp>
#include <muster/pool/detail/local_access.hpp>
#include <muster/pool/detail/local_task.hpp>
#include <muster/pool/detail/map_ending.hpp>
#include <muster/pool/detail/stop_flag.hpp>

namespace muster::detail {

/// Who works on which elements of a map, and how it ends, whatever the types.
///
/// It works as follows. Each thread that helps takes a chunk of the elements that nobody has yet, calls the callable
/// with them one after the other, and takes the next; other tasks of the pool get their turn between two chunks. With
/// `fail_fast` the first failure ends the map: nobody begins another element, and those that run are asked to stop. It
/// is done only when nothing of it runs any more: callables may refer to what belongs to whoever waits.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class local_map_run {
public:
  struct settings {
    std::size_t count = 0;
    bool fail_fast = true;
    std::string label;
    chunk_policy::limits chunking;
    lane_route route{};
  };
  struct range {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  struct failure {
    std::size_t element = 0;
    std::exception_ptr exception;
  };

  local_map_run(local_core& core, settings how);
  local_map_run(const local_map_run&) = delete;
  local_map_run& operator=(const local_map_run&) = delete;
  ~local_map_run();

  /// The next elements for that worker to work on; an empty range when nobody is to begin any more.
  [[nodiscard]] range take(const local_worker& here) MUSTER_EXCLUDES(mutex_);
  /// What has become of them: `finished` have results, and the others failed or were not begun.
  void settle(const local_worker& here, const range& which, std::size_t finished, std::vector<failure> failures,
              std::chrono::nanoseconds elapsed) MUSTER_EXCLUDES(mutex_);
  /// Whether no further element is to be begun. Cost: one load.
  [[nodiscard]] bool is_stopped() const noexcept { return stop_.is_requested(); }
  [[nodiscard]] stop_flag& stop() noexcept { return stop_; }
  [[nodiscard]] bool fails_fast() const noexcept { return settings_.fail_fast; }

  /// It has a place under max_pending, which it gives back. Requires: nobody works on it yet.
  void take_place() noexcept { has_place_ = true; }
  /// Gives it up, with that error for all elements, once those that run have ended. False when it was done already.
  bool give_up(const error_info& why) MUSTER_EXCLUDES(mutex_);
  /// Ends a map of nothing.
  void end_if_empty() MUSTER_EXCLUDES(mutex_);

  bool wait(deadline until) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
  void when_done(std::unique_ptr<end_notice> notice) MUSTER_EXCLUDES(mutex_);

  // Once it is done.
  [[nodiscard]] std::size_t count() const noexcept { return settings_.count; }
  [[nodiscard]] const std::optional<error_info>& given_up() const MUSTER_NO_THREAD_SAFETY_ANALYSIS { return given_up_; }
  /// Sorted by element.
  [[nodiscard]] const std::vector<failure>& failures() const MUSTER_NO_THREAD_SAFETY_ANALYSIS { return failures_; }
  [[nodiscard]] static error_info out_of_memory() noexcept;
  /// That failure as data, with the element's place.
  [[nodiscard]] error_info describe(const failure& which) const;

  [[nodiscard]] local_core& core() const noexcept { return core_; }
  /// Whether the pool was terminated. Cost: one load.
  [[nodiscard]] bool pool_stops() const noexcept { return pool_stop_.is_requested(); }
  [[nodiscard]] lane_route route() const noexcept { return settings_.route; }

private:
  friend class local_map_wait;
  struct runners;

  bool sleep(deadline until) MUSTER_EXCLUDES(mutex_);
  void wait_at(const local_worker& here) MUSTER_EXCLUDES(mutex_);
  void keep(std::vector<failure> failures) noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_complete() const MUSTER_REQUIRES(mutex_);
  struct ending {
    bool now = false;
    std::unique_ptr<end_notice> notice;
  };
  [[nodiscard]] ending end_if_complete() MUSTER_REQUIRES(mutex_);
  void announce(ending end) MUSTER_EXCLUDES(mutex_);

  local_core& core_;
  const stop_flag& pool_stop_;  // the core's
  const settings settings_;
  bool has_place_ = false;
  stop_flag stop_;
  std::atomic<bool> done_ = false;  // release after all results are in place

  mutex mutex_;
  condition changed_;
  chunk_policy policy_ MUSTER_GUARDED_BY(mutex_);
  std::size_t untouched_ MUSTER_GUARDED_BY(mutex_) = 0;                  // the first element that no thread has taken
  std::size_t running_ MUSTER_GUARDED_BY(mutex_) = 0;                    // ranges that were taken and not settled
  const std::unique_ptr<runners> runners_ MUSTER_PT_GUARDED_BY(mutex_);  // the threads that have those
  std::size_t settled_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool hopeless_ MUSTER_GUARDED_BY(mutex_) = false;  // who waits is to give it up
  std::vector<failure> failures_ MUSTER_GUARDED_BY(mutex_);
  std::optional<error_info> given_up_ MUSTER_GUARDED_BY(mutex_);
  std::unique_ptr<end_notice> notice_ MUSTER_GUARDED_BY(mutex_);
};

/// Where the results of a map lie until somebody takes them.
template <class R>
struct local_results {
  explicit local_results(std::size_t count) : values(count) {}
  template <class Call>
  void keep(std::size_t index, Call&& call) {
    values[index].emplace(std::forward<Call>(call)());
  }
  std::vector<std::optional<R>> values;
};
template <>
struct local_results<void> {
  explicit local_results(std::size_t /*count*/) {}
  template <class Call>
  void keep(std::size_t /*index*/, Call&& call) {
    std::forward<Call>(call)();
  }
};

/// Elements count by themselves, as in a pool of processes, where the callable comes to a worker once.
template <class T, class F, class... Args>
consteval void check_local_element() {
  require_fitting<T>();
  require_fitting_call<F>();
  check_local_invocation<F, Args...>();
}

/// What calling `F` with an element of type `T` gives; `Unpack`: with its parts.
template <bool Unpack, class F, class T>
struct local_element {
  using result = task_result<F, T>;
  static consteval void check() { check_local_element<T, F, T>(); }
};
template <class F, template <class...> class Tuple, class... Parts>
struct local_element<true, F, Tuple<Parts...>> {
  using result = task_result<F, Parts...>;
  static consteval void check() { check_local_element<Tuple<Parts...>, F, Parts...>(); }
};

/// What a thread that helps calls.
template <class F>
using local_callable_of = std::conditional_t<std::is_copy_constructible_v<F>, local_callable<F>, local_callable<F>&>;

/// A map's elements, callable and results.
template <bool Unpack, class F, class T, class R>
class local_map_work final : public local_map_run {
public:
  local_map_work(local_core& core, settings how, F callable, std::vector<T> elements)
      : local_map_run(core, std::move(how)),
        callable_(std::move(callable)),
        elements_(std::move(elements)),
        results_(elements_.size()) {}

  /// For one thread that helps: a copy of its own, where there can be one.
  [[nodiscard]] local_callable_of<F> make_callable() { return callable_; }

  /// Works on one chunk; false when there is none to begin.
  bool work(local_callable<F>& callable, local_worker& here) {
    const auto chunk = take(here);
    if (chunk.count == 0) return false;
    const local_task_scope scope(here, stop());
    const auto start = clock::now();
    std::vector<failure> failures;
    auto index = chunk.first;
    for (; index < chunk.first + chunk.count && !must_stop(); ++index) {
      if (!run_element(callable, index, failures) && fails_fast()) break;
    }
    settle(here, chunk, index - chunk.first, std::move(failures), clock::now() - start);
    return true;
  }

  [[nodiscard]] local_results<R>& results() noexcept { return results_; }

private:
  // Nobody else tells a map whose helpers all run that the pool was terminated.
  bool must_stop() {
    if (pool_stops() && !is_stopped()) give_up(terminated_error());
    return is_stopped();
  }

  bool run_element(local_callable<F>& callable, std::size_t index, std::vector<failure>& failures) {
    try {
      results_.keep(index, [&]() -> decltype(auto) { return invoke(callable, std::move(elements_[index])); });
      return true;
    } catch (...) {
      note(index, std::current_exception(), failures);
      return false;
    }
  }

  void note(std::size_t index, std::exception_ptr exception, std::vector<failure>& failures) noexcept {
    try {
      failures.push_back({.element = index, .exception = std::move(exception)});
    } catch (const std::bad_alloc&) {
      give_up(out_of_memory());
    }
  }

  static decltype(auto) invoke(local_callable<F>& callable, T&& element) {
    if constexpr (Unpack) {
      return [&]<std::size_t... P>(std::index_sequence<P...>) -> decltype(auto) {
        return call_locally<true>(callable, std::get<P>(std::move(element))...);
      }(std::make_index_sequence<std::tuple_size_v<T>>{});
    } else {
      return call_locally<true>(callable, std::move(element));
    }
  }

  local_callable<F> callable_;
  std::vector<T> elements_;
  local_results<R> results_;
};

/// One thread's part in a map, whatever the types.
class local_map_part : public local_job, public std::enable_shared_from_this<local_map_part> {};

/// … of these types.
template <class Work, class F>
class local_map_helper final : public local_map_part {
public:
  explicit local_map_helper(std::shared_ptr<Work> work) : work_(std::move(work)), callable_(work_->make_callable()) {}

  void run(local_worker& here) noexcept override {
    while (work_->work(callable_, here)) {
      if (has_waiting(work_->core(), here)) return post(work_->core(), this->shared_from_this(), work_->route());
    }
  }
  void withdraw(const error_info& why) noexcept override { work_->give_up(why); }

  /// By who waits for the map in a task of the same pool: until nothing is left to be begun.
  void run_all(local_worker& here) noexcept {
    while (work_->work(callable_, here)) continue;
  }

private:
  const std::shared_ptr<Work> work_;
  local_callable_of<F> callable_;
};

/// How a map ended: all values, or the error of the first element that failed.
template <class R>
struct local_all_or_error {
  using type = mapped<R>;

  static outcome<type> of(const local_map_run& run, local_results<R>& results) {
    if (run.given_up()) return outcome<type>::of_error(*run.given_up());
    if (!run.failures().empty()) return outcome<type>::of_exception(run.failures().front().exception);
    return outcome<type>::of_call([&]() -> type {
      if constexpr (!std::is_void_v<R>) {
        std::vector<R> values;
        values.reserve(run.count());
        for (auto& each : results.values) values.push_back(std::move(*each));
        return values;
      }
    });
  }
};

/// … of a map that collects errors.
template <class R>
struct local_each_result {
  using type = std::vector<result<R>>;

  static outcome<type> of(const local_map_run& run, local_results<R>& results) {
    return outcome<type>::of_call([&] {
      type all;
      all.reserve(run.count());
      auto failure = run.failures().begin();
      for (std::size_t index = 0; index < run.count(); ++index) {
        const bool failed = failure != run.failures().end() && failure->element == index;
        if (run.given_up()) {
          all.push_back(*run.given_up());
        } else if (failed) {
          all.push_back(run.describe(*failure++));
        } else if constexpr (std::is_void_v<R>) {
          all.push_back({});
        } else {
          all.push_back(std::move(*results.values[index]));
        }
      }
      return all;
    });
  }
};

/// The source of a map's future.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Work, class F, class Ending>
class local_map_source final : public future_source<typename Ending::type> {
public:
  explicit local_map_source(std::shared_ptr<Work> work) : work_(std::move(work)) {}

  bool wait(deadline until) override {
    if (auto* const here = worker_here(work_->core(), work_->route()); here != nullptr && !work_->is_done()) {
      help(*here);
    }
    return work_->wait(until);
  }
  [[nodiscard]] bool is_done() const override { return work_->is_done(); }
  outcome<typename Ending::type> take() override { return Ending::of(*work_, work_->results()); }
  void when_done(std::unique_ptr<end_notice> notice) override { work_->when_done(std::move(notice)); }
  bool cancel(cancellation how) override {
    return how != cancellation::withdraw && work_->give_up(error_info(errc::cancelled, "the map was cancelled"));
  }

private:
  // Where there is no copy of the callable for this thread, nobody else may ever come to what is left.
  void help(local_worker& here) noexcept {
    try {
      local_map_helper<Work, F>(work_).run_all(here);
    } catch (...) {
      work_->give_up(capture_current_exception());
    }
  }

  const std::shared_ptr<Work> work_;
};

}  // namespace muster::detail
