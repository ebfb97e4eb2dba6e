// SPDX-License-Identifier: BSL-1.0
#include <system_error>

#include <muster/pool/pool.hpp>

muster::shared_object<std::error_code> share(const muster::pool& pool, std::error_code code) {
  return pool.share(code);
}
