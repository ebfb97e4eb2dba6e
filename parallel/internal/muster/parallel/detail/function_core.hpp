// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/call_profile.hpp>
#include <muster/parallel/detail/call_trace.hpp>
#include <muster/parallel/detail/function_access.hpp>
#include <muster/parallel/detail/world_core.hpp>
#include <muster/parallel/row_selection.hpp>
#include <muster/parallel/variable.hpp>

namespace muster::detail {

/// A function of a world without its types.
///
/// Thread safety: safe.
class function_core {
public:
  /// Enters it into the world. Throws errc::invalid_argument for what cannot be.
  function_core(std::shared_ptr<world_core> world, registered_function what, std::vector<variable> used);
  function_core(const function_core&) = delete;
  function_core& operator=(const function_core&) = delete;
  ~function_core();

  [[nodiscard]] const function_spec& spec() const noexcept { return spec_; }
  [[nodiscard]] std::vector<output_op> output_modes() const;
  [[nodiscard]] std::vector<output_op> update_modes() const;
  [[nodiscard]] call_profile profile() const MUSTER_EXCLUDES(mutex_);

  /// In all ranks; see parallel_function.
  void run(run_request& request) MUSTER_EXCLUDES(mutex_);
  /// In this thread alone.
  void run_here(run_request& request);
  /// The thread that makes calls in the background.
  [[nodiscard]] std::shared_ptr<local_core> conductor() { return world_->conductor(); }

private:
  void call(run_request& request, traced_call& seen);
  static void keep(const std::vector<rank_times>& times, traced_call& seen) noexcept;
  void trace(const traced_call& seen) noexcept;
  void count(const std::vector<rank_times>& times, const traced_call& seen) noexcept MUSTER_EXCLUDES(mutex_);
  void count_failure() noexcept MUSTER_EXCLUDES(mutex_);

  const std::shared_ptr<world_core> world_;
  const std::vector<variable> used_;
  const function_spec spec_;
  std::uint32_t number_ = 0;
  mutable mutex mutex_;
  call_profile profile_ MUSTER_GUARDED_BY(mutex_);
};

/// Checks what a call is given, and says it as ranks are told it. Throws errc::invalid_argument; the text names the
/// input, what it has, and what it should have.
[[nodiscard]] world_request checked_request(const function_spec& spec, const run_request& asked,
                                            const std::map<std::uint32_t, registered_variable>& variables,
                                            domain& where, std::size_t ranks);

}  // namespace muster::detail
