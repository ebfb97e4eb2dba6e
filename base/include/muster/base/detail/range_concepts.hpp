// SPDX-License-Identifier: BSL-1.0
#pragma once

// The concepts of ranges and iterators, and the functions that go with them, without the views: <ranges> is a third of
// what a call of a pool would take to compile. The standard has no header for these alone; <span> of libstdc++ has
// them.
//
// Thread safety: types only.

#include <muster/base/requirements.hpp>

#include <version>

#if defined(__GLIBCXX__)
#include <span>
#else
#include <iterator>
#include <ranges>
#endif
