// SPDX-License-Identifier: BSL-1.0
// Tensors on a GPU, or on what stands in for one (tests/fake_cuda).
#include <muster/cuda/cuda_device.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/detail/convert.hpp>
#include <muster/device/dlpack.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/device/tensor_print.hpp>

#include "gpu_fixture.hpp"

namespace muster::cuda_tensor_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr auto gpu = device::cuda(0);
constexpr auto cpu = device::cpu();

class CudaTensor : public test::gpu_test {};

std::string problem_of(const auto& what) {
  try {
    what();
  } catch (const error& found) {
    return found.what();
  }
  return "nothing was thrown";
}

TEST_F(CudaTensor, GoesToTheDeviceAndComesBackTheSame) {
  const auto here = tensor::arange<float>(1000).reshape({10, 100});
  const auto there = here.to(gpu);
  EXPECT_EQ(there.device(), gpu);
  EXPECT_EQ(there.shape(), here.shape());
  EXPECT_EQ(there.to(gpu).device_address(), there.device_address()) << "it is there already";
  EXPECT_TRUE(equal(there.to(cpu), here));
}

TEST_F(CudaTensor, WithoutElementsOrDimensionsGoesToo) {
  EXPECT_EQ(tensor::zeros<float>({0, 3}).to(gpu).to(cpu).shape(), tensor_shape({0, 3}));
  EXPECT_EQ(tensor::empty<float>({0}, gpu).device(), gpu);
  EXPECT_EQ(tensor::full<double>({}, 2.5).to(gpu).to(cpu).item<double>(), 2.5);
}

TEST_F(CudaTensor, StridedOnesAreCopiedInBothDirections) {
  const auto here = tensor::arange<std::int16_t>(24).reshape({2, 3, 4}).permute({2, 0, 1});
  const auto there = here.to(gpu);
  EXPECT_TRUE(there.is_contiguous());
  EXPECT_TRUE(equal(there.to(cpu), here));
  EXPECT_TRUE(equal(there.transpose().to(cpu), here.transpose()));
  const auto wide = tensor::zeros<std::int16_t>({4, 2, 6}, gpu);
  wide.slice(0, 6, 2, 2).copy_from(here);
  EXPECT_TRUE(equal(wide.to(cpu).slice(0, 6, 2, 2), here));
  EXPECT_FALSE(any(wide.to(cpu).slice(1, 6, 2, 2)));
  const auto room = tensor::zeros<std::int16_t>({3, 2, 4}).transpose();
  room.copy_from(there);
  EXPECT_TRUE(equal(room, here));
}

// As they may come from another library, or process.
TEST_F(CudaTensor, OfBoolsTakesEveryByteButZeroForTrue) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t index = 0; index < 100; ++index)
    bytes.push_back(std::array<std::uint8_t, 4>{2, 0, 255, 1}[index % 4]);
  const auto given = tensor::from(bytes).to(gpu);
  const auto bools = [](const tensor& of) { return tensor::over(of.storage(), dtype::boolean, of.shape()); };
  const auto truths = tensor::from(bytes);
  for (auto& each : truths.span<std::uint8_t>()) each = each != 0 ? 1 : 0;
  for (const auto type : {dtype::u8, dtype::i64, dtype::f16, dtype::f32, dtype::c128}) {
    EXPECT_TRUE(equal(convert(bools(given), type).to(cpu), convert(truths, type))) << type;
    const auto strided = convert(bools(given).slice(0, 100, 0, 3), type).to(cpu);
    EXPECT_TRUE(equal(strided, convert(truths.slice(0, 100, 0, 3).clone(), type))) << type;
  }
  for (const auto op : {element_op::sum, element_op::prod, element_op::min, element_op::max}) {
    const auto into = tensor::full<std::uint8_t>({100}, 4, gpu);
    accumulate(bools(into), bools(given), op);
    const bool is_any = op == element_op::sum || op == element_op::max;
    const auto expected = is_any ? tensor::ones<std::uint8_t>({100}) : truths;
    EXPECT_TRUE(equal(into.to(cpu), expected)) << static_cast<int>(op);
  }
  const auto here = bools(given).to(cpu);
  EXPECT_EQ(std::memcmp(here.data(), truths.data(), 100), 0);
  EXPECT_EQ(count_nonzero(bools(given)), 75U);
}

