// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

#include <muster/base/error.hpp>
#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

/// A service that was looked up.
///
/// Thread safety: a value that does not change; safe.
class service_state {
public:
  const core_ptr core;
  const std::string name;
  const call_peer owner;
  const std::uint64_t id;
};

[[noreturn]] inline void throw_no_service() {
  throw error(errc::invalid_argument, "a service that stands for none was called: get one by rpc_group::service()");
}

}  // namespace muster::detail
