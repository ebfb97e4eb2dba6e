// SPDX-License-Identifier: BSL-1.0
// Every operation, type and size over tensors on devices that go by NCCL, against what plain loops give.
#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/detail/convert.hpp>

#include "conformance.hpp"
#include "group_operations.hpp"
#include "nccl_support.hpp"
#include "temporary_directory.hpp"

namespace muster::nccl_conformance_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const auto cpu = device::cpu();

class NcclRecipe : public test::nccl_test {};

// take_device()'s: else ranks on one device would not meet at all, or by way of what only one host has.
TEST_F(NcclRecipe, RanksMeetOverSocketsAlsoWhereSeveralShareAGpu) {
  if (is_fake()) GTEST_SKIP() << "NCCL is the one that stands in, which writes no log";
  const test::temporary_directory logs;
  ::setenv("NCCL_DEBUG_FILE", (logs.path() / "of-%p").c_str(), 1);
  test::run_on_devices(2, [](group& mine, device there) {
    const auto ones = tensor::ones<float>({100}, there);
    mine.all_reduce(ones);
    EXPECT_TRUE(mine.way_of_devices().is_direct) << mine.way_of_devices().how;
  });
  ::unsetenv("NCCL_DEBUG_FILE");
  std::size_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator(logs.path())) {
    std::ostringstream log;
    log << std::ifstream(each.path()).rdbuf();
    EXPECT_THAT(log.str(), AllOf(HasSubstr("via NET/Socket"), Not(HasSubstr("Duplicate GPU")))) << each.path();
    ++count;
  }
  EXPECT_EQ(count, 2U) << "each rank writes one";
}

class NcclConformance : public test::nccl_test, public testing::WithParamInterface<std::tuple<std::size_t, bool>> {
protected:
  static bool is_ordered() { return std::get<1>(GetParam()); }
  static void run(const test::device_body& body) {
    const auto checked = [&](group& mine, device there) {
      body(mine, there);
      EXPECT_TRUE(mine.way_of_devices().is_direct) << mine.way_of_devices().how;
      EXPECT_THAT(mine.way_of_devices().how, HasSubstr("directly, by NCCL 2."));
    };
    test::run_on_devices(std::get<0>(GetParam()), checked, {.is_ordered_on_devices = is_ordered()});
  }
};

TEST_P(NcclConformance, AllTypesOfShortTensors) {
  run([](group& group, device there) {
    for (const auto count : std::vector<std::size_t>{0, 1, 7}) test::check_all_types(group, count, there);
  });
}

TEST_P(NcclConformance, LongTensors) {
  run([](group& group, device there) {
    constexpr std::size_t count = 100'003;
    test::check_reductions<float>(group, count, there);
    test::check_reductions<std::int16_t>(group, count, there);
    test::check_rows<std::int32_t>(group, 10'003, there);
  });
}

TEST_P(NcclConformance, ResultsThatAreMadeLieOnTheDevice) {
  run([](group& group, device there) {
    const auto own = tensor::ones<float>({2, 3}, there);
    EXPECT_EQ(group.all_gather(own).device(), there);
    const auto gathered = group.gather(own, 0);
    if (group.rank() == 0) {
      EXPECT_EQ(gathered.device(), there);
    }
    EXPECT_EQ(group.all_to_all(tensor::ones<float>({group.size()}, there), std::vector<std::size_t>(group.size(), 1))
                  .device(),
              there);
  });
}

TEST_P(NcclConformance, StridedTensorsAndSingleNumbers) {
  run([](group& group, device there) {
    for (const auto rows : std::vector<std::size_t>{3, 3000}) {
      const auto wide = tensor::zeros<float>({rows, 4}, there);
      const auto column = wide.slice(1, 2, 1);
      column.fill(static_cast<float>(group.rank() + 1));
      group.all_reduce(column);
      group.broadcast(column, 0);
      const auto sum = static_cast<float>(group.size() * (group.size() + 1) / 2);
      const auto here = wide.to(cpu);
      EXPECT_EQ(here.at<float>(rows - 1, 1), sum);
      EXPECT_EQ(here.at<float>(rows - 1, 0), 0);
      EXPECT_EQ(here.at<float>(rows - 1, 2), 0);
      const auto all = group.all_gather(column).to(cpu);
      EXPECT_EQ(all.at<float>(group.size() * rows - 1, 0), sum);
    }
    const auto number = tensor::full<double>({}, static_cast<double>(group.rank()), there);
    EXPECT_EQ(group.all_gather(number).shape(), tensor_shape({group.size()}));
    group.all_reduce(number, reduction_op::max);
    EXPECT_EQ(number.to(cpu).item<double>(), static_cast<double>(group.size() - 1));
  });
}

TEST_P(NcclConformance, OwnRowsOfTheResultAreGatheredInPlace) {
  run([](group& group, device there) {
    const auto all = tensor::zeros<float>({group.size(), 1000}, there);
    const auto own = all.slice(group.rank(), group.rank() + 1);
    own.fill(static_cast<float>(group.rank() + 1));
    group.all_gather(own, all);
    const auto here = all.to(cpu);
    for (std::size_t rank = 0; rank < group.size(); ++rank) {
      EXPECT_EQ(here.at<float>(rank, 999), static_cast<float>(rank + 1));
    }
  });
}

std::string bits_of(const tensor& what) {
  const auto here = what.to(cpu).contiguous();
  return {reinterpret_cast<const char*>(here.data()), here.nbytes()};
}

// What the transport gives is the same on all ranks; in the order of ranks, it is what the host gives.
TEST_P(NcclConformance, RoundedNumbersAreTheSameBitsEverywhere) {
  run([](group& group, device there) {
    auto own = tensor::empty<float>({1000});
    for (std::size_t index = 0; index < own.size(); ++index) {
      own.data<float>()[index] = 1.0F + 1.0F / static_cast<float>(index + 3 * group.rank() + 1);
    }
    for (const auto type : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64}) {
      const auto mine = convert(own, type);
      for (const auto op : {reduction_op::sum, reduction_op::avg, reduction_op::prod}) {
        const auto by_device = mine.to(there);
        group.all_reduce(by_device, op);
        const auto by_host = mine.clone();
        group.all_reduce(by_host, op);
        if (is_ordered()) {
          EXPECT_EQ(bits_of(by_device), bits_of(by_host)) << type << ' ' << op;
        }
        const auto all = group.all_gather(by_device.reshape({1, own.size()})).to(cpu);
        for (std::size_t rank = 0; rank < group.size(); ++rank) {
          EXPECT_EQ(bits_of(all.row(rank)), bits_of(by_device)) << type << ' ' << op << ", rank " << rank;
        }
      }
    }
  });
}

