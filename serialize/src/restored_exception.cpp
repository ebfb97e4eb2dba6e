// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/restored_exception.hpp>

namespace muster::detail {

namespace {

// Made while no exception is handled.
const std::nested_exception without_inner;

}  // namespace

void set_inner(std::nested_exception& to, bool has_inner) noexcept {
  to = has_inner ? std::nested_exception() : without_inner;
}

}  // namespace muster::detail
