// SPDX-License-Identifier: BSL-1.0
#include <stdexcept>

#include <muster/serialize/exception_type.hpp>

struct of_a_number : std::runtime_error {
  explicit of_a_number(int) : std::runtime_error("") {}
};

MUSTER_REGISTER_EXCEPTION(of_a_number)
