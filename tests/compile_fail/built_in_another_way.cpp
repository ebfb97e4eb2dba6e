// SPDX-License-Identifier: BSL-1.0
#include <muster/base/error.hpp>

int main() { return muster::error_category().name() == nullptr ? 1 : 0; }
