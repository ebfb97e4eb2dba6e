// SPDX-License-Identifier: BSL-1.0
#pragma once

// std::function, without the searchers and the hash tables that come with <functional>: these are a tenth of what a
// group takes to compile. The standard has no header for it alone; libstdc++ has.
//
// Thread safety: types only.

#include <muster/base/requirements.hpp>

#include <new>
#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/std_function.h>)
#include <bits/std_function.h>
#else
#include <functional>
#endif
