// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/base/clock.hpp>
#include <muster/pool/detail/core_access.hpp>
#include <muster/pool/pool_options.hpp>
#include <muster/pool/pool_statistics.hpp>
#include <muster/process/worker_info.hpp>
#include <muster/serialize/shared_object.hpp>

namespace muster::detail {

/// The workers of a pool of processes, from their start to their end; what basic_pool says of both.
///
/// Thread safety and process safety: as pool.
class process_host {
public:
  using core_type = pool_core;
  using statistics = pool_statistics;

  /// `contexts`: made by every worker before its first task: none, one that all workers run, or one for each.
  explicit process_host(const pool_options& options, boost::asio::io_context* loop = nullptr,
                        std::span<const worker_task> contexts = {});
  process_host(const process_host&) = delete;
  process_host& operator=(const process_host&) = delete;
  ~process_host();

  /// Throws errc::forked in a forked child.
  [[nodiscard]] const std::shared_ptr<pool_core>& core() const {
    require_here(*core_);
    return core_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return worker_count(*core_); }

  template <class T>
  [[nodiscard]] shared_object<T> share(const T& value) const {
    return muster::share(value, domain_of(*core()));
  }

  [[nodiscard]] future<void> started() const;
  void close();
  bool drain_until(deadline until);
  [[nodiscard]] future<void> drain_async();
  void terminate();
  bool join_until(deadline until);
  [[nodiscard]] future<void> resize_async(std::size_t workers);
  [[nodiscard]] std::vector<worker_info> workers() const;
  [[nodiscard]] pool_statistics stats() const;
  void trace_to(const std::string& file);
  void end_trace();

private:
  class impl;
  [[nodiscard]] impl& own() const;

  std::unique_ptr<impl> impl_;
  std::shared_ptr<pool_core> core_;
};

}  // namespace muster::detail
