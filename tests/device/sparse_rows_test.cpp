// SPDX-License-Identifier: BSL-1.0
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor.hpp>

namespace muster {
namespace {

using testing::ElementsAre;

const std::vector<std::int64_t> twice_three{3, 1, 3};

TEST(SparseRows, RowsOfOneIndexAreAddedUp) {
  const auto rows = tensor::from({1.0F, 2.0F, 10.0F, 20.0F, 100.0F, 200.0F}, {3, 2});
  const auto made = sparse_rows::of(twice_three, rows);
  EXPECT_THAT(made.indices.to_vector<std::int64_t>(), ElementsAre(1, 3));
  EXPECT_THAT(made.rows.to_vector<float>(), ElementsAre(10, 20, 101, 202));
  EXPECT_EQ(made.count(), 2U);
  EXPECT_NO_THROW(made.require());
}

TEST(SparseRows, TheRestOfTheWholeIsZero) {
  const auto made = sparse_rows::of(twice_three, tensor::ones<std::int32_t>({3, 2}));
  EXPECT_THAT(made.to_dense(4).to_vector<std::int32_t>(), ElementsAre(0, 0, 1, 1, 0, 0, 2, 2));
  EXPECT_THROW(static_cast<void>(made.to_dense(3)), error);
}

TEST(SparseRows, RowsAreCopiedOutOfAWholeAndBack) {
  const auto whole = tensor::arange<std::int64_t>(8).reshape({4, 2});
  const auto some = sparse_rows::pick(whole, twice_three);
  EXPECT_THAT(some.rows.to_vector<std::int64_t>(), ElementsAre(2, 3, 6, 7));
  some.rows.fill(std::int64_t{9});
  some.copy_into(whole);
  EXPECT_THAT(whole.to_vector<std::int64_t>(), ElementsAre(0, 1, 9, 9, 4, 5, 9, 9));
}

TEST(SparseRows, NoRowsAreSomeToo) {
  const sparse_rows none;
  EXPECT_EQ(none.count(), 0U);
  const auto picked = sparse_rows::pick(tensor::zeros<float>({3, 2}), {});
  EXPECT_EQ(picked.count(), 0U);
  EXPECT_THAT(picked.to_dense(1).to_vector<float>(), ElementsAre(0, 0));
}

TEST(SparseRows, WhatDoesNotFitIsRefused) {
  const auto rows = tensor::zeros<float>({3, 2});
  EXPECT_THROW(static_cast<void>(sparse_rows::of(std::vector<std::int64_t>{1, 2}, rows)), error);
  EXPECT_THROW(static_cast<void>(sparse_rows::of(std::vector<std::int64_t>{1, -2, 3}, rows)), error);
  EXPECT_THROW(static_cast<void>(sparse_rows::pick(rows, std::vector<std::int64_t>{3})), error);
  EXPECT_THROW(sparse_rows::pick(rows, std::vector<std::int64_t>{0}).copy_into(tensor::zeros<float>({3, 3})), error);
  const sparse_rows unsorted{.indices = tensor::from(twice_three), .rows = rows};
  EXPECT_THROW(unsorted.require(), error);
  const sparse_rows of_floats{.indices = tensor::zeros<float>({3}), .rows = rows};
  EXPECT_THROW(of_floats.require(), error);
}

}  // namespace
}  // namespace muster
