// SPDX-License-Identifier: BSL-1.0
#include "table_lock.hpp"

#include <pthread.h>

namespace muster::detail {

// Constant-initialized and never destroyed: static objects register themselves, and hold exceptions.
constinit mutex table_mutex;

namespace {

void lock_tables() noexcept MUSTER_NO_THREAD_SAFETY_ANALYSIS { table_mutex.lock(); }
void unlock_tables() noexcept MUSTER_NO_THREAD_SAFETY_ANALYSIS { table_mutex.unlock(); }

}  // namespace

// pthread_atfork fails only without memory for its list. The lock is as good as any other then.
table_lock::table_lock() noexcept {
  static const int registered = ::pthread_atfork(&lock_tables, &unlock_tables, &unlock_tables);
  static_cast<void>(registered);
  table_mutex.lock();
}

table_lock::~table_lock() { table_mutex.unlock(); }

}  // namespace muster::detail
