// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/detail/null_arguments.hpp>

#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

void refuse_null_text(const char* role, std::size_t number) {
  const auto which = number == unnumbered ? std::string(role) : text(role, " ", number);
  throw error(errc::invalid_argument, text(which,
                                           " is a null const char*, and C strings are sent as the text that they point "
                                           "to: give \"\", or a std::optional<std::string>"));
}

void refuse_null_callable() {
  throw error(errc::invalid_argument,
              "the callable is a null pointer: give the address of a function, or see whether dlsym() has found it");
}

}  // namespace muster::detail
