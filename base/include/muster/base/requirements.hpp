// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a program that includes muster has to be compiled with. Each public header comes here before any code of its
// own, and where something is missing the compiler ends here: what is not there at the end of each branch stops it, so
// that no consequences are listed.
//
// Thread safety: no code.

#if !defined(__linux__)
#error "muster runs on Linux only: it starts, watches and maps its processes by Linux's own calls"
#include <compilation ends with the error above>
#elif __cplusplus < 202002L
#error "muster needs C++20: compile with -std=c++20 or newer (in CMake, targets that link muster::pool get it)"
#include <compilation ends with the error above>
#elif !defined(__cpp_exceptions) && !defined(__CUDACC__)
#error "muster needs exceptions, by which it reports what failed in a worker: compile without -fno-exceptions"
#include <compilation ends with the error above>
#elif !defined(__cpp_rtti) && !defined(__CUDACC__)
#error "muster needs run-time type information, by which exceptions cross processes: compile without -fno-rtti"
#include <compilation ends with the error above>
#endif
