// SPDX-License-Identifier: BSL-1.0
#pragma once

// Its place is muster/async/when_all.hpp.
#include <muster/async/when_all.hpp>
