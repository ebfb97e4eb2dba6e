// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <muster/pool/pool.hpp>

int square(int x) { return x * x; }

int call(const muster::pool& pool) { return pool.apply(square, std::string("three")); }
