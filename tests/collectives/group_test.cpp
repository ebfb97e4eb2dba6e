// SPDX-License-Identifier: BSL-1.0
// Joining, leaving, wrong calls, and groups that come of groups; killed ranks are in group_kill_test.cpp.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/collectives/group_objects.hpp>
#include <muster/serialize/exceptions.hpp>

#include "group_support.hpp"

namespace muster::group_test {
namespace {

using namespace std::chrono_literals;
using test::rank_kind;
using test::run_group;
using test::text_thrown_by;
using testing::AllOf;
using testing::HasSubstr;

tensor number(float value) { return tensor::full<float>({1}, value); }

class Group : public testing::TestWithParam<rank_kind> {
protected:
  static void run(std::size_t ranks, const test::rank_body& body, const group_options& options = {}) {
    run_group(GetParam(), ranks, body, options);
  }
};

TEST_P(Group, KnowsItsMembers) {
  run(3, [](group& group) {
    group.barrier();
    EXPECT_EQ(group.size(), 3U);
    const auto members = group.members();
    ASSERT_EQ(members.size(), 3U);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(members[rank].rank, rank);
      EXPECT_NE(members[rank].pid, 0);
    }
    EXPECT_TRUE(group.is_whole());
    group.barrier();
  });
}

// The predecessor's numbers.
TEST_P(Group, GivesThePredecessorsResults) {
  run(3, [](group& group) {
    const auto rank = static_cast<float>(group.rank());
    const auto sum = tensor::full<float>({5}, rank);
    group.all_reduce(sum);
    EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(5, 3.0F));
    const auto reduced = tensor::full<float>({5}, 5 - rank);
    group.reduce(reduced, 1);
    if (group.rank() == 1) {
      EXPECT_EQ(reduced.to_vector<float>(), std::vector<float>(5, 12.0F));
    }
    const auto gathered = group.gather(number(rank), 1);
    if (group.rank() == 1) {
      EXPECT_EQ(gathered.to_vector<float>(), (std::vector<float>{0, 1, 2}));
    }
    EXPECT_EQ(group.all_gather(number(rank)).to_vector<float>(), (std::vector<float>{0, 1, 2}));
    const auto scattered = group.scatter(tensor::arange<float>(0, 3), 0);
    EXPECT_EQ(scattered.to_vector<float>(), std::vector<float>{rank});
    const auto ones = group.rank() == 0 ? tensor::ones<float>({5}) : tensor::zeros<float>({5});
    group.broadcast(ones, 0);
    EXPECT_EQ(ones.to_vector<float>(), std::vector<float>(5, 1.0F));
  });
}

