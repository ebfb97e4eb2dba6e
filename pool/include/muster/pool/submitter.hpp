// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

#include <muster/pool/detail/map_source.hpp>
#include <muster/pool/detail/pool_core.hpp>
#include <muster/pool/submit_calls.hpp>
#include <muster/pool/task_options.hpp>

namespace muster {

/// A pool's calls with options, whose maps give `std::vector<result<R>>`: an element that fails takes its place there
/// as an error, and the others go on. Light; made for one call or kept.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the pool.
class collecting_submitter : public submit_calls<collecting_submitter> {
public:
  collecting_submitter(const std::shared_ptr<detail::pool_core>& core, const task_options& options)
      : core_(core), options_(options) {}

private:
  friend class submit_calls<collecting_submitter>;
  static constexpr bool map_fails_fast = false;
  template <class R>
  using map_ending = detail::each_result<R>;
  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const noexcept { return core_; }
  [[nodiscard]] const task_options& options() const noexcept { return options_; }

  const std::shared_ptr<detail::pool_core>& core_;
  task_options options_;
};

/// A pool's calls with options: what pool::with returns. Light; made for one call or kept.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the pool.
class submitter : public submit_calls<submitter> {
public:
  submitter(const std::shared_ptr<detail::pool_core>& core, const task_options& options)
      : core_(core), options_(options) {}

  /// The same, with maps that collect errors instead of throwing the first.
  [[nodiscard]] collecting_submitter collect_errors() const { return {core_, options_}; }

private:
  friend class submit_calls<submitter>;
  static constexpr bool map_fails_fast = true;
  template <class R>
  using map_ending = detail::all_or_error<R>;
  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const noexcept { return core_; }
  [[nodiscard]] const task_options& options() const noexcept { return options_; }

  const std::shared_ptr<detail::pool_core>& core_;
  task_options options_;
};

}  // namespace muster
