// SPDX-License-Identifier: BSL-1.0
// The queue floor does not see what stands on it.
#include <muster/pool/pool.hpp>
