// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <muster/pool/pool.hpp>

muster::shared_object<std::string> share(const muster::pool& pool, const std::string& text) { return pool.share(text); }
