// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <muster/pool/detail/context.hpp>
#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/pool_calls.hpp>
#include <muster/pool/task_options.hpp>

namespace muster {

/// What becomes of elements of a map that fail.
enum class map_failures : std::uint8_t {
  thrown,    ///< the first ends the map, and is thrown
  collected  ///< each takes its element's place as an error, and the others go on: maps give `std::vector<result<R>>`
};

/// A pool's calls with options: what its `with`, `on` and `collect_errors` return. Light; made for one call or kept.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
/// Lifetime: borrows the pool.
template <class Engine, class Adapter, map_failures Failures = map_failures::thrown>
class pool_submitter : public pool_calls<pool_submitter<Engine, Adapter, Failures>, Engine, Adapter> {
  using core_type = typename Engine::core_type;

public:
  /// Throws errc::invalid_argument for options that the pool's workers cannot honour.
  pool_submitter(const std::shared_ptr<core_type>& core, const task_options& options, detail::lane_route route = {})
      : core_(core), options_(Engine::checked(options)), route_(route) {}

  /// The same calls with other options; likewise.
  [[nodiscard]] pool_submitter with(const task_options& options) const { return {core_, options, route_}; }
  /// The same calls for one worker: its tasks, and the chunks of its maps and streams, wait for that worker, also while
  /// it is being replaced, and no other runs them; they come before those that any worker may run.
  /// Throws errc::invalid_argument when the pool has no worker with that index.
  [[nodiscard]] pool_submitter on(std::size_t worker) const { return {core_, options_, route_to(*core_, worker)}; }
  /// The same, with maps that collect errors instead of throwing the first.
  [[nodiscard]] pool_submitter<Engine, Adapter, map_failures::collected> collect_errors() const {
    return {core_, options_, route_};
  }

private:
  friend class pool_calls<pool_submitter, Engine, Adapter>;
  static constexpr bool map_fails_fast = Failures == map_failures::thrown;
  [[nodiscard]] Engine make_engine() const {
    require_here(*core_);
    return {core_, options_, route_};
  }

  const std::shared_ptr<core_type>& core_;
  task_options options_;
  detail::lane_route route_;
};

}  // namespace muster
