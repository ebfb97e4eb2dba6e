// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include <muster/async/future.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/pool/detail/local_access.hpp>
#include <muster/pool/thread_pool_options.hpp>
#include <muster/process/worker_info.hpp>
#include <muster/serialize/shared_object.hpp>

namespace muster::detail {

/// How many threads the options ask for; and where that many contexts were given, which is checked.
[[nodiscard]] std::size_t thread_count(const thread_pool_options& options);
[[nodiscard]] std::size_t thread_count(const thread_pool_options& options, std::size_t contexts);

/// The threads of a pool, from their start to their end; what basic_pool says of both.
///
/// Thread safety and process safety: as thread_pool.
class thread_host {
public:
  using core_type = local_core;
  using statistics = thread_pool_statistics;

  thread_host(const thread_pool_options& options, std::size_t threads, const local_context_maker& make_context);
  thread_host(const thread_host&) = delete;
  thread_host& operator=(const thread_host&) = delete;
  ~thread_host();

  /// Throws errc::forked in a forked child.
  [[nodiscard]] const std::shared_ptr<local_core>& core() const {
    require_here(*core_);
    return core_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return worker_count(*core_); }

  template <class T>
  [[nodiscard]] shared_object<T> share(const T& value) const {
    require_here(*core_);
    return muster::share(value);
  }

  [[nodiscard]] future<void> started() const;
  void close();
  bool drain_until(deadline until);
  [[nodiscard]] future<void> drain_async();
  void terminate();
  bool join_until(deadline until);
  [[nodiscard]] std::vector<worker_info> workers() const;
  [[nodiscard]] thread_pool_statistics stats() const;

private:
  const pid_t owner_;
  const std::chrono::nanoseconds grace_;
  std::shared_ptr<local_core> core_;
};

}  // namespace muster::detail