TEST_P(Group, TenThousandBarriers) {
  run(2, [](group& group) {
    for (int each = 0; each < 10'000; ++each) group.barrier();
  });
}

TEST_P(Group, ABarrierIsPassedByNobodyBeforeAllHaveCome) {
  run(4, [](group& group) {
    const auto counts = tensor::zeros<std::uint64_t>({group.size()});
    for (std::uint64_t round = 1; round <= 200; ++round) {
      counts.at<std::uint64_t>(group.rank()) = round;
      const auto before = group.all_gather(counts.slice(group.rank(), group.rank() + 1));
      group.barrier();
      for (const auto each : before.to_vector<std::uint64_t>()) EXPECT_EQ(each, round);
    }
  });
}

// ---- wrong calls

TEST_P(Group, RefusesDifferentCallsOnAllRanksAndGoesOn) {
  run(3, [](group& group) {
    const auto own = tensor::full<float>({10}, 1);
    const auto text = text_thrown_by<error>([&] {
      if (group.rank() == 1) return group.broadcast(own, 0);
      group.all_reduce(own, reduction_op::max);
    });
    EXPECT_THAT(text, AllOf(HasSubstr("rank 0"), HasSubstr("all_reduce(max) of 10 elements f32"),
                            HasSubstr("broadcast with root 0 of 10 elements f32"), HasSubstr("rank 2")));
    EXPECT_TRUE(group.is_whole());
    group.all_reduce(own);
    EXPECT_EQ(own.at<float>(9), 3);
  });
}

TEST_P(Group, RefusesDifferentShapesTypesRootsAndFunctions) {
  run(2, [](group& group) {
    const auto refused = [](const std::string& text) { return text.find("do not fit together") != std::string::npos; };
    const bool first = group.rank() == 0;
    const auto a = tensor::zeros<float>({2, 3});
    const auto b = tensor::zeros<float>({3, 2});
    EXPECT_TRUE(refused(text_thrown_by<error>([&] { group.all_reduce(first ? a : b); })));
    const auto c = tensor::zeros<double>({2, 3});
    EXPECT_TRUE(refused(text_thrown_by<error>([&] { group.all_reduce(first ? a : c); })));
    EXPECT_TRUE(refused(text_thrown_by<error>([&] { group.broadcast(a, first ? 0 : 1); })));
    EXPECT_TRUE(
        refused(text_thrown_by<error>([&] { group.all_reduce(a, first ? reduction_op::min : reduction_op::max); })));
    const auto one = reduction::custom<float>("one", [](float x, float) { return x; });
    const auto other = reduction::custom<float>("other", [](float x, float) { return x; });
    EXPECT_TRUE(refused(text_thrown_by<error>([&] { group.all_reduce(a, first ? one : other); })));
    EXPECT_TRUE(refused(
        text_thrown_by<error>([&] { static_cast<void>(group.all_gather(first ? a : tensor::zeros<float>({2, 4}))); })));
    EXPECT_TRUE(refused(text_thrown_by<error>([&] { group.scatter(tensor::zeros<float>({3}), number(0), 0); })));
    EXPECT_TRUE(refused(text_thrown_by<error>([&] { group.all_gather(number(1), tensor::zeros<float>({3})); })));
    EXPECT_TRUE(refused(text_thrown_by<error>([&] { group.reduce_scatter(tensor::zeros<float>({3}), number(0)); })));
    group.all_reduce(a);
  });
}

TEST_P(Group, ACallThatOneRankGetsWrongIsRefusedByAllAndSaysWhose) {
  run(3, [](group& group) {
    const auto own = tensor::ones<float>({4});
    const std::size_t root = group.rank() == 2 ? 7 : 0;
    const auto wrong_root = text_thrown_by<error>([&] { group.broadcast(own, root); });
    EXPECT_THAT(wrong_root, HasSubstr("root 7 was given: the group's ranks are 0 to 2"));
    if (group.rank() != 2) {
      EXPECT_THAT(wrong_root, HasSubstr("rank 2"));
    }
    const auto bitwise = text_thrown_by<error>([&] { group.all_reduce(own, reduction_op::band); });
    EXPECT_THAT(bitwise, AllOf(HasSubstr("band"), HasSubstr("f32")));
    const auto rows = text_thrown_by<error>([&] {
      static_cast<void>(
          group.all_to_all(own, std::vector<std::size_t>{1, 1, group.rank() == 0 ? std::size_t{3} : std::size_t{2}}));
    });
    EXPECT_THAT(rows, HasSubstr("5 in all"));
    group.all_reduce(own);
    EXPECT_EQ(own.at<float>(0), 3);
  });
}

TEST_P(Group, NumbersOfRowsWhoseSumWrapsAroundAreRefused) {
  run(2, [](group& group) {
    const auto rows = group.rank() == 0 ? std::vector<std::size_t>{SIZE_MAX, 2} : std::vector<std::size_t>{1, 1};
    const auto own = tensor::ones<float>({group.rank() + 1});
    EXPECT_THAT(text_thrown_by<error>([&] { static_cast<void>(group.all_to_all(own, rows)); }),
                HasSubstr("a tensor of 1 rows"));
    group.barrier();
  });
}

/// What cannot be encoded on one rank.
struct moody {
  bool may_go = true;
  template <class Archive>
  void save(Archive& archive) const {
    if (!may_go) throw std::domain_error("not today");
    archive(may_go);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(may_go);
  }
};

TEST_P(Group, AnObjectThatOneRankCannotSendIsRefusedByAllAndTheGroupGoesOn) {
  run(3, [](group& group) {
    moody own{.may_go = group.rank() != 0};
    const std::vector<moody> for_each(3, own);
    const std::function<void()> calls[] = {[&] { group.broadcast_object(own, 0); },
                                           [&] { static_cast<void>(group.gather_object(own, 1)); },
                                           [&] { static_cast<void>(group.all_gather_object(own)); },
                                           [&] { static_cast<void>(group.scatter_object(for_each, 0)); }};
    for (const auto& call : calls) {
      EXPECT_THAT(text_thrown_by<std::exception>(call), HasSubstr("not today"));
      EXPECT_EQ(group.all_gather_object(group.rank()).size(), 3U);
    }
  });
}

// Nobody knows the types that are the library's own.
TEST_P(Group, WhatIsRefusedIsAPlainError) {
  run(2, [](group& group) {
    try {
      group.all_reduce(tensor::ones<float>({group.rank() + 1}));
      ADD_FAILURE() << "it was not refused";
    } catch (...) {
      EXPECT_EQ(capture_current_exception().type_name(), "muster::error");
    }
  });
}

// ---- several tensors in one call

TEST_P(Group, AListOfDifferentTypesOnOneRankIsRefusedByAllAndTheGroupGoesOn) {
  run(3, [](group& group) {
    const auto own = number(2);
    const auto other = group.rank() == 1 ? tensor::ones<double>({3}) : tensor::ones<float>({3});
    const auto text = text_thrown_by<error>([&] { group.all_reduce(std::array{own, own.clone(), other}); });
    EXPECT_THAT(text, AllOf(HasSubstr("the first is f32 and number 2 is f64"), HasSubstr("a call for each type")));
    if (group.rank() != 1) {
      EXPECT_THAT(text, AllOf(HasSubstr("rank 1"), HasSubstr("nothing was done")));
    }
    EXPECT_TRUE(group.is_whole());
    EXPECT_EQ(own.item<float>(), 2);
    group.all_reduce(std::array{own});
    EXPECT_EQ(own.item<float>(), 6);
  });
}

std::string thrown_for(group& in, const std::vector<tensor_shape>& shapes, const reduction& with = reduction_op::sum) {
  std::vector<tensor> list;
  for (const auto& each : shapes) list.push_back(tensor::ones<float>(each));
  const auto text = text_thrown_by<error>([&] { in.all_reduce(list, with); });
  for (const auto& each : list) EXPECT_EQ(each.to_vector<float>(), std::vector<float>(each.size(), 1));
  return text;
}

TEST_P(Group, ListsOfDifferentShapesAreRefusedByAllWithTheFirstThatDiffers) {
  run(3, [](group& group) {
    const bool is_first = group.rank() == 0;
    const auto thrown = [&](std::vector<tensor_shape> first, std::vector<tensor_shape> others) {
      return thrown_for(group, is_first ? first : others);
    };
    EXPECT_THAT(thrown({{2}, {3}}, {{3}, {2}}),
                AllOf(HasSubstr("do not fit together"), HasSubstr("nothing was done"),
                      HasSubstr("tensor 0 is (2,) on rank 0, (3,) on rank 1, (3,) on rank 2. "),
                      HasSubstr("all_reduce(sum) of 5 elements f32 in several tensors")));
    EXPECT_THAT(thrown({{4}, {2, 3}}, {{4}, {3, 2}}), HasSubstr("tensor 1 is (2, 3) on rank 0, (3, 2) on rank 1"));
    EXPECT_THAT(thrown({{4}, {2}, {1}}, {{4}, {3}}), HasSubstr("tensor 1 is (2,) on rank 0, (3,) on rank 1"));
    EXPECT_THAT(thrown({{4}, {0}}, {{4}}), HasSubstr("tensor 1 is (0,) on rank 0, missing on rank 1"));
    EXPECT_THAT(thrown({}, {{2}}), HasSubstr("tensor 0 is missing on rank 0, (2,) on rank 1"));
    EXPECT_THAT(thrown({{}}, {{1}}), HasSubstr("tensor 0 is () on rank 0, (1,) on rank 1"));
    EXPECT_EQ(thrown_for(group, {{2}, {}, {0, 5}, {3}}, reduction_op::prod), "nothing was thrown");
  });
}

TEST_P(Group, OfLongListsTheFirstTensorThatDiffersIsFound) {
  run(2, [](group& group) {
    for (const std::size_t at : {0U, 59U, 60U, 119U, 120U, 999U}) {
      std::vector<tensor_shape> shapes(1000, {2});
      for (auto index = at; index < shapes.size(); ++index) shapes[index] = {1, 2};
      const auto text = thrown_for(group, group.rank() == 0 ? shapes : std::vector<tensor_shape>(1000, {2}));
      EXPECT_THAT(text, HasSubstr("; tensor " + std::to_string(at) + " is (1, 2) on rank 0, (2,) on rank 1. "));
    }
    for (const std::size_t count : {60U, 120U}) {
      const auto text = thrown_for(group, std::vector<tensor_shape>(count + group.rank(), {2}));
      EXPECT_THAT(text, HasSubstr("; tensor " + std::to_string(count) + " is missing on rank 0, (2,) on rank 1. "));
    }
  });
}

TEST_P(Group, ListsThatDifferInTypeOpOrFormAreRefusedByAll) {
  run(2, [](group& group) {
    const bool is_first = group.rank() == 0;
    const std::array floats = {number(1), number(1)};
    const std::array doubles = {tensor::ones<double>({1}), tensor::ones<double>({1})};
    EXPECT_THAT(text_thrown_by<error>([&] { group.all_reduce(is_first ? floats : doubles); }),
                AllOf(HasSubstr("of 2 elements f32 in several"), HasSubstr("of 2 elements f64 in several")));
    const auto op = is_first ? reduction_op::min : reduction_op::max;
    EXPECT_THAT(text_thrown_by<error>([&] { group.all_reduce(floats, op); }),
                AllOf(HasSubstr("all_reduce(min)"), HasSubstr("all_reduce(max)")));
    const auto one = text_thrown_by<error>([&] {
      if (is_first) return group.all_reduce(std::array{number(1)});
      group.all_reduce(number(1));
    });
    EXPECT_THAT(one, AllOf(HasSubstr("1 elements f32 in several tensors"), HasSubstr("1 elements f32")));
    group.all_reduce(floats);
    EXPECT_EQ(floats[1].item<float>(), 2);
  });
}

TEST_P(Group, AFunctionThatThrowsOnOneRankEndsTheCallOnAll) {
  run(2, [](group& group) {
    const bool throws = group.rank() == 1;
    const auto fails = reduction::custom<float>("fails", [throws](float a, float b) {
      if (throws) throw std::runtime_error("no such sum");
      return a + b;
    });
    for (const std::size_t count : {std::size_t{1}, std::size_t{5000}}) {
      const auto own = tensor::ones<float>({count});
      const auto text = text_thrown_by<std::exception>([&] { group.all_reduce(own, fails); });
      EXPECT_THAT(text, HasSubstr("no such sum"));
      if (group.rank() == 0) {
        EXPECT_THAT(text, HasSubstr("rank 1"));
      }
    }
    const auto own = number(2);
    group.all_reduce(own);
    EXPECT_EQ(own.item<float>(), 4);
  });
}

TEST(GroupOfOne, CannotBeJoinedTwiceOrOutOfRange) {
  const group_ticket ticket(2);
  const group first(ticket, 0);
  EXPECT_THAT(text_thrown_by<error>([&] { const group again(ticket, 0); }), HasSubstr("is that rank already"));
  EXPECT_THAT(text_thrown_by<error>([&] { const group wrong(ticket, 2); }), HasSubstr("the ranks are 0 to 1"));
  EXPECT_THAT(text_thrown_by<error>([&] { const group none(group_ticket(), 0); }), HasSubstr("empty group_ticket"));
  EXPECT_THAT(text_thrown_by<error>([&] { const group_ticket none(0); }), HasSubstr("1 to 4096"));
}

TEST(GroupOfOne, TwoThreadsOfOneRankAreTold) {
  const group_ticket ticket(2, {.timeout = 10s});
  group mine(ticket, 0);
  std::atomic<bool> refused = false;
  std::thread waits([&] {
    try {
      mine.barrier();
    } catch (const error&) {
      refused = true;
    }
  });
  std::thread meddles([&] {
    while (!refused) {
      try {
        mine.barrier();
        return;
      } catch (const group_error&) {
        return;
      } catch (const error& found) {
        EXPECT_THAT(found.what(), HasSubstr("two threads"));
        refused = true;
      }
    }
  });
  meddles.join();
  group other(ticket, 1);
  other.abort("enough");
  waits.join();
}

// ---- who does not come

TEST_P(Group, WhoDoesNotComeIsNamedWhenTheTimeIsOver) {
  run(3, [](group& group) {
    if (group.rank() == 2) {
      EXPECT_THROW(group.recv(tensor::zeros<float>({1}), 0, 9), group_error);  // until the others have given up
      return;
    }
    try {
      group.barrier({.timeout = 100ms});
      ADD_FAILURE() << "the barrier was passed";
    } catch (const group_error& found) {
      EXPECT_EQ(found.code(), errc::timed_out);
      EXPECT_THAT(found.what(), HasSubstr("barrier"));
      EXPECT_EQ(found.sequence(), 1U);
      if (!found.missing().empty()) {
        EXPECT_EQ(found.missing().back().rank, 2U);
      }
    }
    EXPECT_FALSE(group.is_whole());
    EXPECT_THROW(group.barrier(), group_error);
  });
}

TEST_P(Group, WhoHasLeftIsNotWaitedFor) {
  run(3, [](group& group) {
    group.barrier();
    if (group.rank() == 1) return;
    EXPECT_THAT(text_thrown_by<peer_lost>([&] { group.barrier(); }), HasSubstr("rank 1"));
  });
}

TEST_P(Group, AnAbortEndsAllCallsWithItsReason) {
  run(3, [](group& group) {
    if (group.rank() == 0) return group.abort("the disk is full");
    const auto text = text_thrown_by<group_error>([&] { group.barrier(); });
    EXPECT_THAT(text, AllOf(HasSubstr("rank 0"), HasSubstr("the disk is full")));
  });
}

// ---- groups of groups

TEST_P(Group, IsSplitByColorAndKey) {
  run(5, [](group& group) {
    const int color = group.rank() == 4 ? -1 : static_cast<int>(group.rank() % 2);
    auto part = group.split(color, -static_cast<int>(group.rank()));
    ASSERT_EQ(part.has_value(), group.rank() != 4);
    if (!part) return;
    EXPECT_EQ(part->size(), 2U);
    EXPECT_EQ(part->rank(), group.rank() < 2 ? 1U : 0U) << "the greater rank first";
    const auto sum = number(static_cast<float>(group.rank()));
    part->all_reduce(sum);
    EXPECT_EQ(sum.item<float>(), color == 0 ? 2 : 4);
  });
}

TEST_P(Group, SubsetsAreMadeByTheirMembersOnlyAHundredTimes) {
  run(4, [](group& group) {
    if (group.rank() == 0) return;  // it knows nothing of them, and need not stay
    for (int each = 0; each < 100; ++each) {
      auto some = group.subset({3, 1, 2});
      EXPECT_EQ(some.size(), 3U);
      const auto ranks = some.all_gather(number(static_cast<float>(group.rank())));
      EXPECT_EQ(ranks.to_vector<float>(), (std::vector<float>{3, 1, 2}));
    }
  });
}

TEST_P(Group, ASubsetWhoseLeaderHasGivenUpCanBeMadeAgain) {
  run(2, [](group& group) {
    if (group.rank() == 0) {
      EXPECT_THROW(static_cast<void>(group.subset({0, 1}, {.timeout = 5ms})), group_error);
    }
    group.barrier();
    auto both = group.subset({0, 1});
    EXPECT_EQ(both.all_gather(number(1)).size(), 2U);
  });
}

TEST_P(Group, OfASubsetThatItsLeaderHasGivenUpThoseWhoHadItKnow) {
  run(3, [](group& group) {
    const auto try_to_meet = [&]() -> std::optional<muster::group> {
      try {
        return group.subset({0, 1, 2}, {.timeout = 20ms});
      } catch (const group_error& found) {
        EXPECT_EQ(found.code(), errc::timed_out) << found.what();
        return std::nullopt;
      }
    };
    std::optional<muster::group> part;
    if (group.rank() != 2) part = try_to_meet();
    group.barrier();
    if (part) {
      EXPECT_FALSE(part->is_whole());
    }
    auto all = group.subset({0, 1, 2});
    EXPECT_EQ(all.all_gather(number(1)).size(), 3U);
  });
}

TEST_P(Group, OfASubsetThatAMemberHasLeftThoseWhoHadItKnow) {
  run(3, [](group& group) {
    if (group.rank() == 2) return;
    if (group.rank() == 0) {
      EXPECT_THROW(static_cast<void>(group.subset({0, 1, 2})), peer_lost);
    } else {
      auto part = group.subset({0, 1, 2});
      EXPECT_THROW(part.barrier({.timeout = 1h}), peer_lost);
    }
  });
}

TEST_P(Group, SubsetsThatCannotBeAreRefused) {
  run(2, [](group& group) {
    const std::vector<std::size_t> none;
    EXPECT_THROW(static_cast<void>(group.subset(none)), error);
    EXPECT_THROW(static_cast<void>(group.subset({group.rank(), group.rank()})), error);
    EXPECT_THROW(static_cast<void>(group.subset({1 - group.rank()})), error);
    EXPECT_THROW(static_cast<void>(group.subset({group.rank(), 2})), error);
    group.barrier();
  });
}

TEST_P(Group, ShrinksToThoseWhoAreLeft) {
  run(4, [](group& group) {
    group.barrier();
    if (group.rank() == 1) return;
    EXPECT_THROW(group.barrier(), peer_lost);
    auto rest = group.shrink();
    EXPECT_EQ(rest.size(), 3U);
    EXPECT_EQ(rest.rank(), group.rank() == 0 ? 0U : group.rank() - 1);
    const auto sum = number(static_cast<float>(group.rank()));
    rest.all_reduce(sum);
    EXPECT_EQ(sum.item<float>(), 5);
  });
}

TEST_P(Group, DoesNotShrinkWhileItIsWhole) {
  run(2, [](group& group) {
    EXPECT_THROW(static_cast<void>(group.shrink()), error);
    group.barrier();
  });
}

// Tensors of the program's own domain are none of its.
TEST(GroupInOneProcess, MayLieInAnotherDomainThanThePrograms) {
  const auto own = std::make_shared<domain>(domain_options{.arena_bytes = std::size_t{64} << 20U});
  const group_ticket ticket(2, {}, own);
  const auto run_rank = [&](std::size_t rank) {
    group mine(ticket, rank);
    const auto values = tensor::full<float>({5000}, static_cast<float>(rank + 1));
    mine.all_reduce(values);
    EXPECT_EQ(values.at<float>(4999), 3);
    auto word = rank == 0 ? std::string(100'000, 'y') : std::string();
    mine.broadcast_object(word, 0);
    EXPECT_EQ(word.size(), 100'000U);
    const auto sent = mine.isend(values, 1 - rank);
    EXPECT_EQ(mine.recv(1 - rank).at<float>(4999), 3);
    sent.wait();
  };
  std::thread other([&] { run_rank(1); });
  run_rank(0);
  other.join();
}

TEST(GroupInOneProcess, IsMadeOfThreadsAgainAndAgain) {
  for (int round = 0; round < 100; ++round) {
    run_group(rank_kind::threads, 2, [](group& group) { group.barrier(); });
  }
}

// ---- asynchronous calls

TEST_P(Group, ErrorsOfAsynchronousCallsComeWithTheirHandles) {
  run(2, [](group& group) {
    const auto own = tensor::ones<float>({4});
    const auto wrong = group.broadcast_async(own, 5);
    const auto right = group.all_reduce_async(own);
    EXPECT_THROW(wrong.wait(), error);
    EXPECT_NE(wrong.exception(), nullptr);
    right.wait();
    EXPECT_EQ(own.at<float>(0), 2);
    EXPECT_FALSE(right.cancel());
    EXPECT_THROW(static_cast<void>(right.source()), error);
  });
}

TEST_P(Group, CallbacksAreCalledOnceWhenACallHasEnded) {
  run(2, [](group& group) {
    std::atomic<int> called = 0;
    const auto own = tensor::ones<float>({4});
    const auto sum = group.all_reduce_async(own);
    sum.then([&](const std::exception_ptr& failure) { called += failure == nullptr ? 1 : 100; });
    const auto all = std::vector{sum, group.barrier_async()};
    EXPECT_TRUE(wait_any(all).has_value());
    all[1].wait();
    sum.then([&](const std::exception_ptr&) { ++called; });
    EXPECT_TRUE(test::eventually([&] { return called == 2; }));
    group.barrier();
  });
}

TEST(Work, EmptyHandlesAreRefused) {
  const work none;
  EXPECT_FALSE(none.valid());
  EXPECT_THROW(none.wait(), error);
  EXPECT_THROW(static_cast<void>(wait_any({})), error);
}

INSTANTIATE_TEST_SUITE_P(Of, Group, testing::ValuesIn(test::rank_kinds()),
                         [](const auto& given) { return test::name_of(given.param); });

}  // namespace
}  // namespace muster::group_test
