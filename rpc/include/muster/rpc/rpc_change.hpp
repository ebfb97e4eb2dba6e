// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

#include <muster/base/requirements.hpp>

namespace muster {

/// What has changed in an RPC group.
enum class rpc_change_kind : std::uint8_t {
  joined,     ///< a member has joined
  left,       ///< a member has left
  lost,       ///< a member's process has died
  served,     ///< there is a service of that name
  unserved,   ///< there is none any more: also since its owner has left or died
  published,  ///< there is a value of that name
  withdrawn   ///< there is none any more: also since its owner has left or died
};

/// One change in an RPC group, as rpc_group::on_change() tells it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rpc_change {
  rpc_change_kind kind{};         ///< what has happened
  std::string member;             ///< that has changed; of a name, its owner
  std::string name;               ///< of the service or value; of a member's change empty
  std::uint32_t incarnation = 0;  ///< of the member

  friend bool operator==(const rpc_change&, const rpc_change&) = default;
};

}  // namespace muster
