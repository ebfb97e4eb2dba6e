// SPDX-License-Identifier: BSL-1.0
// A library with a function that is named, for function_token_test.

extern "C" int negate(int x) { return -x; }
