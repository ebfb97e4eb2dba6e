// SPDX-License-Identifier: BSL-1.0
#pragma once

// A program whose standard library lays its types out in another way than the library that it is linked with would
// crash. Each program that includes this needs a symbol that is named after its way, and after the version of these
// headers; the library has the one that it was built in: a program that does not fit it cannot be linked, and the
// linker says which symbol it needs.
//
// Thread safety: a constant.

#include <version>

#include <muster/base/requirements.hpp>
#include <muster/base/version.hpp>

#if defined(_LIBCPP_VERSION)
#define MUSTER_BUILT_WITH libcxx
#elif defined(_GLIBCXX_DEBUG)
#define MUSTER_BUILT_WITH libstdcxx_and_GLIBCXX_DEBUG
#elif defined(_GLIBCXX_USE_CXX11_ABI) && _GLIBCXX_USE_CXX11_ABI
#define MUSTER_BUILT_WITH libstdcxx
#else
#define MUSTER_BUILT_WITH libstdcxx_without_CXX11_ABI
#endif

#define MUSTER_TEXT_OF(name) #name
#define MUSTER_TEXT(name) MUSTER_TEXT_OF(name)
#define MUSTER_BUILT_WITH_STRING MUSTER_TEXT(MUSTER_BUILT_WITH)

#define MUSTER_ABI_NAME_OF(major, minor, patch, with) needs_muster_##major##_##minor##_##patch##_built_with_##with
#define MUSTER_ABI_NAME(major, minor, patch, with) MUSTER_ABI_NAME_OF(major, minor, patch, with)
#define MUSTER_ABI MUSTER_ABI_NAME(MUSTER_VERSION_MAJOR, MUSTER_VERSION_MINOR, MUSTER_VERSION_PATCH, MUSTER_BUILT_WITH)

namespace muster::abi {

extern const char MUSTER_ABI;

namespace detail {

[[gnu::used]] inline const char* const fits = &MUSTER_ABI;

}  // namespace detail

}  // namespace muster::abi
