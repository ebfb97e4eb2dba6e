// SPDX-License-Identifier: BSL-1.0
// Tensors that cannot be written to: whatever would write throws, whatever reads works.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/dlpack.hpp>
#include <muster/device/eigen.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/device/tensor_print.hpp>
#include <muster/pool/pool.hpp>

#include "device_support.hpp"

namespace muster::read_only_test {
namespace {

using test::expect_refused;

struct named_call {
  std::string name;
  std::function<void(const tensor&)> call;
};

TEST(ReadOnlyTensor, WhatWouldWriteThrows) {
  const auto whole = tensor::arange<float>(6).reshape({2, 3});
  const auto other = tensor::ones<float>({2, 3});
  const std::vector<named_call> all = {
      {"data()", [](const tensor& t) { static_cast<void>(t.data()); }},
      {"data<T>()", [](const tensor& t) { static_cast<void>(t.data<float>()); }},
      {"span", [](const tensor& t) { static_cast<void>(t.span<float>()); }},
      {"view", [](const tensor& t) { static_cast<void>(t.view<float, 2>()); }},
      {"at", [](const tensor& t) { static_cast<void>(t.at<float>(0, 0)); }},
      {"item", [](const tensor& t) { static_cast<void>(t.slice(0, 1).slice(0, 1, 1).item<float>()); }},
      {"fill", [](const tensor& t) { t.fill(1.0F); }},
      {"copy_from a tensor", [&](const tensor& t) { t.copy_from(other); }},
      {"copy_from numbers", [](const tensor& t) { t.copy_from(std::vector<float>(6)); }},
      {"accumulate", [&](const tensor& t) { accumulate(t, other); }},
      {"scale", [](const tensor& t) { scale(t, 2); }},
      {"axpy", [&](const tensor& t) { axpy(2, other, t); }},
      {"convert_into", [](const tensor& t) { convert_into(t, tensor::ones<int>({2, 3})); }},
      {"to_dlpack", [](const tensor& t) { static_cast<void>(to_dlpack(t)); }},
      {"as_matrix", [](const tensor& t) { static_cast<void>(as_matrix<float>(t)); }},
  };
  for (const auto& each : all) {
    SCOPED_TRACE(each.name);
    expect_refused([&] { each.call(whole.as_read_only()); }, "read-only", "clone()");
  }
  EXPECT_EQ(whole.to_vector<float>(), std::vector<float>({0, 1, 2, 3, 4, 5}));
}

TEST(ReadOnlyTensor, WhatReadsWorks) {
  const auto whole = tensor::arange<float>(6).reshape({2, 3});
  const auto same = whole.as_read_only();
  EXPECT_TRUE(same.is_read_only());
  EXPECT_FALSE(whole.is_read_only());
  EXPECT_EQ(same.const_data(), whole.data());
  EXPECT_EQ(same.data<const float>(), whole.data<float>());
  EXPECT_EQ(same.span<const float>()[4], 4);
  EXPECT_EQ((same.view<const float, 2>()(1, 2)), 5);
  EXPECT_EQ(same.at<const float>(1, 0), 3);
  EXPECT_EQ(same.row(1).slice(2, 3).item<const float>(), 5);
  EXPECT_EQ(as_matrix<const float>(same).sum(), 15);
  EXPECT_EQ(as_vector<const float>(same)(5), 5);
  EXPECT_TRUE(equal(same, whole));
  std::ostringstream printed;
  printed << same;
  EXPECT_NE(printed.str().find('5'), std::string::npos);
  const auto sum = tensor::zeros<float>({2, 3});
  accumulate(sum, same);
  axpy(1, same, sum);
  EXPECT_EQ(sum.at<float>(1, 2), 10);
  EXPECT_EQ(convert(same, dtype::i32).at<int>(1, 2), 5);
  whole.fill(7.0F);
  EXPECT_EQ(same.at<const float>(0, 0), 7) << "the same elements";
}

TEST(ReadOnlyTensor, WhatIsMadeOfItWithoutACopyIsToo) {
  const auto whole = tensor::arange<float>(6).reshape({2, 3}).as_read_only();
  const std::vector<std::pair<std::string, tensor>> all = {
      {"copy", tensor(whole)},
      {"slice", whole.slice(0, 1)},
      {"row", whole.row(0)},
      {"reshape", whole.reshape({6})},
      {"transpose", whole.transpose()},
      {"broadcast_to", whole.broadcast_to({4, 2, 3})},
      {"contiguous", whole.contiguous()},
      {"to", whole.to(device::cpu())},
      {"as_read_only", whole.as_read_only()},
      {"over a read-only storage",
       tensor::over(storage::read_only(tensor::ones<float>({6}).storage()), dtype::f32, {6})},
  };
  for (const auto& [name, each] : all) EXPECT_TRUE(each.is_read_only()) << name;
  EXPECT_FALSE(whole.clone().is_read_only());
  EXPECT_FALSE(whole.transpose().contiguous().is_read_only()) << "a copy";
  auto left = whole;
  const auto taken = std::move(left);
  EXPECT_TRUE(taken.is_read_only());
  EXPECT_FALSE(left.is_read_only());  // NOLINT(bugprone-use-after-move): it is tensor()
  EXPECT_TRUE(tensor().as_read_only().is_read_only());
}

TEST(ReadOnlyTensor, IsSoInOtherProcessesAndWhenItComesBack) {
  pool workers({.workers = 1});
  const auto look = [](const tensor& given) {
    if (!given.is_read_only()) throw std::runtime_error("it can be written to");
    try {
      given.fill(0.0F);
    } catch (const error&) {
      return given.row(1);
    }
    throw std::runtime_error("it was written to");
  };
  const auto whole = tensor::arange<float>(6).reshape({2, 3});
  const auto back = workers.apply(look, whole.as_read_only());
  EXPECT_TRUE(back.is_read_only());
  EXPECT_EQ(back.const_data(), whole.row(1).data()) << "by reference";
  const auto copied = workers.apply([](const tensor& given) { return given.is_read_only(); },
                                    tensor::zeros<float>({2}, memory::local).as_read_only());
  EXPECT_FALSE(copied) << "a copy is the receiver's own";
}

TEST(ReadOnlyTensor, IsExportedAsSuch) {
  const auto whole = tensor::arange<float>(6);
  auto exported = to_dlpack_versioned(whole.as_read_only());
  EXPECT_EQ(exported->flags, dlpack_versioned_tensor::read_only);
  const auto back = from_dlpack(std::move(exported));
  EXPECT_TRUE(back.is_read_only());
  EXPECT_EQ(back.const_data(), whole.data());
}

// A byte that is no bool is read as true, and stays.
TEST(ReadOnlyTensor, ReadingABoolWritesNothing) {
  const auto bytes = tensor::full<std::uint8_t>({2}, 7);
  const auto bools = tensor::over(bytes.storage(), dtype::boolean, {2}).as_read_only();
  EXPECT_TRUE(bools.at<const bool>(1));
  EXPECT_TRUE(bools.slice(0, 1).item<const bool>());
  EXPECT_EQ(bytes.at<std::uint8_t>(1), 7);
  EXPECT_EQ(bytes.at<std::uint8_t>(0), 7);
}

TEST(ReadOnlyTensor, CountsAsAHandleOfItsMemory) {
  const auto whole = tensor::ones<float>({6});
  const auto same = whole.as_read_only();
  EXPECT_EQ(whole.storage().use_count(), 2);
  EXPECT_EQ(whole.storage(), same.storage());
}

}  // namespace
}  // namespace muster::read_only_test
