// SPDX-License-Identifier: BSL-1.0
// Ranks whose floating-point state the program has set: reductions have the same bits, whoever computes, and the state
// stays. A function of the program's own runs in the state of the rank that made the call.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <muster/device/detail/convert.hpp>

#include "float_states.hpp"
#include "group_support.hpp"

namespace muster::group_floats_test {
namespace {

using test::floats;
using test::floats_scope;
using test::rank_kind;
using test::run_group;

constexpr std::size_t ranks = 3;

// In the slots, and where they lie.
constexpr std::size_t counts[] = {12, 2'503};

// Sums of them are rounded, below the least normal number, too large, or not defined.
tensor numbers(dtype type, std::size_t count, std::size_t rank) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr double given[] = {1.0 / 3, 0.1, 3e-310, 4e-310, 3e-39, 4e-39, 6e-8, 1.0, 65504, 3e38, 1e308, infinite};
  const auto all = tensor::empty<double>({count}, memory::local);
  for (std::size_t index = 0; index < count; ++index) {
    const auto number = given[(index + rank * (index % 3)) % std::size(given)];
    all.at<double>(index) = index % 5 == 4 && rank % 2 == 1 ? -number : number;  // not multiplied, which may flush
  }
  return convert(all, type);
}

using bits = std::vector<std::uint8_t>;

void add_bits(bits& to, const tensor& what) {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(what.data());
  to.insert(to.end(), first, first + what.nbytes());
}

// All of one type, blocking or asynchronous.
bits reductions(group& in, dtype type, std::size_t count, bool is_async) {
  bits found;
  const auto done = [&](work made) { made.wait(); };
  for (const auto op : {reduction_op::sum, reduction_op::avg}) {
    const auto everywhere = numbers(type, count, in.rank());
    is_async ? done(in.all_reduce_async(everywhere, op)) : in.all_reduce(everywhere, op);
    add_bits(found, everywhere);
    const auto first = count * in.rank() / in.size();
    const auto part = tensor::zeros(type, {count * (in.rank() + 1) / in.size() - first});
    const auto given = numbers(type, count, in.rank());
    is_async ? done(in.reduce_scatter_async(given, part, op)) : in.reduce_scatter(given, part, op);
    add_bits(found, part);
    const auto at_root = numbers(type, count, in.rank());
    is_async ? done(in.reduce_async(at_root, 1, op)) : in.reduce(at_root, 1, op);
    add_bits(found, at_root);
  }
  return found;
}

enum class which { one, all };

class GroupFloats : public testing::TestWithParam<std::tuple<rank_kind, floats, which>> {
protected:
  static void run(const test::rank_body& body) { run_group(std::get<0>(GetParam()), ranks, body); }
  // The state of a rank.
  static floats state_of(std::size_t rank) {
    const auto [kind, state, who] = GetParam();
    return who == which::all || rank == 1 ? state : floats::usual;
  }
};

TEST_P(GroupFloats, ReductionsHaveTheSameBitsAndLeaveTheState) {
  run([](group& group) {
    for (const auto type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64, dtype::c64}) {
      for (const auto count : counts) {
        for (const bool is_async : {false, true}) {
          const auto usual = reductions(group, type, count, is_async);
          bits found;
          bool is_unchanged = false;
          {
            const floats_scope set(state_of(group.rank()));
            found = reductions(group, type, count, is_async);
            is_unchanged = set.is_unchanged();
          }
          EXPECT_TRUE(found == usual) << type << ", " << count << " elements, asynchronous " << is_async;
          EXPECT_TRUE(is_unchanged) << type << ", " << count << " elements, asynchronous " << is_async;
        }
      }
    }
  });
}

// The group's thread was started in another state.
TEST_P(GroupFloats, AFunctionRunsInTheStateOfTheRankThatCalled) {
  if (std::get<2>(GetParam()) == which::one) return;  // who computes is the group's business
  run([](group& group) {
    const auto how = reduction::custom<std::uint64_t>(
        "signs", [](std::uint64_t, std::uint64_t which_sign) { return test::signs_of_state()[which_sign]; });
    group.barrier_async().wait();
    const floats_scope set(state_of(group.rank()));
    const auto wanted = test::signs_of_state();
    const std::vector<std::uint64_t> both = {0, 1};
    const auto blocking = tensor::from(both);
    group.all_reduce(blocking, how);
    EXPECT_EQ(blocking.to_vector<std::uint64_t>(), wanted);
    const auto later = tensor::from(both);
    group.all_reduce_async(later, how).wait();
    EXPECT_EQ(later.to_vector<std::uint64_t>(), wanted);
  });
}

std::string name_of(const testing::TestParamInfo<GroupFloats::ParamType>& info) {
  const auto [kind, state, who] = info.param;
  return test::name_of(kind) + test::name_of(state) + (who == which::one ? "InOne" : "InAll");
}

INSTANTIATE_TEST_SUITE_P(States, GroupFloats,
                         testing::Combine(testing::ValuesIn(test::rank_kinds()), testing::ValuesIn(test::floats_here()),
                                          testing::Values(which::one, which::all)),
                         name_of);

}  // namespace
}  // namespace muster::group_floats_test
