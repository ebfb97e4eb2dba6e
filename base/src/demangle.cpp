// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/demangle.hpp>

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace muster {

std::string demangle(const char* mangled) {
  int status = 0;
  const auto release = [](char* memory) { std::free(memory); };  // NOLINT: __cxa_demangle allocates with malloc
  const std::unique_ptr<char, decltype(release)> name(::abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                      release);
  return status == 0 ? std::string(name.get()) : std::string(mangled);
}

}  // namespace muster
