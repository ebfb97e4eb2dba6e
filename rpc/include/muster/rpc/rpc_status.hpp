// SPDX-License-Identifier: BSL-1.0
#pragma once

// What there is in an RPC group, at one moment.

#include <sys/types.h>

#include <cstdint>
#include <string>

#include <muster/base/requirements.hpp>

namespace muster {

/// What a member is to its group.
enum class member_state : std::uint8_t {
  expected,  ///< it has not joined yet, or its name is free again
  joined,    ///< it can be called
  left,      ///< it has left
  lost       ///< its process has died
};

/// Of one member, at one moment.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct member_status {
  std::string name;               ///< as in the ticket
  member_state state{};           ///< what it is now
  pid_t pid = 0;                  ///< of its process; 0 where it never joined
  std::uint32_t incarnation = 0;  ///< how often the name has been joined
};

/// A name of a service or a published value, at one moment.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct name_status {
  std::string name;   ///< of the service or value
  std::string owner;  ///< the member that serves or has published it

  friend bool operator==(const name_status&, const name_status&) = default;
};

}  // namespace muster
