// SPDX-License-Identifier: BSL-1.0
// Every operation, type, number of ranks and size, against what plain loops give; in threads and in processes.
#include <algorithm>
#include <array>
#include <complex>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "conformance.hpp"
#include "group_support.hpp"

namespace muster::conformance_test {
namespace {

using test::rank_kind;
using test::run_group;

using test::check_all_types;
using test::check_refusals_of;
using test::check_rows;
using test::contribution;
using test::expected;
using test::holds;

class Conformance : public testing::TestWithParam<std::tuple<rank_kind, std::size_t>> {
protected:
  static void run(const test::rank_body& body, const group_options& options = {}) {
    run_group(std::get<0>(GetParam()), std::get<1>(GetParam()), body, options);
  }
};

TEST_P(Conformance, AllTypesOfShortTensors) {
  run([](group& group) {
    for (const auto count : std::vector<std::size_t>{0, 1, 7}) {
      check_all_types(group, count);
    }
  });
}

TEST_P(Conformance, AllTypesInPlace) {
  const auto body = [](group& group) { check_all_types(group, 4096); };
  run(body, {.inline_bytes = 64});
}

// The whole product of operations, types, ranks and sizes takes minutes: a stage of scripts/verify. Of very many ranks
// less: all that they send one another, and what it should be, is in one machine's memory.
TEST_P(Conformance, AllTypesOfLongTensors) {
  run([](group& group) {
    for (const auto count : std::vector<std::size_t>{4096, group.size() > 8 ? 100'003U : 1'000'003U}) {
      check_all_types(group, count);
    }
  });
}

TEST_P(Conformance, LongTensors) {
  run([](group& group) {
    constexpr std::size_t count = 1'000'003;
    const auto own = contribution<float>(group.rank(), count, reduction_op::sum, device::cpu());
    group.all_reduce(own);
    EXPECT_TRUE(holds(own, expected<float>(group.size(), count, reduction_op::sum)));
    check_rows<std::int32_t>(group, 100'003, device::cpu());
  });
}

TEST_P(Conformance, StridedTensorsAndSingleNumbers) {
  run([](group& group) {
    for (const auto rows : std::vector<std::size_t>{3, 3000}) {
      const auto wide = tensor::zeros<float>({rows, 4});
      const auto column = wide.slice(1, 2, 1);
      column.fill(static_cast<float>(group.rank() + 1));
      group.all_reduce(column);
      const auto sum = static_cast<float>(group.size() * (group.size() + 1) / 2);
      EXPECT_EQ(wide.at<float>(rows - 1, 1), sum);
      EXPECT_EQ(wide.at<float>(rows - 1, 0), 0);
      EXPECT_EQ(wide.at<float>(rows - 1, 2), 0);
    }
    const auto number = tensor::full<double>({}, static_cast<double>(group.rank()));
    const auto all = group.all_gather(number);
    EXPECT_EQ(all.shape(), tensor_shape({group.size()}));
    EXPECT_EQ(all.at<double>(group.size() - 1), static_cast<double>(group.size() - 1));
    group.all_reduce(number, reduction_op::max);
    EXPECT_EQ(number.item<double>(), static_cast<double>(group.size() - 1));
  });
}

// Averages of bools, the least of complex numbers, bits of floats.
TEST_P(Conformance, ReductionsWithoutMeaningAreRefusedByAllRanks) {
  run([](group& group) {
    check_refusals_of<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(group);
    check_refusals_of<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(group);
    check_refusals_of<bool, f16, bf16, float, double, std::complex<float>, std::complex<double>>(group);
  });
}

TEST_P(Conformance, ManyShortOnesInOneCall) {
  run([](group& group) {
    std::vector<tensor> all;
    for (std::size_t index = 0; index < 100; ++index) {
      all.push_back(tensor::full<float>({index % 7, 2}, static_cast<float>(index)));
    }
    group.all_reduce(all);
    for (std::size_t index = 0; index < 100; ++index) {
      for (const auto value : all[index].to_vector<float>()) {
        EXPECT_EQ(value, static_cast<float>(index * group.size()));
      }
    }
  });
}

TEST_P(Conformance, SeveralStridedLongOrNone) {
  run([](group& group) {
    group.all_reduce(std::span<const tensor>());
    const auto wide = tensor::zeros<float>({3000, 4});
    const std::array list = {wide.slice(1, 2, 1), tensor::zeros<float>({0, 3}), tensor::zeros<float>({})};
    for (const auto& each : list) each.fill(static_cast<float>(group.rank() + 1));
    group.all_reduce(list, reduction_op::max);
    const auto most = static_cast<float>(group.size());
    EXPECT_EQ(wide.at<float>(2999, 1), most);
    EXPECT_EQ(wide.at<float>(2999, 0), 0);
    EXPECT_EQ(wide.at<float>(2999, 2), 0);
    EXPECT_EQ(list[2].item<float>(), most);
  });
}

TEST_P(Conformance, AFunctionOfTheProgramsOwnInTheOrderOfRanks) {
  run([](group& group) {
    const auto digits =
        reduction::custom<std::int64_t>("digits", [](std::int64_t a, std::int64_t b) { return 10 * a + b; });
    for (const auto count : std::vector<std::size_t>{2, 5000}) {
      const auto own = tensor::full<std::int64_t>({count}, static_cast<std::int64_t>(group.rank() + 1));
      group.all_reduce(own, digits);
      std::int64_t wanted = 1;
      for (std::size_t rank = 1; rank < group.size(); ++rank)
        wanted = 10 * wanted + static_cast<std::int64_t>(rank + 1);
      EXPECT_EQ(own.at<std::int64_t>(count - 1), wanted);
    }
  });
}

TEST_P(Conformance, ObjectsGoAsTheyAre) {
  run([](group& group) {
    const auto own = std::string(10 * group.rank() + 1, 'x') + std::to_string(group.rank());
    std::string word = group.rank() == 0 ? std::string(100'000, 'y') : "";
    group.broadcast_object(word, 0);
    EXPECT_EQ(word, std::string(100'000, 'y'));
    const auto all = group.all_gather_object(own);
    ASSERT_EQ(all.size(), group.size());
    EXPECT_EQ(all[group.rank()], own);
    EXPECT_EQ(all.back(), std::string(10 * group.size() - 9, 'x') + std::to_string(group.size() - 1));
    const auto gathered = group.gather_object(own, group.size() - 1);
    EXPECT_EQ(gathered, group.rank() + 1 == group.size() ? all : std::vector<std::string>());
    EXPECT_EQ(group.scatter_object(group.rank() == 0 ? all : std::vector<std::string>(), 0), own);
  });
}

TEST_P(Conformance, AsynchronousCallsAreDoneInTheirOrder) {
  run([](group& group) {
    const auto size = static_cast<float>(group.size());
    std::vector<tensor> tensors;
    std::vector<work> works;
    for (std::size_t each = 0; each < 20; ++each) {
      tensors.push_back(tensor::full<float>({each % 2 == 0 ? std::size_t{3} : std::size_t{5000}}, 1));
      works.push_back(group.all_reduce_async(tensors.back()));
    }
    const auto all = group.all_gather_async(tensor::full<float>({2}, static_cast<float>(group.rank())));
    group.barrier();
    for (std::size_t each = 0; each < works.size(); ++each) {
      EXPECT_TRUE(works[each].test());
      EXPECT_EQ(works[each].sequence(), each + 1);
      EXPECT_EQ(tensors[each].at<float>(2), size);
    }
    EXPECT_EQ(all.result().at<float>(2 * group.size() - 1), size - 1);
    EXPECT_EQ(all.exception(), nullptr);
  });
}

// None of the tensors is its.
TEST(ConformanceInOneProcess, OfAGroupInAnotherDomainThanThePrograms) {
  const auto own = std::make_shared<domain>(domain_options{.arena_bytes = std::size_t{64} << 20U});
  const group_ticket ticket(2, {.inline_bytes = 64}, own);
  const auto run_rank = [&](std::size_t rank) {
    group mine(ticket, rank);
    for (const auto count : std::vector<std::size_t>{0, 7, 5000}) test::check_all<float>(mine, count, device::cpu());
  };
  std::thread other([&] { run_rank(1); });
  run_rank(0);
  other.join();
}

#ifndef __SANITIZE_THREAD__  // it would take minutes, and shows nothing that fewer threads do not
// Of so many each reads from the others only.
INSTANTIATE_TEST_SUITE_P(ManyRanks, Conformance,
                         testing::Combine(testing::Values(rank_kind::threads), testing::Values(17)),
                         [](const auto&) { return "Threads17"; });
#endif

INSTANTIATE_TEST_SUITE_P(Ranks, Conformance,
                         testing::Combine(testing::ValuesIn(test::rank_kinds()), testing::Values(1, 2, 3, 4, 5, 8)),
                         [](const auto& given) {
                           return test::name_of(std::get<0>(given.param)) + std::to_string(std::get<1>(given.param));
                         });

}  // namespace
}  // namespace muster::conformance_test
