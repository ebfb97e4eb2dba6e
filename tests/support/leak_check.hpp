// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::test {

/// What a test must leave as it found it.
struct footprint {
  std::map<std::string, std::string> descriptors;  ///< "number -> target", by number and file: files are renamed
  std::set<std::string> shared_memory;             ///< names in /dev/shm
  std::set<std::string> children;                  ///< "pid name", zombies of killed parents aside
};

[[nodiscard]] footprint take_footprint();

/// Fails a test after which more descriptors, names in /dev/shm or child processes exist than before.
class leak_check : public testing::EmptyTestEventListener {
public:
  void OnTestStart(const testing::TestInfo& info) override;
  void OnTestEnd(const testing::TestInfo& info) override;

private:
  footprint before_;
};

}  // namespace muster::test
