// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/task_labels.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace muster::task_labels_test {
namespace {

TEST(TaskLabels, OfOneTextAreOne) {
  task_labels labels;
  const auto first = labels.find_or_add("evaluate");
  EXPECT_EQ(labels.find_or_add("evaluate"), first);
  EXPECT_EQ(text_of(first), "evaluate");
  EXPECT_EQ(labels.size(), 1U);
}

TEST(TaskLabels, OfNoTextIsNone) {
  task_labels labels;
  EXPECT_FALSE(labels.find_or_add(""));
  EXPECT_EQ(text_of(labels.find_or_add("")), "");
  EXPECT_EQ(labels.size(), 0U);
}

TEST(TaskLabels, ThatNobodyHasAnyMoreAreForgotten) {
  task_labels labels;
  for (int task = 0; task < 100'000; ++task) static_cast<void>(labels.find_or_add(std::to_string(task)));
  EXPECT_LE(labels.size(), 256U);
}

TEST(TaskLabels, ThatAreInUseAreKept) {
  task_labels labels;
  std::vector<label_ref> used;
  for (int task = 0; task < 1000; ++task) used.push_back(labels.find_or_add(std::to_string(task)));
  for (int task = 1000; task < 10'000; ++task) static_cast<void>(labels.find_or_add(std::to_string(task)));
  for (int task = 0; task < 1000; ++task) {
    EXPECT_EQ(labels.find_or_add(std::to_string(task)), used[static_cast<std::size_t>(task)]);
  }
  EXPECT_LE(labels.size(), 4000U);
}

TEST(TaskLabels, OutliveWhatTheyWereMadeIn) {
  label_ref label;
  {
    task_labels labels;
    label = labels.find_or_add("evaluate");
  }
  EXPECT_EQ(text_of(label), "evaluate");
}

}  // namespace
}  // namespace muster::task_labels_test
