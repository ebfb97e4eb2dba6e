// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/thrown_object.hpp>

#include <cxxabi.h>

#include <functional>
#include <utility>

#include <boost/intrusive/set.hpp>

#include "table_lock.hpp"

namespace muster::detail {

namespace {

using origin_set = boost::intrusive::set<thrown_origin>;

// Never destroyed: static objects may hold exceptions, and are destroyed in any order.
origin_set& origins() MUSTER_REQUIRES(table_mutex) {
  static auto& instance = *new origin_set;
  return instance;
}

struct begins_behind {
  bool operator()(const char* address, const thrown_origin& origin) const noexcept {
    return std::less<>()(address, origin.begin());
  }
  bool operator()(const thrown_origin& origin, const char* address) const noexcept {
    return std::less<>()(origin.begin(), address);
  }
};

}  // namespace

thrown_origin::thrown_origin(const void* object, std::size_t bytes, const error_info& info)
    : begin_(static_cast<const char*>(object)), bytes_(bytes), info_(info) {
  const table_lock lock;
  origins().insert(*this);
}

thrown_origin::~thrown_origin() {
  const table_lock lock;
  origins().erase(origins().iterator_to(*this));
}

const error_info* thrown_origin::find(const void* part) noexcept {
  const auto* address = static_cast<const char*>(part);
  const table_lock lock;
  auto behind = origins().upper_bound(address, begins_behind());
  if (behind == origins().begin()) return nullptr;
  const auto& nearest = *--behind;
  return std::less<>()(address, nearest.end()) ? &nearest.info() : nullptr;
}

thrown_memory::thrown_memory(std::size_t bytes) noexcept : memory_(::abi::__cxa_allocate_exception(bytes)) {}

thrown_memory::~thrown_memory() {
  if (memory_ != nullptr) ::abi::__cxa_free_exception(memory_);
}

// The same call that the compiler makes for `throw`. (C++ ABI for Itanium, Exception Handling, 2.4.)
void thrown_memory::raise(const std::type_info& type, void (*destroy)(void*)) {
  ::abi::__cxa_throw(std::exchange(memory_, nullptr), const_cast<std::type_info*>(&type), destroy);
}

}  // namespace muster::detail
