// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

#include "workloads.hpp"

namespace bench {

/// A program that measures `all`, or those that its command line names, prints a row for each, and writes them to files
/// where it is told to. Returns what main() is to return.
[[nodiscard]] int run_program(int argc, char** argv, const std::string& about, const std::vector<workload>& all);

}  // namespace bench
