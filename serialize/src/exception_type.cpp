// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/exception_type.hpp>

#include <atomic>

#include <muster/base/demangle.hpp>

#include "builtin_exceptions.hpp"

namespace muster {

namespace {

// Constant-initialized, so it is there before the first registration of any translation unit.
constinit std::atomic<const exception_type*> newest_registration = nullptr;

}  // namespace

std::string exception_type::name() const { return name_of(*type_); }

void exception_type::enrol() noexcept {
  const exception_type* head = newest_registration.load(std::memory_order_relaxed);
  do {
    next_ = head;
  } while (!newest_registration.compare_exchange_weak(head, this, std::memory_order_release));
}

const exception_type* exception_type::find(const std::string& name) {
  const auto* registered = newest_registration.load(std::memory_order_acquire);
  while (registered != nullptr && registered->name() != name) registered = registered->next_;
  return registered != nullptr ? registered : detail::find_builtin_exception(name);
}

}  // namespace muster
