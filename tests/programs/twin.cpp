// SPDX-License-Identifier: BSL-1.0
extern "C" int twin_of_another_module() { return 2; }
