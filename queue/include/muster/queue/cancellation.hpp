// SPDX-License-Identifier: BSL-1.0
#pragma once

// Its place is muster/async/cancellation.hpp.
#include <muster/async/cancellation.hpp>
