// SPDX-License-Identifier: BSL-1.0
#pragma once

// The concepts of ranges and iterators, and the functions that go with them, without the views: <ranges> is a third of
// what a call of a pool would take to compile. The standard has no header for these alone; libstdc++ has.
//
// Thread safety: types only.

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/ranges_base.h>)
#include <bits/ranges_base.h>
#else
#include <iterator>
#include <ranges>
#endif
