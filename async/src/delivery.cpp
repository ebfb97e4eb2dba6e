// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/delivery.hpp>

namespace muster::detail {

delivery_list*& delivery_scope::current() noexcept {
  thread_local delivery_list* of_this_thread = nullptr;
  return of_this_thread;
}

}  // namespace muster::detail
