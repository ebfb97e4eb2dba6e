// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/async/detail/future_source.hpp>
#include <muster/base/mutex.hpp>
#include <muster/pool/detail/batch_run.hpp>
#include <muster/pool/stream.hpp>

namespace muster::detail {

/// What map gives for results of type R: nothing for void.
template <class R>
using mapped = std::conditional_t<std::is_void_v<R>, void, std::vector<R>>;

/// The values of a run without failures.
template <class R>
[[nodiscard]] mapped<R> values_of(const batch_run& run) {
  if constexpr (array_element<R> && !std::is_same_v<R, bool>) {
    const auto bytes = run.result_array().first(run.count() * sizeof(R));
    const auto* const first = reinterpret_cast<const R*>(bytes.data());
    return std::vector<R>(first, first + run.count());
  } else if constexpr (!std::is_void_v<R>) {
    std::vector<R> values;
    values.reserve(run.count());
    for (batch_reader<R> reader(run); !reader.at_end();) values.push_back(std::move(reader.next()).value());
    return values;
  }
}

template <class R>
[[nodiscard]] std::vector<result<R>> results_of(const batch_run& run) {
  std::vector<result<R>> results;
  results.reserve(run.count());
  for (batch_reader<R> reader(run); !reader.at_end();) {
    auto next = reader.next();
    if constexpr (std::is_void_v<R>) {
      results.push_back(next ? result<R>() : result<R>(next.error()));
    } else {
      results.push_back(std::move(next));
    }
  }
  return results;
}

/// How a finished run ended as the outcome of a map: all values, or the error of the first element that failed.
template <class R>
struct all_or_error {
  using type = mapped<R>;

  static outcome<type> of(const batch_run& run) {
    if (!run.failures().empty()) return outcome<type>::of_error(run.failures().front().error);
    return outcome<type>::of_call([&] { return values_of<R>(run); });
  }
};

/// … as the outcome of a map that collects errors.
template <class R>
struct each_result {
  using type = std::vector<result<R>>;

  static outcome<type> of(const batch_run& run) {
    return outcome<type>::of_call([&] { return results_of<R>(run); });
  }
};

/// The source of map_async's future. Results are decoded by whoever takes them.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
template <class Outcome>
class map_source final : public future_source<typename Outcome::type>,
                         public std::enable_shared_from_this<map_source<Outcome>> {
public:
  explicit map_source(std::shared_ptr<batch_run> run) : run_(std::move(run)) {}

  void start() {
    run_->start([weak = this->weak_from_this()] {
      if (const auto self = weak.lock()) self->tell();
    });
  }

  bool wait(deadline until) override { return run_->wait(until); }
  [[nodiscard]] bool is_done() const override { return run_->is_done(); }
  outcome<typename Outcome::type> take() override { return Outcome::of(*run_); }
  bool cancel(cancellation how) override { return how != cancellation::withdraw && run_->cancel(); }

  void when_done(std::unique_ptr<end_notice> notice) override MUSTER_EXCLUDES(mutex_) {
    {
      const scoped_lock lock(mutex_);
      if (!told_) {
        notice_.swap(notice);
        return;
      }
    }
    end_notice::tell(std::move(notice));
  }

private:
  void tell() noexcept MUSTER_EXCLUDES(mutex_) {
    std::unique_ptr<end_notice> notice;
    {
      const scoped_lock lock(mutex_);
      told_ = true;
      notice = std::move(notice_);
    }
    end_notice::tell(std::move(notice));
  }

  const std::shared_ptr<batch_run> run_;
  mutex mutex_;
  bool told_ MUSTER_GUARDED_BY(mutex_) = false;
  std::unique_ptr<end_notice> notice_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
