// SPDX-License-Identifier: BSL-1.0
#pragma once

// Durations, points in time, clocks and their literals, without the calendar: that, and the streams which print it, are
// two thirds of <chrono>. The standard has no header for these alone; libstdc++ has.
//
// Thread safety: types only.

#include <muster/base/requirements.hpp>

#include <version>

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
