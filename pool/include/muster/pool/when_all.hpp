// SPDX-License-Identifier: BSL-1.0
#pragma once

// Its place is muster/async/when_all.hpp.
//
// Thread safety: as there.
#include <muster/async/when_all.hpp>
