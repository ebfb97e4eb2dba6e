// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>

#include <muster/pool/detail/lane_route.hpp>
#include <muster/pool/task_options.hpp>

namespace muster::detail {

/// What both engines are made of: a pool's core, the options of one call, and which workers may run its tasks.
///
/// Thread safety: as a reference to the pool. Lifetime: borrows core and options for one call.
template <class Host>
class engine_base {
public:
  using host_type = Host;
  using core_type = typename Host::core_type;

  engine_base(const std::shared_ptr<core_type>& core, const task_options& options, lane_route route) noexcept
      : core_(core), options_(options), route_(route) {}

protected:
  [[nodiscard]] std::size_t workers() const noexcept { return worker_count(*core_); }

  const std::shared_ptr<core_type>& core_;
  const task_options& options_;
  const lane_route route_;
};

}  // namespace muster::detail
