// SPDX-License-Identifier: BSL-1.0
#pragma once

// Its place is muster/async/cancellation.hpp.
//
// Thread safety: as there.
#include <muster/async/cancellation.hpp>
