// SPDX-License-Identifier: BSL-1.0
// Tensors in pools, where nobody but the tensor knows what one is.
#include <csignal>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>

#include "processes.hpp"

namespace muster::tensor_test {
namespace {

double sum(const tensor& of) {
  double total = 0;
  for (const double each : of.contiguous().span<double>()) total += each;
  return total;
}

class PoolTensor : public testing::Test {
protected:
  pool pool_{{.workers = 2}};
};

TEST_F(PoolTensor, AResultOutlivesItsWorkerAndItsPool) {
  tensor made;
  {
    pool own({.workers = 1});
    made = own.apply([](std::size_t count) { return tensor::arange<double>(static_cast<double>(count)); },
                     std::size_t{100'000});
    ::kill(own.workers().front().pid, SIGKILL);
  }
  EXPECT_EQ(sum(made), 4'999'950'000);
}

TEST(IsolatedPoolTensor, AResultOutlivesItsPoolAndThatPoolsMemory) {
  tensor made;
  {
    pool own({.workers = 1, .arena_bytes = std::size_t{64} << 20U, .isolated = true});
    made = own.apply([] { return tensor::arange<double>(1000); });
    EXPECT_EQ(own.apply(sum, made), 499'500);  // it is of that pool's memory
  }
  EXPECT_EQ(sum(made), 499'500);
}

TEST(IsolatedPoolTensor, OneOfTheProgramsMemoryIsRefusedWithTheReason) {
  pool own({.workers = 1, .arena_bytes = std::size_t{64} << 20U, .isolated = true});
  try {
    static_cast<void>(own.apply(sum, tensor::arange<double>(1000)));
    FAIL();
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), testing::AllOf(testing::HasSubstr("another domain"), testing::HasSubstr("7.8 KiB")));
  }
}

TEST(IsolatedPoolTensor, MemoryIsPrefaultedAndMadeOfHugePagesOnRequest) {
  pool own({.workers = 1,
            .arena_bytes = std::size_t{64} << 20U,
            .prefault_bytes = std::size_t{8} << 20U,
            .huge_pages = huge_pages::where_possible,
            .isolated = true});
  const auto made = own.apply([] { return tensor::arange<double>(100'000); });
  EXPECT_EQ(sum(made), 4'999'950'000);
  EXPECT_THROW(pool({.workers = 1,
                     .arena_bytes = std::size_t{1} << 20U,
                     .prefault_bytes = std::size_t{2} << 20U,
                     .isolated = true}),
               error);
}

TEST_F(PoolTensor, TheSameOneComesBackAsItself) {
  const auto numbers = tensor::arange<double>(10);
  const auto back = pool_.apply([](tensor given) { return given; }, numbers);
  EXPECT_EQ(back.data(), numbers.data());
}

TEST_F(PoolTensor, PrivateAndEmptyOnesGoAsCopies) {
  const auto local = tensor::arange<double>(5).clone(memory::local);
  EXPECT_EQ(pool_.apply(sum, local), 10);
  EXPECT_EQ(pool_.apply([](const tensor& given) { return given.shape().size(); }, tensor::zeros<float>({0, 3})), 2U);
}

TEST_F(PoolTensor, AHugeOneCostsNoCopy) {
  const auto huge = tensor::empty<std::uint8_t>({std::size_t{256} << 20U});  // touched here and there only
  *huge.data<std::uint8_t>() = 1;
  const auto last = huge.size() - 1;
  huge.data<std::uint8_t>()[last] = 2;
  const auto ends = [](const tensor& given) {
    return given.at<std::uint8_t>(0) + given.at<std::uint8_t>(given.size() - 1);
  };
  EXPECT_EQ(pool_.apply(ends, huge), 3);
}

// The numbers of the predecessor's test of shared tensors.
TEST_F(PoolTensor, AreChangedByTasksOneAfterTheOther) {
  const auto shared = tensor::zeros<float>({10});
  for (int round = 0; round < 10; ++round) {
    pool_.map(
        [](std::tuple<tensor, int> what) {
          std::get<0>(what)
              .row(static_cast<std::size_t>(std::get<1>(what)))
              .fill(static_cast<float>(std::get<1>(what)) + 1.0F);
        },
        std::vector<std::tuple<tensor, int>>{{shared, round}});
  }
  EXPECT_EQ(shared.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST_F(PoolTensor, ThousandsLeaveNothingBehind) {
  const auto domain = muster::domain::of_program();
  for (int round = 0; round < 2000; ++round) {
    const auto made = pool_.apply([](const tensor& given) { return given.clone(); }, tensor::full<double>({64}, 1.0));
    ASSERT_EQ(sum(made), 64);
  }
  EXPECT_TRUE(test::eventually([&] {
    const auto found = domain->blocks().read_statistics();
    return found.holds == 0 && found.live_blocks == 0;
  }));
}

}  // namespace
}  // namespace muster::tensor_test
