// SPDX-License-Identifier: BSL-1.0
#pragma once

// A class `twin` in the unnamed namespace of another translation unit, which is registered there, and one that is not.

#include <string>
#include <typeinfo>

namespace muster::exception_type_test {

[[noreturn]] void throw_other_twin(const std::string& text);
[[nodiscard]] const std::type_info& type_of_other_twin();
[[noreturn]] void throw_other_stranger();

}  // namespace muster::exception_type_test