TEST_F(CudaTensor, IsMadeFilledAndCloned) {
  const auto sevens = tensor::full<std::uint8_t>({5, 5}, 7, gpu);
  EXPECT_TRUE(equal(sevens.to(cpu), tensor::full<std::uint8_t>({5, 5}, 7)));
  const auto copy = sevens.slice(1, 3, 1).clone();
  EXPECT_EQ(copy.device(), gpu);
  copy.fill(9);
  EXPECT_TRUE(equal(sevens.to(cpu), tensor::full<std::uint8_t>({5, 5}, 7)));
  EXPECT_TRUE(equal(tensor::zeros<float>({3}, gpu).to(cpu), tensor::zeros<float>({3})));
  EXPECT_TRUE(equal(tensor::ones<float>({3}, cpu), tensor::ones<float>({3})));
}

TEST_F(CudaTensor, ArithmeticIsDoneThere) {
  const auto a = tensor::arange<float>(10);
  const auto there = a.to(gpu);
  accumulate(there, tensor::ones<float>({10}, gpu));
  scale(there, 2);
  axpy(-1, a.to(gpu), there);
  auto here = a.clone();
  accumulate(here, tensor::ones<float>({10}));
  scale(here, 2);
  axpy(-1, a, here);
  EXPECT_TRUE(equal(there.to(cpu), here));
  EXPECT_TRUE(equal(convert(there, dtype::i64).to(cpu), convert(here, dtype::i64)));
}

// On the host they are joined one after the other; a device would lose some.
TEST_F(CudaTensor, IntoRepeatedElementsNothingIsJoined) {
  const auto once = tensor::ones<float>({4}, gpu);
  const auto repeated = once.broadcast_to({3, 4});
  const auto whole = tensor::ones<float>({3, 4}, gpu);
  const auto names_it = AllOf(HasSubstr("(3, 4) whose dimension 0 repeats"), HasSubstr("row()"));
  EXPECT_THAT(problem_of([&] { accumulate(repeated, whole); }), names_it);
  EXPECT_THAT(problem_of([&] { scale(repeated, 2); }), names_it);
  EXPECT_THAT(problem_of([&] { axpy(2, whole, repeated); }), names_it);
  EXPECT_TRUE(equal(once.to(cpu), tensor::ones<float>({4})));
  for (std::size_t row = 0; row < 3; ++row) accumulate(once, whole.row(row));
  EXPECT_TRUE(equal(once.to(cpu), tensor::full<float>({4}, 4))) << "as the message says";
  accumulate(whole, repeated);
  EXPECT_TRUE(equal(whole.to(cpu), tensor::full<float>({3, 4}, 5)));
  scale(tensor::ones<float>({1, 4}, gpu).broadcast_to({1, 4}), 2);
  scale(tensor::zeros<float>({0}, gpu).reshape({0, 1}).broadcast_to({0, 4}), 2);
}

TEST_F(CudaTensor, TensorsOfTwoPlacesAreNotCombined) {
  const auto text = problem_of([] { accumulate(tensor::zeros<float>({2}, gpu), tensor::zeros<float>({2})); });
  EXPECT_THAT(text, AllOf(HasSubstr("cpu"), HasSubstr("cuda:0"), HasSubstr("to()")));
}

TEST_F(CudaTensor, TensorsOfTwoDevicesAreNotCombined) {
  constexpr auto other = device::cuda(1);
  if (cuda_device::count() < 2) GTEST_SKIP() << "there is one GPU";
  const auto here = tensor::zeros<float>({2}, gpu);
  const auto there = tensor::ones<float>({2}, other);
  const auto names_both = AllOf(HasSubstr("cuda:0"), HasSubstr("cuda:1"), HasSubstr("to()"));
  EXPECT_THAT(problem_of([&] { accumulate(here, there); }), names_both);
  EXPECT_THAT(problem_of([&] { axpy(2, there, here); }), names_both);
  EXPECT_TRUE(equal(here.to(cpu), tensor::zeros<float>({2})));
  accumulate(here, there.to(gpu));
  EXPECT_TRUE(equal(here.to(cpu), tensor::ones<float>({2}))) << "as the message says";
}

