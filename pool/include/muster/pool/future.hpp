// SPDX-License-Identifier: BSL-1.0
#pragma once

// Its place is muster/async/future.hpp.
//
// Thread safety: as there.
#include <muster/async/future.hpp>
