// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/parallel/rules.hpp>
#include <muster/params/gradient_server.hpp>
#include <muster/params/model_server.hpp>
#include <muster/params/state_dict.hpp>
#include <muster/rpc/remote_ref.hpp>

namespace muster::detail {

/// What has gone wrong at a reducer, until it is asked for.
///
/// Thread safety: safe.
class failure_list {
public:
  void note(std::exception_ptr failure) MUSTER_EXCLUDES(mutex_);
  /// The first one, which is gone by that; null: none.
  [[nodiscard]] std::exception_ptr take() MUSTER_EXCLUDES(mutex_);

private:
  mutex mutex_;
  std::deque<std::exception_ptr> all_ MUSTER_GUARDED_BY(mutex_);
};

/// Gradients that are added up, and how many they are.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class gradient_sum {
public:
  /// Throws errc::invalid_argument unless they are like those before.
  void add(const state_dict& gradients, std::uint64_t count);
  [[nodiscard]] const state_dict& sum() const noexcept { return sum_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  void clear() noexcept;

private:
  state_dict sum_;
  std::uint64_t count_ = 0;
};

/// What learns by a rule.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class learner {
public:
  using schedule = std::function<double(std::uint64_t step)>;

  /// Throws errc::invalid_argument for a rule that cannot be applied to all tensors of the model, by such gradients.
  learner(const state_dict& model, const update_rule& rule, schedule rate, gradient_reduction reduction);

  [[nodiscard]] const state_dict& model() const noexcept { return model_; }
  [[nodiscard]] state_dict& model() noexcept { return model_; }
  /// Throws errc::invalid_argument unless gradients are like the model.
  void require_like(const state_dict& gradients) const;
  /// A step by `factor` times the gradients.
  void step(const state_dict& gradients, double factor);

private:
  state_dict model_;
  update_rule rule_;
  schedule rate_;
  std::vector<state_dict> states_;
  std::uint64_t steps_ = 0;
};

/// Adds up what secondaries have added up, and has the model learn by it. A remote value.
///
/// Thread safety: belongs to one thread at a time.
class gradient_primary {
public:
  gradient_primary(std::shared_ptr<learner> by, model_server server, std::shared_ptr<failure_list> failed,
                   const gradient_options& how);

  /// Returns the model's version; nothing when it is closed, and has taken nothing.
  std::optional<std::int64_t> take(const state_dict& sum, std::uint64_t count);
  void flush();
  /// Flushes; from then on it takes nothing.
  void close();

private:
  void step();

  std::shared_ptr<learner> by_;
  model_server server_;
  std::shared_ptr<failure_list> failed_;
  gradient_options how_;
  gradient_sum sum_;
  std::size_t parts_ = 0;
  bool is_closed_ = false;
};

/// What a secondary says to gradients.
enum class gradient_verdict : std::uint8_t {
  counted,
  too_old,  ///< they are of too old a model
  closed    ///< it takes none any more
};

/// Adds up gradients of clients. A remote value.
///
/// Thread safety: belongs to one thread at a time.
class gradient_secondary {
public:
  gradient_secondary(std::function<remote_ref<gradient_primary>()> find_primary, std::shared_ptr<failure_list> failed,
                     const gradient_options& how);

  gradient_verdict give(const state_dict& gradients);
  /// Returns when all that was given has come to the primary. Throws what kept it from that.
  void flush();
  /// Flushes; from then on it takes nothing.
  void close();

private:
  /// A sum that is under way to the primary.
  struct passed {
    gradient_sum what;
    future<std::optional<std::int64_t>> taken;
  };

  void pass_on();
  std::exception_ptr look_at(passed& one);

  std::function<remote_ref<gradient_primary>()> find_primary_;
  std::shared_ptr<failure_list> failed_;
  gradient_options how_;
  gradient_sum sum_;
  std::int64_t version_ = 0;  // the newest that is known here
  std::list<passed> passed_;
  bool is_closed_ = false;
};

}  // namespace muster::detail
