// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <muster/base/cpu_list.hpp>
#include <muster/base/system_call.hpp>

namespace muster {

/// A thread that runs `what`, on the processors of the process (process_cpus()): the thread that starts it may be bound
/// to one of them by a library. Throws muster::error where none can be had (EAGAIN: RLIMIT_NPROC, a control group's
/// pids.max, or memory).
///
/// Thread safety: safe.
template <class F>
[[nodiscard]] std::thread start_thread(F what) {
  if (detail::is_refused("pthread_create")) detail::throw_system_error_with(errno, "pthread_create");
  try {
    return std::thread([what = std::move(what)]() mutable {
      detail::run_where_process_may();
      what();
    });
  } catch (const std::system_error& failure) {
    detail::throw_system_error_with(failure.code().value(), "pthread_create");
  }
}

}  // namespace muster