TEST_F(CudaTensor, ElementsAreNotLookedAtFromTheHost) {
  const auto there = tensor::zeros<float>({4}, gpu);
  for (const auto& text : {problem_of([&] { static_cast<void>(there.data()); }),
                           problem_of([&] { static_cast<void>(there.span<float>()); }),
                           problem_of([&] { static_cast<void>(there.at<float>(1)); }),
                           problem_of([&] { static_cast<void>(there.view<float, 1>()); })}) {
    EXPECT_THAT(text, AllOf(HasSubstr("cuda:0"), HasSubstr("to(device::cpu())")));
  }
  EXPECT_THAT(problem_of([] { static_cast<void>(tensor::zeros<float>({4}).device_data<float>()); }),
              HasSubstr("in memory of the host"));
}

TEST_F(CudaTensor, IsPrintedAndComparedLikeOthers) {
  const auto there = tensor::arange<std::int32_t>(3).to(gpu);
  std::ostringstream out;
  out << there;
  EXPECT_EQ(out.str(), "tensor([0, 1, 2], i32, cuda:0)");
  EXPECT_TRUE(equal(there, tensor::arange<std::int32_t>(3)));
  EXPECT_FALSE(equal(there, tensor::zeros<std::int32_t>({3})));
}

TEST_F(CudaTensor, IsComparedElementByElementAndCountedLikeOthers) {
  const auto there = tensor::arange<float>(6).reshape({2, 3}).to(gpu).transpose();
  const auto here = there.to(cpu);
  const auto greater = compare(there, comparison::greater, 2);
  EXPECT_EQ(greater.device(), cpu);
  EXPECT_TRUE(equal(greater, compare(here, comparison::greater, 2)));
  EXPECT_TRUE(equal(compare(here, comparison::less, there.row(1)), compare(here, comparison::less, here.row(1))))
      << "one of them there, and broadcast";
  EXPECT_TRUE(all(is_close(there, here)));
  EXPECT_EQ(count_nonzero(there), 5U);
  EXPECT_TRUE(any(there));
  EXPECT_FALSE(all(there));
}

TEST_F(CudaTensor, GoesThroughDLPackWithoutACopy) {
  const auto there = tensor::arange<float>(6).to(gpu);
  auto handle = to_dlpack(there);
  EXPECT_EQ(handle->dl_tensor.device.device_type, dlpack_device::cuda);
  EXPECT_EQ(handle->dl_tensor.device.device_id, 0);
  handle->dl_tensor.byte_offset += 2;
  EXPECT_THAT(problem_of([&] { static_cast<void>(from_dlpack(handle.get())); }), HasSubstr("multiples of 4"));
  handle->dl_tensor.byte_offset -= 2;
  const auto back = from_dlpack(std::move(handle));
  EXPECT_EQ(back.device(), gpu);
  EXPECT_EQ(back.device_address(), there.device_address());
  back.fill(1.0F);
  EXPECT_TRUE(equal(there.to(cpu), tensor::ones<float>({6})));
}

TEST_F(CudaTensor, MoreThanThereIsIsAnErrorThatSaysHowMuch) {
  const auto total = cuda_device::open(gpu)->memory().total_bytes;
  const auto text = problem_of([&] { static_cast<void>(tensor::empty<std::uint8_t>({total + 1}, gpu)); });
  EXPECT_THAT(text, AllOf(HasSubstr("cuda:0 has no room for"), HasSubstr("are free there"), HasSubstr("ask for less")));
  EXPECT_TRUE(equal(tensor::ones<float>({10}, gpu).to(cpu), tensor::ones<float>({10}))) << "it goes on";
}

TEST_F(CudaTensor, FreedMemoryIsUsedAgain) {
  const auto device = cuda_device::open(gpu);
  device->trim();
  const auto before = device->memory().held_bytes;
  for (int times = 0; times < 100; ++times) static_cast<void>(tensor::full<float>({1 << 20}, 1.0F, gpu));
  EXPECT_LE(device->memory().held_bytes, before + (std::size_t{64} << 20U));
  device->trim();
  EXPECT_EQ(device->memory().held_bytes, before);
}

TEST_F(CudaTensor, ADeviceThatThereIsNotIsNamed) {
  const auto text = problem_of([] { static_cast<void>(tensor::zeros<float>({1}, device::cuda(99))); });
  EXPECT_THAT(text, AllOf(HasSubstr("cuda:99"), HasSubstr("this process has")));
}

}  // namespace
}  // namespace muster::cuda_tensor_test
