// SPDX-License-Identifier: BSL-1.0
#include <stdexcept>

#include <muster/serialize/exception_type.hpp>

struct with_line : std::runtime_error {
  using std::runtime_error::runtime_error;
  int line = 0;
};

MUSTER_REGISTER_EXCEPTION(with_line)
