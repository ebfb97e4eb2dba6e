// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/idle_processor.hpp>

#include <gtest/gtest.h>

namespace muster::idle_processor_test {
namespace {

TEST(SeemsProcessorIdle, ComparesThoseThatRunWithTheProcessors) {
  EXPECT_TRUE(seems_processor_idle(1'000'000)) << "more than run are ours";
  EXPECT_FALSE(seems_processor_idle(-1'000'000)) << "a million others run";
}

}  // namespace
}  // namespace muster::idle_processor_test
