// SPDX-License-Identifier: BSL-1.0
#pragma once

// Its place is muster/async/as_completed.hpp.
//
// Thread safety: as there.
#include <muster/async/as_completed.hpp>
