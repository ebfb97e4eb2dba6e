// SPDX-License-Identifier: BSL-1.0
// Numbers that are rounded have the same bits on every rank and in every run: those of the ranks' numbers joined in the
// order of the ranks, whoever the ranks are, and whichever way the call takes.
#include <array>
#include <cstring>
#include <functional>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "combine_reference.hpp"
#include "conformance.hpp"
#include "group_support.hpp"

namespace muster::same_bits_test {
namespace {

using test::column;
using test::rank_kind;
using test::run_group;

constexpr std::array ops = {reduction_op::sum, reduction_op::avg, reduction_op::prod};
// In the slots, and where they lie.
constexpr std::array<std::size_t, 2> counts = {100, 2'503};

std::string_view bits_of(const tensor& what) { return {reinterpret_cast<const char*>(what.data()), what.nbytes()}; }
template <class T>
std::string_view bits_of(const column<T>& values, std::size_t first, std::size_t last) {
  return {reinterpret_cast<const char*>(values.data() + first), (last - first) * sizeof(T)};
}

/// What all ranks give, and what is to come of it.
template <class T>
struct task {
  task(reduction_op with, std::size_t ranks, std::size_t size)
      : op(with), count(size), values(test::random_values<T>(ranks, size)), wanted(test::reference<T>(op, values)) {}

  [[nodiscard]] tensor of(std::size_t rank) const { return test::tensor_of(values[rank], {count}); }

  reduction_op op;
  std::size_t count;
  std::vector<column<T>> values;
  column<T> wanted;
};

template <class T>
void expect_those_of_the_order(group& in, const task<T>& what) {
  const auto self = in.rank();
  const auto whole = bits_of<T>(what.wanted, 0, what.count);
  const auto everywhere = what.of(self);
  in.all_reduce(everywhere, what.op);
  EXPECT_EQ(bits_of(everywhere), whole) << "all_reduce";

  const auto row = what.of(self);
  const std::array parts = {row.slice(0, 7), row.slice(7, what.count)};
  in.all_reduce(parts, what.op);
  EXPECT_EQ(bits_of(row), whole) << "all_reduce of several";

  const auto at_root = what.of(self);
  in.reduce(at_root, in.size() - 1, what.op);
  EXPECT_EQ(bits_of(at_root), self + 1 == in.size() ? whole : bits_of<T>(what.values[self], 0, what.count)) << "reduce";

  const auto first = what.count * self / in.size();
  const auto last = what.count * (self + 1) / in.size();
  const auto part = tensor::zeros<T>({last - first});
  in.reduce_scatter(what.of(self), part, what.op);
  EXPECT_EQ(bits_of(part), bits_of<T>(what.wanted, first, last)) << "reduce_scatter";
}

template <class T>
void expect_same_bits(group& in, group& another) {
  for (const auto count : counts) {
    for (const auto op : ops) {
      SCOPED_TRACE(testing::Message() << op << " of " << count << ' ' << dtype_of<T> << " in rank " << in.rank());
      const task<T> what(op, in.size(), count);
      expect_those_of_the_order(in, what);
      expect_those_of_the_order(another, what);
      expect_those_of_the_order(in, what);
    }
  }
}

class SameBits : public testing::TestWithParam<std::tuple<rank_kind, std::size_t>> {};

TEST_P(SameBits, ReductionsGiveThoseOfTheOrderOfRanksAlsoAgainAndInAnotherGroup) {
  run_group(std::get<0>(GetParam()), std::get<1>(GetParam()), [](group& group) {
    auto another = group.split(0);
    ASSERT_TRUE(another.has_value());
    expect_same_bits<f16>(group, *another);
    expect_same_bits<bf16>(group, *another);
    expect_same_bits<float>(group, *another);
    expect_same_bits<double>(group, *another);
    expect_same_bits<std::complex<float>>(group, *another);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SameBits,
                         testing::Combine(testing::ValuesIn(test::rank_kinds()), testing::Values(2, 3, 5, 8)),
                         [](const auto& given) {
                           return test::name_of(std::get<0>(given.param)) + std::to_string(std::get<1>(given.param));
                         });

#ifndef __SANITIZE_THREAD__
// Of so many each reads from the others only.
INSTANTIATE_TEST_SUITE_P(ManyRanks, SameBits,
                         testing::Combine(testing::Values(rank_kind::threads), testing::Values(17)),
                         [](const auto&) { return "Threads17"; });
#endif

// ---- one run and another

constexpr std::size_t ranks = 3;
// Of each rank.
using digests = std::array<std::size_t, ranks>;

template <class T>
std::size_t digest_of(group& in, std::size_t before) {
  for (const auto count : counts) {
    for (const auto op : ops) {
      const auto own = test::tensor_of(test::random_values<T>(ranks, count)[in.rank()], {count});
      in.all_reduce(own, op);
      before = 31 * before + std::hash<std::string_view>()(bits_of(own));
    }
  }
  return before;
}

digests run_once(rank_kind kind) {
  const test::shared<digests> found;
  run_group(kind, ranks, [&](group& in) {
    (*found)[in.rank()] = digest_of<f16>(in, digest_of<bf16>(in, digest_of<float>(in, digest_of<double>(in, 1))));
  });
  return *found;
}

TEST(SameBitsOfRuns, OtherProcessesAndThreadsGiveThemToo) {
  const auto first = run_once(rank_kind::threads);
  EXPECT_EQ(first, (digests{first[0], first[0], first[0]}));
  for (int run = 0; run < 3; ++run) {
    for (const auto kind : test::rank_kinds()) EXPECT_EQ(run_once(kind), first) << kind << ", run " << run;
  }
}

}  // namespace
}  // namespace muster::same_bits_test
