// SPDX-License-Identifier: BSL-1.0
#include "base_classes.hpp"

#include <cxxabi.h>

#include <cstddef>

#include <muster/serialize/detail/restored_exception.hpp>

// Reads the compiler's descriptions of classes, whose layout the C++ ABI for Itanium says (2.9.5), and which catch
// clauses read too.

namespace muster::detail {

namespace {

// Calls `visit(base, is_public, is_virtual)` for each direct base.
template <class Visit>
void for_each_base(const std::type_info& type, const Visit& visit) {
  if (const auto* one = dynamic_cast<const ::abi::__si_class_type_info*>(&type)) {
    visit(*one->__base_type, true, false);
  } else if (const auto* many = dynamic_cast<const ::abi::__vmi_class_type_info*>(&type)) {
    for (unsigned index = 0; index < many->__base_count; ++index) {
      const auto& base = many->__base_info[index];  // NOLINT(*-bounds-constant-array-index): longer than declared
      visit(*base.__base_type, base.__is_public_p(), base.__is_virtual_p());
    }
  }
}

}  // namespace

std::vector<const std::type_info*> classes_of(const std::type_info& type) {
  std::vector<const std::type_info*> classes = {&type};
  for (std::size_t index = 0; index < classes.size(); ++index) {
    for_each_base(*classes[index], [&](const std::type_info& base, bool is_public, bool /*is_virtual*/) {
      if (is_public) classes.push_back(&base);
    });
  }
  return classes;
}

bool has_virtual_base(const std::type_info& type) noexcept {
  bool found = false;
  for_each_base(type, [&](const std::type_info& base, bool /*is_public*/, bool is_virtual) {
    found = found || is_virtual || has_virtual_base(base);
  });
  return found;
}

}  // namespace muster::detail
