// SPDX-License-Identifier: BSL-1.0
#include <muster/device/eigen.hpp>

#include <complex>

#include <muster/device/tensor_compare.hpp>

#include "device_support.hpp"

namespace muster::eigen_test {
namespace {

using test::expect_refused;

TEST(EigenMaps, AreTheTensorsOwnElements) {
  const auto x = tensor::arange(0.0F, 6.0F).reshape({2, 3});
  auto map = as_matrix<float>(x);
  EXPECT_EQ(map.rows(), 2);
  EXPECT_EQ(map.cols(), 3);
  EXPECT_EQ(map(1, 0), 3);
  map(1, 2) = 50;
  EXPECT_EQ(x.at<float>(1, 2), 50);
  as_vector<float>(x).setOnes();
  EXPECT_TRUE(equal(x, tensor::ones<float>({2, 3})));
}

TEST(EigenMaps, MultiplyAsMatricesDo) {
  const auto a = tensor::from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {2, 3});
  const auto b = tensor::from({1.0, 0.0, 0.0, 1.0, 1.0, 1.0}, {3, 2});
  const auto product = tensor::empty<double>({2, 2});
  as_matrix<double>(product).noalias() = as_matrix<double>(a) * as_matrix<double>(b);
  EXPECT_TRUE(equal(product, tensor::from({4.0, 5.0, 10.0, 11.0}, {2, 2})));
  as_matrix<double>(product).rowwise() += as_vector<double>(tensor::from({1.0, 2.0}, {2})).transpose();
  EXPECT_TRUE(equal(product, tensor::from({5.0, 7.0, 11.0, 13.0}, {2, 2})));
}

TEST(EigenMaps, TakePartsOfRowsAndOfColumns) {
  const auto x = tensor::arange(0, 12).reshape({3, 4});
  const auto part = as_matrix<int>(x.slice(1, 3).slice(1, 3, 1));
  EXPECT_EQ(part.sum(), 5 + 6 + 9 + 10);
  EXPECT_EQ(as_matrix<int>(x.slice(1, 2)).sum(), 4 + 5 + 6 + 7);
}

TEST(EigenMaps, TakeWhatHasNoElements) {
  EXPECT_EQ(as_matrix<float>(tensor::zeros<float>({0, 3})).sum(), 0);
  EXPECT_EQ(as_matrix<float>(tensor::zeros<float>({3, 0})).rows(), 3);
  EXPECT_EQ(as_vector<std::complex<double>>(tensor::zeros<std::complex<double>>({0})).size(), 0);
}

TEST(EigenMaps, RefuseWhatTheyCannotBe) {
  const auto x = tensor::arange(0.0F, 6.0F);
  expect_refused([&] { static_cast<void>(as_matrix<float>(x)); }, "as_matrix", "(6,)", "two dimensions");
  expect_refused([&] { static_cast<void>(as_matrix<double>(x.reshape({2, 3}))); }, "f32");
  const auto across = tensor::over(x.storage(), dtype::f32, {3, 2}, {1, 3}, 0);
  expect_refused([&] { static_cast<void>(as_matrix<float>(across)); }, "(3, 2)", "contiguous rows");
  expect_refused([&] { static_cast<void>(as_vector<float>(across)); }, "as_vector", "contiguous");
  const auto back = tensor::over(x.storage(), dtype::f32, {2, 3}, {-3, 1}, 3 * sizeof(float));
  expect_refused([&] { static_cast<void>(as_matrix<float>(back)); }, "in order");
}

}  // namespace
}  // namespace muster::eigen_test
