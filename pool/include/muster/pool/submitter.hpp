// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>

#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/lane_route.hpp>
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
template <class Adapter>
class basic_collecting_submitter : public submit_calls<basic_collecting_submitter<Adapter>, Adapter> {
public:
  basic_collecting_submitter(const std::shared_ptr<detail::pool_core>& core, const task_options& options,
                             detail::lane_route route = {})
      : core_(core), options_(options), route_(route) {
    detail::require_valid(options);
  }

  /// The same calls for one worker: see basic_submitter::on.
  [[nodiscard]] basic_collecting_submitter on(std::size_t worker) const {
    return {core_, options_, core_->route_to(worker)};
  }

private:
  friend class submit_calls<basic_collecting_submitter, Adapter>;
  static constexpr bool map_fails_fast = false;
  template <class R>
  using map_ending = detail::each_result<R>;
  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const {
    core_->require_here();
    return core_;
  }
  [[nodiscard]] const task_options& options() const noexcept { return options_; }
  [[nodiscard]] detail::lane_route route() const noexcept { return route_; }

  const std::shared_ptr<detail::pool_core>& core_;
  task_options options_;
  detail::lane_route route_;
};

/// A pool's calls with options: what pool::with returns. Light; made for one call or kept.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the pool.
template <class Adapter>
class basic_submitter : public submit_calls<basic_submitter<Adapter>, Adapter> {
public:
  basic_submitter(const std::shared_ptr<detail::pool_core>& core, const task_options& options,
                  detail::lane_route route = {})
      : core_(core), options_(options), route_(route) {
    detail::require_valid(options);
  }

  /// The same calls with other options.
  [[nodiscard]] basic_submitter with(const task_options& options) const { return {core_, options, route_}; }
  /// The same calls for one worker: its tasks, and the chunks of its maps and streams, wait for that worker, also while
  /// it is being replaced, and nobody else runs them; they come before those that any worker may run.
  /// Throws errc::invalid_argument when the pool has no worker with that index.
  [[nodiscard]] basic_submitter on(std::size_t worker) const { return {core_, options_, core_->route_to(worker)}; }
  /// The same, with maps that collect errors instead of throwing the first.
  [[nodiscard]] basic_collecting_submitter<Adapter> collect_errors() const { return {core_, options_, route_}; }

private:
  friend class submit_calls<basic_submitter, Adapter>;
  static constexpr bool map_fails_fast = true;
  template <class R>
  using map_ending = detail::all_or_error<R>;
  [[nodiscard]] const std::shared_ptr<detail::pool_core>& core() const {
    core_->require_here();
    return core_;
  }
  [[nodiscard]] const task_options& options() const noexcept { return options_; }
  [[nodiscard]] detail::lane_route route() const noexcept { return route_; }

  const std::shared_ptr<detail::pool_core>& core_;
  task_options options_;
  detail::lane_route route_;
};

using submitter = basic_submitter<detail::as_given>;
using collecting_submitter = basic_collecting_submitter<detail::as_given>;

}  // namespace muster
