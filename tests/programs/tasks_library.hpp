// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/pool/pool.hpp>

namespace tasks {

int triple(int x);
/// Sends a lambda that only this library has.
int apply_lambda_of_library(const muster::pool& pool, int x);

}  // namespace tasks