TEST_P(NcclConformance, ManyShortOnesInOneCall) {
  run([](group& group, device there) {
    std::vector<tensor> all;
    for (std::size_t index = 0; index < 50; ++index) {
      all.push_back(tensor::full<float>({index % 7, 2}, static_cast<float>(index), there));
    }
    group.all_reduce(all);
    for (std::size_t index = 0; index < all.size(); ++index) {
      const auto here = all[index].to(cpu);
      for (const auto value : here.to_vector<float>()) EXPECT_EQ(value, static_cast<float>(index * group.size()));
    }
  });
}

TEST_P(NcclConformance, WhatOnlyTheHostCanDoIsDoneThere) {
  run([](group& group, device there) {
    const auto digits =
        reduction::custom<std::int64_t>("digits", [](std::int64_t a, std::int64_t b) { return 10 * a + b; });
    const auto own = tensor::full<std::int64_t>({5000}, static_cast<std::int64_t>(group.rank() + 1), there);
    group.all_reduce(own, digits);
    std::int64_t wanted = 1;
    for (std::size_t rank = 1; rank < group.size(); ++rank) wanted = 10 * wanted + static_cast<std::int64_t>(rank + 1);
    EXPECT_EQ(own.to(cpu).at<std::int64_t>(4999), wanted);
    group.all_reduce(tensor::ones<float>({1}, there));
  });
}

TEST_P(NcclConformance, ReductionsWithoutMeaningAreRefusedByAllRanks) {
  run([](group& group, device there) {
    test::check_refusals_of<std::int8_t, bool, f16, float, std::complex<float>>(group, there);
    test::check_refusals_of<std::uint16_t, double, std::complex<double>>(group, there);
  });
}

TEST_P(NcclConformance, CallsThatDoNotFitTogetherAreRefusedByAllRanksAndTheGroupGoesOn) {
  run([](group& group, device there) {
    if (group.size() > 1) {
      const auto room = tensor::zeros<float>({1}, there);
      EXPECT_THROW(group.all_gather(tensor::ones<float>({1}, there), room), error);
      const auto different = tensor::ones<float>({group.rank() + 1}, there);
      EXPECT_THROW(group.all_reduce(different), error);
      const std::array list = {tensor::ones<float>({2, group.rank() + 1}, there),
                               tensor::ones<float>({2, group.size() - group.rank()}, there)};
      EXPECT_THAT(test::text_thrown_by<error>([&] { group.all_reduce(list); }),
                  HasSubstr("tensor 0 is (2, 1) on rank 0, (2, 2) on rank 1"));
      const std::array mixed = {room, group.rank() == 1 ? tensor::ones<double>({1}, there) : room};
      EXPECT_THAT(test::text_thrown_by<error>([&] { group.all_reduce(mixed); }), HasSubstr("is f32 and number 1"));
      EXPECT_TRUE(group.is_whole());
    }
    test::run_all_reduce(group, {.count = 10, .where = there});
  });
}

TEST_P(NcclConformance, AsynchronousCallsAreDoneInTheirOrderBesideComputing) {
  run([](group& group, device there) {
    const auto size = static_cast<float>(group.size());
    std::vector<tensor> tensors;
    std::vector<work> works;
    for (std::size_t each = 0; each < 20; ++each) {
      tensors.push_back(tensor::full<float>({each % 2 == 0 ? std::size_t{3} : std::size_t{5000}}, 1, there));
      works.push_back(group.all_reduce_async(tensors.back()));
      static_cast<void>(tensor::zeros<float>({1000}, there));
    }
    const auto all = group.all_gather_async(tensor::full<float>({2}, static_cast<float>(group.rank()), there));
    group.barrier();
    for (std::size_t each = 0; each < works.size(); ++each) {
      EXPECT_TRUE(works[each].test());
      EXPECT_EQ(tensors[each].to(cpu).at<float>(2), size);
    }
    EXPECT_EQ(all.result().to(cpu).at<float>(2 * group.size() - 1), size - 1);
  });
}

TEST_P(NcclConformance, GroupsOfGroupsJoinForThemselves) {
  run([](group& group, device there) {
    test::run_all_reduce(group, {.count = 100, .where = there});
    for (std::size_t round = 0; round < 3; ++round) {
      test::run_split(group, {.count = 3000, .round = round, .where = there});
      test::run_subset(group, {.count = 3000, .round = round, .where = there});
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclConformance, testing::Combine(testing::Values(1, 2, 3, 4), testing::Bool()),
                         [](const auto& given) {
                           return std::to_string(std::get<0>(given.param)) +
                                  (std::get<1>(given.param) ? "InOrder" : "AsTheyCome");
                         });

}  // namespace
}  // namespace muster::nccl_conformance_test
