// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace muster {

/// Makes room for so many more open descriptors than this process has now: raises the soft limit RLIMIT_NOFILE where it
/// is lower, as far as the hard limit allows. Processes that are started afterwards inherit it. Never fails: where the
/// hard limit is too low, opening the last of them will.
///
/// Thread safety: safe; what other threads open meanwhile takes of the room.
/// Cost: as many steps as descriptors are open.
void make_room_for_descriptors(std::size_t more) noexcept;

}  // namespace muster
