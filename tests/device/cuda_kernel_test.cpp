// SPDX-License-Identifier: BSL-1.0
#include "kernel_set.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <muster/device/detail/convert.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "cuda_support.hpp"
#include "device_support.hpp"
#include "element_ops.hpp"

namespace muster::cuda_kernel_test {
namespace {

using detail::cuda_view;
using detail::kernel_set;
using test::cuda_bench;
using test::expect_refused;
using test::mirrored;
using test::placing;

constexpr std::array all_ops = {element_op::sum, element_op::prod, element_op::min, element_op::max};
constexpr std::array fractions = {dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::c64, dtype::c128};

// Of one shape each: what can be written first.
const std::vector<std::vector<placing>>& placings() {
  static const std::vector<std::vector<placing>> all = {
      {{"a number", {}, {}, 0}, {"a number further on", {}, {}, 7}},
      {{"one", {1}, {1}, 0}, {"one with a stride", {1}, {-70}, 5}},
      {{"none", {0}, {1}, 0}},
      {{"no rows", {3, 0, 4}, {4, 4, 1}, 1}},
      {{"a row", {1003}, {1}, 0},
       {"a row further on", {1003}, {1}, 3},
       {"a row elsewhere", {1003}, {1}, 1},
       {"every third", {1003}, {3}, 2},
       {"backwards", {1003}, {-1}, 1002},
       {"one many times", {1003}, {0}, 9, true}},
      {{"many", {100'003}, {1}, 0}, {"many further on", {100'003}, {1}, 5}},
      {{"rows", {33, 66}, {66, 1}, 0},
       {"columns", {33, 66}, {1, 33}, 0},
       {"rows with gaps", {33, 66}, {72, 1}, 8},
       {"rows from behind", {33, 66}, {-66, 1}, 32 * 66},
       {"all from behind", {33, 66}, {-66, -1}, 33 * 66 - 1},
       {"every other", {33, 66}, {132, 2}, 1},
       {"a row many times", {33, 66}, {0, 1}, 4, true},
       {"a column many times", {33, 66}, {1, 0}, 4, true}},
      {{"eight dimensions", {2, 3, 1, 2, 3, 2, 2, 3}, {216, 72, 72, 36, 12, 6, 3, 1}, 0},
       {"in another order", {2, 3, 1, 2, 3, 2, 2, 3}, {1, 2, 5, 216, 72, 36, 18, 6}, 3},
       {"with gaps between all", {2, 3, 1, 2, 3, 2, 2, 3}, {10'000, 3000, 1, -1000, 300, -100, 30, 7}, 1200}},
  };
  return all;
}

// As many elements as the placings of a shape need, and some that must not be touched.
std::size_t room_for(const std::vector<placing>& alike) {
  std::size_t most = 0;
  for (const auto& each : alike) {
    auto last = each.offset;
    for (std::size_t at = 0; at < each.shape.size(); ++at) {
      const auto steps = each.shape[at] == 0 ? 0 : each.shape[at] - 1;
      if (each.strides[at] > 0) last += steps * static_cast<std::size_t>(each.strides[at]);
    }
    most = std::max(most, last);
  }
  return most + 20;
}

template <class F>
void for_each_dtype(const F& what) {
  for (std::size_t number = 0; number < dtype_count; ++number) what(static_cast<dtype>(number));
}

// Every placing that can be written, with every other of that shape.
template <class F>
void for_each_pair(const F& what) {
  for (const auto& alike : placings()) {
    for (const auto& to : alike) {
      if (to.repeats) continue;
      for (const auto& from : alike) what(to, from, room_for(alike));
    }
  }
}

placing many_times(const tensor_shape& shape) {
  tensor_strides none;
  for (std::size_t at = 0; at < shape.size(); ++at) none.push_back(0);
  return {"", shape, none, 0};
}

class CudaKernels : public testing::Test {
protected:
  void SetUp() override {
    if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
    bench_.emplace();
  }

  [[nodiscard]] const kernel_set& kernels() const { return bench_->kernels(); }
  [[nodiscard]] CUstream stream() const { return bench_->stream(); }

  mirrored array(dtype type, unsigned seed, std::size_t count) { return {*bench_, type, count, seed}; }

  std::optional<cuda_bench> bench_;
};

TEST_F(CudaKernels, FillEveryElementAndNothingElse) {
  for_each_dtype([this](dtype type) {
    for (const auto& alike : placings()) {
      for (const auto& where : alike) {
        if (where.repeats) continue;
        bench_->forget();
        const auto made = array(type, 1, room_for(alike));
        const auto element = array(type, 2, 1);
        for (const bool is_zero : {false, true}) {
          const std::span<std::byte> value = element.on_host({}).storage()->bytes();
          if (is_zero) std::ranges::fill(value, std::byte{0});
          made.on_host(where).copy_from(element.on_host(many_times(where.shape)));
          kernels().fill(stream(), made.on_device(where), value);
          ASSERT_EQ(made.differences(), 0U) << type << ' ' << where.name;
        }
      }
    }
  });
}

TEST_F(CudaKernels, CopyBetweenAnyPlacings) {
  for_each_dtype([this](dtype type) {
    for_each_pair([&](const placing& to, const placing& from, std::size_t room) {
      bench_->forget();
      const auto made = array(type, 1, room);
      const auto given = array(type, 2, room);
      made.on_host(to).copy_from(given.on_host(from));
      kernels().copy(stream(), made.on_device(to), given.on_device(from));
      ASSERT_EQ(made.differences(), 0U) << type << ", " << to.name << " from " << from.name;
    });
  });
}

TEST_F(CudaKernels, ConvertEveryDtypeToEveryOtherAsTheHostDoes) {
  for_each_dtype([this](dtype to_type) {
    for_each_dtype([&](dtype from_type) {
      for (const auto& alike : placings()) {
        const auto& to = alike.back().repeats ? alike[3] : alike.back();
        for (const auto& from : {alike.front(), alike.back()}) {
          bench_->forget();
          const auto made = array(to_type, 1, room_for(alike));
          const auto given = array(from_type, 2, room_for(alike));
          convert_into(made.on_host(to), given.on_host(from));
          kernels().convert(stream(), made.on_device(to), given.on_device(from));
          ASSERT_EQ(made.differences(), 0U) << to_type << ' ' << to.name << " from " << from_type << ' ' << from.name;
        }
      }
    });
  });
}

// What has a kernel of its own, which takes packs.
TEST_F(CudaKernels, ConvertRowsAsTheHostDoes) {
  for_each_dtype([this](dtype to_type) {
    for_each_dtype([&](dtype from_type) {
      for (const std::size_t to_offset : {0U, 4U, 5U}) {
        for (const std::size_t from_offset : {0U, 4U, 5U}) {
          bench_->forget();
          const placing to{"", {4111}, {1}, to_offset};
          const placing from{"", {4111}, {1}, from_offset};
          const auto made = array(to_type, 1, 5000);
          const auto given = array(from_type, 2, 5000);
          convert_into(made.on_host(to), given.on_host(from));
          kernels().convert(stream(), made.on_device(to), given.on_device(from));
          ASSERT_EQ(made.differences(), 0U)
              << to_type << " at " << to_offset << " from " << from_type << " at " << from_offset;
        }
      }
    });
  });
}

TEST_F(CudaKernels, AccumulateAsTheHostDoes) {
  for_each_dtype([this](dtype type) {
    for (const auto op : all_ops) {
      if (detail::visit_dtype(type, [](auto each) { return detail::is_complex<typename decltype(each)::type>; }) &&
          op >= element_op::min) {
        const auto one = array(type, 1, 1).on_device({});
        expect_refused([&] { kernels().accumulate(stream(), one, one, op); }, "complex", "no order");
        continue;
      }
      for_each_pair([&](const placing& to, const placing& from, std::size_t room) {
        bench_->forget();
        const auto made = array(type, 1, room);
        const auto given = array(type, 2, room);
        accumulate(made.on_host(to), given.on_host(from), op);
        kernels().accumulate(stream(), made.on_device(to), given.on_device(from), op);
        ASSERT_EQ(made.differences(), 0U)
            << type << " op " << static_cast<int>(op) << ", " << to.name << " from " << from.name;
      });
    }
  });
}

TEST_F(CudaKernels, ScaleAsTheHostDoes) {
  for (const auto type : fractions) {
    for (const auto& alike : placings()) {
      for (const auto& where : alike) {
        if (where.repeats) continue;
        bench_->forget();
        const auto made = array(type, 1, room_for(alike));
        scale(made.on_host(where), 1.0 / 3);
        kernels().scale(stream(), made.on_device(where), 1.0 / 3);
        ASSERT_EQ(made.differences(), 0U) << type << ' ' << where.name;
      }
    }
  }
}

TEST_F(CudaKernels, StepAlongAsTheHostDoes) {
  for (const auto type : fractions) {
    for_each_pair([&](const placing& to, const placing& from, std::size_t room) {
      bench_->forget();
      const auto made = array(type, 1, room);
      const auto given = array(type, 2, room);
      axpy(-0.1, given.on_host(from), made.on_host(to));
      kernels().axpy(stream(), -0.1, given.on_device(from), made.on_device(to));
      ASSERT_EQ(made.differences(), 0U) << type << ' ' << to.name << " along " << from.name;
    });
  }
}

// ---- reduce

std::size_t lanes_of(std::size_t count, std::size_t bytes) {
  if (count <= 512) return 1;
  const auto in_a_pack = 16 / bytes;
  const auto packs = (count + in_a_pack - 1) / in_a_pack;
  return std::min<std::size_t>(std::bit_floor(packs / 16), 65'536);
}

template <class T>
T joined_by(element_op op, T a, T b) {
  if constexpr (detail::is_complex<T>) {
    return op == element_op::sum ? a + b : detail::joined<detail::multiply>(a, b);
  } else {
    switch (op) {
      case element_op::sum: return detail::joined<detail::add>(a, b);
      case element_op::prod: return detail::joined<detail::multiply>(a, b);
      case element_op::min: return detail::joined<detail::least>(a, b);
      default: return detail::joined<detail::greatest>(a, b);
    }
  }
}

// The order that kernel_set::reduce documents. (std::vector<bool> has no elements of type bool.)
template <class T, class Wide>
Wide reduced(element_op op, const T* from, std::size_t count) {
  const auto in_a_pack = 16 / sizeof(T);
  const auto lanes = lanes_of(count, sizeof(T));
  const auto results = std::make_unique<Wide[]>(lanes);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    auto result = static_cast<Wide>(from[lane * in_a_pack]);
    for (auto pack = lane; pack * in_a_pack < count; pack += lanes) {
      for (auto at = pack * in_a_pack; at < std::min(count, (pack + 1) * in_a_pack); ++at) {
        if (at != lane * in_a_pack) result = joined_by(op, result, static_cast<Wide>(from[at]));
      }
    }
    results[lane] = result;
  }
  return lanes == 1 ? results[0] : reduced<Wide, Wide>(op, results.get(), lanes);
}

template <class T>
bool takes(element_op op) {
  return !detail::is_complex<T> || op <= element_op::prod;
}

TEST_F(CudaKernels, ReduceInTheOrderThatIsDocumented) {
  for_each_dtype([this](dtype type) {
    detail::visit_dtype(type, [&]<class T>(std::type_identity<T>) {
      using wide = std::conditional_t<detail::is_half<T>, float, T>;
      for (const std::size_t count : {1U, 2U, 17U, 512U, 513U, 5000U, 100'003U}) {
        for (const auto op : all_ops) {
          if (!takes<T>(op)) continue;
          bench_->forget();
          const placing where{"", {count}, {1}, 0};
          const mirrored given(*bench_, type, count, 1, test::numbers::tame);  // a sum that is NaN has no order
          const auto result = bench_->take(16);
          const auto scratch = bench_->take(kernel_set::reduce_scratch_bytes);
          kernels().reduce(stream(), op, given.on_device(where), result, scratch, kernel_set::reduce_scratch_bytes);
          T found;
          bench_->fetch(std::as_writable_bytes(std::span(&found, 1)), result);
          const auto* const values = reinterpret_cast<const T*>(given.on_host(where).data());
          const auto expected = static_cast<T>(reduced<T, wide>(op, values, count));
          ASSERT_TRUE(test::same_element(found, expected)) << type << ' ' << static_cast<int>(op) << " of " << count;
        }
      }
    });
  });
}

TEST_F(CudaKernels, ReduceToTheSameBitsWhateverTheStrides) {
  for_each_dtype([this](dtype type) {
    for (const auto& alike : placings()) {
      for (const auto& where : alike) {
        bench_->forget();
        const mirrored given(*bench_, type, room_for(alike), 1, test::numbers::tame);
        const auto row = array(type, 2, room_for(alike));
        const auto elements = given.on_host(where);
        if (elements.size() == 0) continue;
        const placing in_a_row{"", {elements.size()}, {1}, 0};
        row.on_host(in_a_row).copy_from(elements.contiguous().reshape({elements.size()}));
        row.send();
        const auto results = bench_->take(32);
        const auto scratch = bench_->take(kernel_set::reduce_scratch_bytes);
        const auto reduce = [&](const cuda_view& from, CUdeviceptr to) {
          kernels().reduce(stream(), element_op::sum, from, to, scratch, kernel_set::reduce_scratch_bytes);
        };
        reduce(given.on_device(where), results);
        reduce(row.on_device(in_a_row), results + 16);
        std::array<std::byte, 32> found{};
        const auto bytes = dtype_size(type);  // the rest of either place is never written
        bench_->fetch(std::span(found).first(bytes), results);
        bench_->fetch(std::span(found).subspan(16, bytes), results + 16);
        ASSERT_EQ(std::memcmp(found.data(), found.data() + 16, bytes), 0) << type << ' ' << where.name;
      }
    }
  });
}

TEST_F(CudaKernels, ReduceBoolsWhoseBytesAreNeitherZeroNorOne) {
  constexpr std::size_t count = 5000;
  const auto result = bench_->take(16);
  const auto scratch = bench_->take(kernel_set::reduce_scratch_bytes);
  const auto given = bench_->take(count);
  const auto reduced_by = [&](element_op op, std::ptrdiff_t stride) {
    const cuda_view from{.first = given, .type = dtype::boolean, .shape = {count / 2}, .strides = {stride}};
    kernels().reduce(stream(), op, from, result, scratch, kernel_set::reduce_scratch_bytes);
    std::uint8_t found = 7;
    bench_->fetch(std::as_writable_bytes(std::span(&found, 1)), result);
    return found;
  };
  for (const std::ptrdiff_t stride : {1, 2}) {
    std::vector<std::uint8_t> bytes(count, 2);
    bench_->send(given, std::as_bytes(std::span(bytes)));
    for (const auto op : all_ops) EXPECT_EQ(reduced_by(op, stride), 1) << static_cast<int>(op);
    bytes[8] = 0;
    bench_->send(given, std::as_bytes(std::span(bytes)));
    for (const auto op : all_ops) {
      const bool is_any = op == element_op::sum || op == element_op::max;
      EXPECT_EQ(reduced_by(op, stride), is_any ? 1 : 0) << static_cast<int>(op);
    }
  }
}

TEST_F(CudaKernels, OfNoElementsTheSumIsZeroAndTheProductOne) {
  const auto scratch = bench_->take(kernel_set::reduce_scratch_bytes);
  const auto result = bench_->take(16);
  const cuda_view none{.first = result, .type = dtype::f32, .shape = {0}, .strides = {1}};
  float found = 7;
  for (const auto op : {element_op::sum, element_op::prod}) {
    kernels().reduce(stream(), op, none, result, scratch, kernel_set::reduce_scratch_bytes);
    bench_->fetch(std::as_writable_bytes(std::span(&found, 1)), result);
    EXPECT_EQ(found, op == element_op::sum ? 0 : 1);
  }
  expect_refused(
      [&] { kernels().reduce(stream(), element_op::min, none, result, scratch, kernel_set::reduce_scratch_bytes); },
      "no min of no elements");
  expect_refused([&] { kernels().reduce(stream(), element_op::sum, none, result, scratch, 100); },
                 "100 bytes of scratch");
}

// ---- what is refused, and what is not even begun

TEST_F(CudaKernels, WhatTheHostRefusesTheyRefuseInTheSameWords) {
  const auto first = bench_->take(4096);
  const cuda_view row{.first = first, .type = dtype::f32, .shape = {8}, .strides = {1}};
  auto longer = row;
  longer.shape = {9};
  auto whole = row;
  whole.type = dtype::i32;
  expect_refused([&] { kernels().copy(stream(), row, longer); }, "copy of f32 (9,) into f32 (8,)");
  expect_refused([&] { kernels().accumulate(stream(), row, whole, element_op::sum); }, "of i32 (8,) into f32 (8,)");
  expect_refused([&] { kernels().convert(stream(), row, longer); }, "(9,)", "(8,)");
  expect_refused([&] { kernels().scale(stream(), whole, 2); }, "not i32", "convert()");
  expect_refused([&] { kernels().axpy(stream(), 2, whole, whole); }, "not i32");
  expect_refused([&] { kernels().fill(stream(), row, std::array<std::byte, 3>{}); }, "3 bytes", "must have 4");
}

TEST_F(CudaKernels, WhereElementsAreRepeatedNothingIsJoined) {
  const cuda_view row{.first = bench_->take(4096), .type = dtype::f32, .shape = {2, 8}, .strides = {8, 1}};
  auto repeated = row;
  repeated.strides = {1, 0};
  expect_refused([&] { kernels().accumulate(stream(), repeated, row, element_op::sum); }, "accumulate", "dimension 1");
  expect_refused([&] { kernels().scale(stream(), repeated, 2); }, "scale", "(2, 8)", "dimension 1");
  expect_refused([&] { kernels().axpy(stream(), 2, row, repeated); }, "axpy", "dimension 1");
  expect_refused([&] { kernels().divide(stream(), repeated, 2); }, "divide", "dimension 1");
}

TEST_F(CudaKernels, EmptyViewsLaunchNothing) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the driver is a real one, which cannot be told to fail";
  const cuda_view none{.first = bench_->take(16), .type = dtype::f32, .shape = {4, 0}, .strides = {4, 1}};
  auto others = none;
  others.type = dtype::f16;
  for (const auto* const function : {"cuLaunchKernel", "cuMemcpyAsync", "cuMemsetD8Async"}) {
    fake.fail(function, CUDA_ERROR_INVALID_VALUE);
  }
  const float value = 1;
  kernels().fill(stream(), none, std::as_bytes(std::span(&value, 1)));
  kernels().copy(stream(), none, none);
  kernels().convert(stream(), none, others);
  kernels().accumulate(stream(), none, none, element_op::sum);
  kernels().scale(stream(), none, 2);
  kernels().axpy(stream(), 2, none, none);
  expect_refused([&] { kernels().scale(stream(), {none.first, dtype::f32, {1}, {1}}, 2); }, "cuLaunchKernel");
  fake.no_failures();
}

TEST_F(CudaKernels, WithoutCodeForTheDeviceTheySayWhatToBuild) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the driver is a real one, which cannot be told to fail";
  fake.fail("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  test::expect_error(errc::no_device, [&] { const kernel_set none(bench_->driver()); }, "MUSTER_CUDA_ARCHITECTURES");
}

// ---- more than 2^32 elements

TEST(CudaKernelsHuge, ReachTheLastOfMoreElementsThan32BitsCount) {
  if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
  constexpr std::size_t count = (std::size_t{1} << 32U) + 70'001;
  constexpr std::size_t bytes = (count / (std::size_t{2} << 20U) + 2) * (std::size_t{2} << 20U);
  if (!test::runs_alone({text("FAKE_CUDA_MEMORY=", 2 * bytes)})) return;
  cuda_bench bench(bytes);
  const auto first = bench.take(bytes - (std::size_t{1} << 20U));
  const cuda_view all{.first = first, .type = dtype::u8, .shape = {count}, .strides = {1}};
  const auto seven = std::byte{7};
  bench.kernels().fill(bench.stream(), all, {&seven, 1});
  bench.kernels().accumulate(bench.stream(), all, all, element_op::sum);
  std::array<std::byte, 70'002> last{};
  bench.fetch(last, first + count - last.size() + 1);
  EXPECT_EQ(last[last.size() - 2], std::byte{14});
  EXPECT_EQ(last[0], std::byte{14});
}

TEST(CudaKernelsHuge, ReduceViewsOfMoreElementsThan32BitsCount) {
  if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
  cuda_bench bench;
  constexpr std::size_t side = 65'537;
  const auto first = bench.take(side);
  const auto result = bench.take(16);
  const auto scratch = bench.take(kernel_set::reduce_scratch_bytes);
  const auto one = std::byte{1};
  bench.kernels().fill(bench.stream(), {first, dtype::u8, {side}, {1}}, {&one, 1});
  bench.kernels().reduce(bench.stream(), element_op::sum, {first, dtype::u8, {side, side}, {0, 1}}, result, scratch,
                         kernel_set::reduce_scratch_bytes);
  std::uint8_t found = 0;
  bench.fetch(std::as_writable_bytes(std::span(&found, 1)), result);
  EXPECT_EQ(found, static_cast<std::uint8_t>(side * side));
}

}  // namespace
}  // namespace muster::cuda_kernel_test
