// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <muster/base/cpu_list.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/signals_blocked.hpp>
#include <muster/base/system_call.hpp>

namespace muster {

/// A thread of the library's own that runs `what`, on the processors of the process (process_cpus()): the thread that
/// starts it may be bound to one of them by a library. Signals are blocked in it (signals_blocked): they are for the
/// program's threads. Children that are forked there have the mask of the thread that starts it, or, if that is such a
/// thread too, of its children. Throws muster::error where none can be had (EAGAIN: RLIMIT_NPROC, a control group's
/// pids.max, or memory).
///
/// Thread safety: safe.
template <class F>
[[nodiscard]] std::thread start_thread(F what) {
  if (detail::is_refused("pthread_create")) detail::throw_system_error_with(errno, "pthread_create");
  const signals_blocked quiet;
  try {
    return std::thread([what = std::move(what), program = detail::mask_of_children(quiet.before())]() mutable {
      detail::set_mask_of_children(program);
      detail::run_where_process_may();
      what();
    });
  } catch (const std::system_error& failure) {
    detail::throw_system_error_with(failure.code().value(), "pthread_create");
  }
}

}  // namespace muster
