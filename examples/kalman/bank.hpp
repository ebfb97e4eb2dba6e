// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

namespace kalman {

/// Runs so many independent filters, each with a problem of its own, in the workers of a pool (0: as many as there are
/// processors), a whole filter in one worker; then one after the other in this program. Checks that both give the same
/// bits, and these what the references give in double; prints what it took.
/// Throws std::runtime_error for what is wrong.
void run_bank(std::size_t filters, unsigned workers, std::size_t n, std::size_t steps);

}  // namespace kalman
