// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/detail/mutex.hpp>
#include <muster/base/detail/thread_annotations.hpp>

namespace muster::detail {

/// Guards this process's tables of exceptions, categories and origins: each is looked at when something has gone wrong,
/// and for less than a microsecond.
extern constinit mutex table_mutex;

/// Holds table_mutex for a scope. fork() holds it too, so that a forked child has whole tables and a free lock.
///
/// Requires: no table_lock is held by this thread.
/// Thread safety: an object belongs to one thread.
class MUSTER_SCOPED_CAPABILITY table_lock {
public:
  table_lock() noexcept MUSTER_ACQUIRE(table_mutex);
  table_lock(const table_lock&) = delete;
  table_lock& operator=(const table_lock&) = delete;
  ~table_lock() MUSTER_RELEASE();
};

}  // namespace muster::detail
