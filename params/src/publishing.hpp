// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/detail/mutex.hpp>

namespace muster::detail {

/// A process publishes one version at a time: there is one line where it says which.
struct publishing {
  mutex guard;
};
[[nodiscard]] publishing& process_publishing() noexcept;

}  // namespace muster::detail
