// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <muster/pool/pool.hpp>

std::size_t call(const muster::pool& pool, const std::string& text) { return pool.apply(&std::string::size, text); }
