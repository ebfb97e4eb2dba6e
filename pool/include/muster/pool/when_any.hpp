// SPDX-License-Identifier: BSL-1.0
#pragma once

// Its place is muster/async/when_any.hpp.
//
// Thread safety: as there.
#include <muster/async/when_any.hpp>
