// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a tensor's memory belongs to. The name itself lies on the lowest floor, for those that know of no tensors.
//
// Thread safety: a value; safe.

#include <muster/base/device.hpp>  // IWYU pragma: export
