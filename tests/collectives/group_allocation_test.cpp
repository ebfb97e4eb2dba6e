// SPDX-License-Identifier: BSL-1.0
// What ranks allocate while they do the same over and over: each counts its own.
#include <muster/collectives/group_link.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "allocations.hpp"
#include "graph_kalman.hpp"
#include "graph_support.hpp"
#include "group_support.hpp"

namespace muster::group_allocation_test {
namespace {

using test::rank_kind;

constexpr std::size_t shorter = 8;     // elements: goes along in the ring, or in a slot
constexpr std::size_t longer = 1000;   // too many for the ring
constexpr std::size_t longest = 5000;  // too many for a slot
constexpr int warm = 20;
constexpr int batches = 5;
constexpr int calls_in_a_batch = 100;

// How much is allocated when all that may happen has happened: the least of several batches, since a rank that is later
// than ever before, whenever that is, makes room for that once. Each is late in some of the first calls.
std::size_t allocated_by(const group& mine, const std::function<void()>& call) {
  for (std::size_t each = 0; each < warm; ++each) {
    if (each % mine.size() == mine.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    call();
  }
  std::size_t least = SIZE_MAX;
  for (int batch = 0; batch < batches; ++batch) {
    const auto before = test::own_allocations();
    for (int each = 0; each < calls_in_a_batch; ++each) call();
    least = std::min(least, test::own_allocations() - before);
  }
  return least;
}

// Has twice these come from a neighbour, and taken into this rank's memory, before anybody asks for them: more than
// that is never there at once when all send these in each call.
void take_in_unasked(group& mine, std::size_t to, std::size_t from, const std::vector<tensor>& what) {
  constexpr std::uint32_t first = 1000;  // of the tags
  const auto count = static_cast<std::uint32_t>(2 * what.size());
  const auto told_tag = first + count;
  const auto token = tensor::zeros<float>({1});
  const auto own = tensor::zeros<float>({longer});
  std::vector<work> sent;
  for (std::uint32_t each = 0; each < count; ++each) {
    sent.push_back(mine.isend(what[each % what.size()], to, first + each));
  }
  const auto told = mine.irecv(token, from, told_tag);
  work tells;
  while (!told.test() || !tells.valid()) {
    mine.send(own, mine.rank(), told_tag + 1);  // who waits for his own long message takes in the others'
    mine.recv(own, mine.rank(), told_tag + 1);
    const bool all_taken = std::all_of(sent.begin(), sent.end(), [](const work& each) { return each.test(); });
    if (all_taken && !tells.valid()) tells = mine.isend(token, to, told_tag);
  }
  for (std::uint32_t each = 0; each < count; ++each) mine.recv(what[each % what.size()], from, first + each);
}

class GroupAllocation : public testing::TestWithParam<rank_kind> {
protected:
  static void run(std::size_t ranks, const test::rank_body& body) { test::run_group(GetParam(), ranks, body); }
};

// ---- graphs

TEST_P(GroupAllocation, AGraphAllocatesNothingPerRunAfterItsFirst) {
  for (const std::size_t n : {4U, 24U}) {  // short messages, and long ones
    run(2, [n](group& group) {
      const auto g = test::kalman_graph(n, true);
      group_link link(group);
      auto mine = g.plan(static_cast<int>(group.rank()));
      const test::kalman_inputs in(n);
      for (const auto& [name, what] : std::map<const char*, const test::matrix<double>*>{
               {"mu", &in.mu}, {"Sigma", &in.sigma}, {"H", &in.h}, {"R", &in.r}, {"data", &in.data}}) {
        if (group.rank() == 0) mine.set(name, test::tensor_of(*what));
      }
      EXPECT_EQ(allocated_by(group, [&] { mine.run(link); }), 0U) << "rank " << group.rank() << ", n " << n;
    });
  }
}

// Who is ahead sends what nobody waits for yet.
TEST_P(GroupAllocation, AGraphInARingAllocatesNothing) {
  constexpr int ranks = 3;
  run(ranks, [](group& group) {
    std::vector<tensor> sent;
    for (const auto elements : {shorter, longer, 20 * longer}) sent.push_back(tensor::zeros<float>({elements}));
    graph g;
    for (int rank = 0; rank < ranks; ++rank) {
      auto here = g.on(rank);
      for (int tag = 0; tag < 3; ++tag) {
        const auto which = std::to_string(tag);
        here.send(here.input("own " + which, sent[static_cast<std::size_t>(tag)]),
                  {.to = (rank + 1) % ranks, .tag = tag});
        here.recv("theirs " + which, {.from = (rank + ranks - 1) % ranks, .tag = tag});
      }
    }
    group_link link(group);
    auto mine = g.plan(static_cast<int>(group.rank()));
    take_in_unasked(group, (group.rank() + 1) % ranks, (group.rank() + ranks - 1) % ranks, sent);
    EXPECT_EQ(allocated_by(group, [&] { mine.run(link); }), 0U) << "rank " << group.rank();
  });
}

// ---- messages

TEST_P(GroupAllocation, SendAndRecvAllocateNothingAfterTheFirst) {
  run(2, [](group& group) {
    for (const auto elements : {shorter, longer}) {
      const auto mine = tensor::zeros<float>({elements});
      const auto theirs = tensor::zeros<float>({elements});
      const auto other = 1 - group.rank();
      const auto both_ways = [&] {
        if (group.rank() == 0) group.send(mine, other, 1);
        group.recv(theirs, other, 1);
        if (group.rank() == 1) group.send(mine, other, 1);
      };
      EXPECT_EQ(allocated_by(group, both_ways), 0U) << "rank " << group.rank() << ", elements " << elements;
    }
  });
}

TEST_P(GroupAllocation, IsendAndIrecvAllocateNothingAfterTheFirst) {
  run(2, [](group& group) {
    for (const auto elements : {shorter, longer}) {
      constexpr std::uint32_t tags = 40;  // more than a ring holds
      const auto mine = tensor::zeros<float>({elements});
      std::vector<tensor> theirs;
      for (std::uint32_t tag = 0; tag < tags; ++tag) theirs.push_back(tensor::zeros<float>({elements}));
      std::vector<work> works;
      works.reserve(2 * std::size_t{tags});
      const auto other = 1 - group.rank();
      const auto both_ways = [&] {
        for (std::uint32_t tag = 0; tag < tags; ++tag) works.push_back(group.isend(mine, other, tag));
        for (auto tag = tags; tag-- > 0;) works.push_back(group.irecv(theirs[tag], other, tag));
        for (const auto& each : works) each.wait();
        works.clear();
      };
      take_in_unasked(group, other, other, theirs);
      EXPECT_EQ(allocated_by(group, both_ways), 0U) << "rank " << group.rank() << ", elements " << elements;
    }
  });
}

// Both send first, so each takes what the other has sent into memory of its own.
TEST_P(GroupAllocation, LongMessagesThatWaitInTheReceiversMemoryAllocateNothing) {
  run(2, [](group& group) {
    const auto mine = tensor::zeros<float>({longer});
    const auto theirs = tensor::zeros<float>({longer});
    const auto both_ways = [&] {
      group.send(mine, 1 - group.rank());
      group.recv(theirs, 1 - group.rank());
    };
    take_in_unasked(group, 1 - group.rank(), 1 - group.rank(), {theirs});
    EXPECT_EQ(allocated_by(group, both_ways), 0U) << "rank " << group.rank();
  });
}

// ---- collectives

TEST_P(GroupAllocation, CollectivesOfTensorsOfTheDomainAllocateNothing) {
  run(3, [](group& group) {
    for (const auto rows : {shorter, longest}) {
      const auto one = tensor::zeros<float>({rows});
      const auto another = tensor::zeros<float>({rows});
      const auto all = tensor::zeros<float>({3 * rows});
      const auto all_others = tensor::zeros<float>({3 * rows});
      const std::map<const char*, std::function<void()>> calls = {
          {"barrier", [&] { group.barrier(); }},
          {"broadcast", [&] { group.broadcast(one, 1); }},
          {"reduce", [&] { group.reduce(one, another, 1); }},
          {"all_reduce", [&] { group.all_reduce(one, another); }},
          {"all_reduce in place", [&] { group.all_reduce(one, one, reduction_op::max); }},
          {"gather", [&] { group.gather(one, all, 1); }},
          {"all_gather", [&] { group.all_gather(one, all); }},
          {"scatter", [&] { group.scatter(all, one, 1); }},
          {"reduce_scatter", [&] { group.reduce_scatter(all, one); }},
          {"all_to_all", [&] { group.all_to_all(all, all_others); }},
      };
      for (const auto& [name, call] : calls) {
        EXPECT_EQ(allocated_by(group, call), 0U) << name << ", rank " << group.rank() << ", rows " << rows;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Of, GroupAllocation, testing::ValuesIn(test::rank_kinds()),
                         [](const auto& given) { return test::name_of(given.param); });

}  // namespace
}  // namespace muster::group_allocation_test
