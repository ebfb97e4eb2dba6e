// SPDX-License-Identifier: BSL-1.0
// Tensors of one call that overlap: what is in place is computed, all else is refused by all ranks, with both ranges.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group_support.hpp"

namespace muster::group_overlap_test {
namespace {

using test::rank_kind;
using test::run_group;
using test::text_thrown_by;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t ranks = 3;

struct overlap_case {
  rank_kind kind;
  std::size_t rows;  // of each rank; of one go along in the slots, of the other they are read where they are
};

std::string name_of(const testing::TestParamInfo<overlap_case>& info) {
  return test::name_of(info.param.kind) + (info.param.rows < 100 ? "Short" : "Long");
}

std::vector<overlap_case> cases() {
  std::vector<overlap_case> all;
  for (const auto kind : test::rank_kinds()) {
    for (const std::size_t rows : {std::size_t{7}, std::size_t{4000}}) all.push_back({kind, rows});
  }
  return all;
}

class GroupOverlap : public testing::TestWithParam<overlap_case> {
protected:
  [[nodiscard]] static std::size_t rows() { return GetParam().rows; }

  static void run(const test::rank_body& body) {
    run_group(GetParam().kind, ranks, [&](group& among) {
      body(among);
      const auto one = tensor::ones<float>({rows()});
      among.all_reduce(one);  // it goes on
      EXPECT_EQ(one.at<float>(rows() - 1), ranks);
    });
  }
};

// Rows of two, in the order of ranks.
tensor numbers(std::size_t count) {
  return tensor::arange<float>(0, static_cast<float>(2 * count)).reshape({count, 2});
}

// `call` is made with the tensors that overlap by rank 1 alone, and by all; nothing is written.
void expect_refused(const tensor& memory, const std::function<void(bool overlapping)>& call, std::size_t self,
                    const std::string& part, const std::string& other_part) {
  const auto before = memory.to_vector<float>();
  for (const bool by_all : {false, true}) {
    const auto text = text_thrown_by<error>([&] { call(by_all || self == 1); });
    const auto ranges = AllOf(HasSubstr(part), HasSubstr(other_part));
    EXPECT_THAT(text, ranges) << (by_all ? "of all" : "of rank 1");
    EXPECT_EQ(memory.to_vector<float>(), before);
  }
}

// ---- what is combined

TEST_P(GroupOverlap, AShiftedAllReduceIsRefused) {
  run([](group& among) {
    const auto all = numbers(rows() + 1);
    const auto apart = tensor::zeros<float>({rows(), 2});
    const auto end = std::to_string(8 * rows());
    const auto call = [&](bool overlapping) {
      among.all_reduce(all.slice(0, rows()), overlapping ? all.slice(1, rows() + 1) : apart);
    };
    expect_refused(all, call, among.rank(), "at bytes 0 to " + end,
                   "at bytes 8 to " + std::to_string(8 * rows() + 8) + " of the same memory");
    EXPECT_EQ(apart.to_vector<float>(), std::vector<float>(2 * rows(), 0));
  });
}

TEST_P(GroupOverlap, AShiftedReduceIsRefusedWhereItIsTheRoots) {
  run([](group& among) {
    const auto all = numbers(rows() + 1);
    const auto call = [&](bool overlapping) {
      const auto out = overlapping ? all.slice(1, rows() + 1) : tensor::zeros<float>({rows(), 2});
      among.reduce(all.slice(0, rows()), out, 1);
    };
    expect_refused(all, call, among.rank(), "at bytes 0 to", "at bytes 8 to");
  });
}

TEST_P(GroupOverlap, ColumnsThatLieBetweenOneAnotherAreCombined) {
  run([](group& among) {
    const auto all = tensor::full<float>({rows(), 4}, static_cast<float>(among.rank() + 1));
    const auto even = all.slice(0, 4, 1, 2);
    const auto odd = all.slice(1, 4, 1, 2);
    among.all_reduce(even, odd);
    EXPECT_EQ(odd.to_vector<float>(), std::vector<float>(2 * rows(), 6));
    EXPECT_EQ(even.to_vector<float>(), std::vector<float>(2 * rows(), static_cast<float>(among.rank() + 1)));
    among.reduce(odd, even, 0);
    EXPECT_EQ(even.at<float>(rows() - 1, 1), among.rank() == 0 ? 18 : static_cast<float>(among.rank() + 1));
    among.all_reduce(even);
    EXPECT_EQ(even.at<float>(rows() - 1, 1), 18 + 2 + 3);
  });
}

TEST_P(GroupOverlap, ResultsOfSeveralElementsInOnePlaceAreRefused) {
  run([](group& among) {
    const auto all = numbers(rows());
    const auto windows =
        tensor::over(all.storage(), dtype::f32, {2 * rows() - 2, 2}, {1, 1}, 0);  // the rows share elements
    const auto apart = tensor::zeros<float>({2 * rows() - 2, 2});
    const auto refused = [&](const std::function<void(const tensor& out)>& call, bool is_in_place) {
      const auto given = is_in_place || among.rank() == 1 ? windows : apart;
      const auto text = text_thrown_by<error>([&] { call(given); });
      EXPECT_THAT(text, AllOf(HasSubstr("with strides (1, 1)"), HasSubstr("several elements in one place")));
      EXPECT_EQ(all.to_vector<float>(), numbers(rows()).to_vector<float>());
    };
    refused([&](const tensor& out) { among.all_reduce(out); }, true);
    refused([&](const tensor& out) { among.all_reduce(apart.clone(), out); }, false);
    refused([&](const tensor& out) { among.broadcast(out, 0); }, true);
    refused([&](const tensor& out) { among.scatter(tensor::zeros<float>({3 * (2 * rows() - 2), 2}), out, 0); }, false);
    // What is only read may be repeated.
    among.all_reduce(windows, apart);
    EXPECT_EQ(apart.at<float>(1, 0), 3 * windows.at<float>(1, 0));
    if (among.rank() != 0) return among.broadcast(apart, 0);
    among.broadcast(windows, 0);
  });
}

TEST_P(GroupOverlap, ReadOnlyResultsAreRefused) {
  run([](group& among) {
    const auto own = numbers(rows());
    const auto all = numbers(3 * rows());
    const auto refused = [&](const tensor& out, const std::function<void(const tensor& out)>& call) {
      const auto text = text_thrown_by<error>([&] { call(among.rank() == 1 ? out.as_read_only() : out.clone()); });
      EXPECT_THAT(text, AllOf(HasSubstr("is read-only"), HasSubstr("clone() it")));
    };
    refused(own, [&](const tensor& out) { among.all_reduce(out); });
    refused(own, [&](const tensor& out) { among.all_reduce(own, out); });
    refused(own, [&](const tensor& out) { among.reduce(own, out, 1); });
    refused(own, [&](const tensor& out) { among.broadcast(out, 0); });
    refused(all, [&](const tensor& out) { among.gather(own, out, 1); });
    refused(all, [&](const tensor& out) { among.all_gather(own, out); });
    refused(own, [&](const tensor& out) { among.scatter(all, out, 0); });
    refused(own, [&](const tensor& out) { among.reduce_scatter(all, out); });
    refused(all, [&](const tensor& out) { among.all_to_all(all, out); });
    refused(own, [&](const tensor& out) {
      const std::vector<tensor> list = {out};
      among.all_reduce(std::span(list));
    });
    EXPECT_EQ(own.to_vector<float>(), numbers(rows()).to_vector<float>());
    // What is only read may be.
    among.all_reduce(own.as_read_only(), own.clone());
    among.broadcast(among.rank() == 0 ? own.as_read_only() : own.clone(), 0);
    const auto gathered = among.all_gather(own.as_read_only());
    EXPECT_FALSE(gathered.is_read_only());
    if (among.rank() == 0) among.send(own.as_read_only(), 1);
    if (among.rank() == 1) {
      const auto room = tensor::zeros<float>({rows(), 2});
      EXPECT_THAT(text_thrown_by<error>([&] { among.recv(room.as_read_only(), 0); }), HasSubstr("read-only"));
      among.recv(room, 0);
      EXPECT_EQ(room.to_vector<float>(), own.to_vector<float>());
    }
  });
}

TEST_P(GroupOverlap, SeveralTensorsThatOverlapAreRefused) {
  run([](group& among) {
    const auto all = numbers(3 * rows());
    const auto call = [&](bool overlapping) {
      const std::vector<tensor> list = {all.slice(0, rows()), tensor::zeros<float>({5}),
                                        all.slice(overlapping ? rows() - 1 : rows(), 3 * rows() - 1)};
      const std::vector<tensor> apart = {list[0], list[1], all.slice(rows(), 3 * rows())};
      among.all_reduce(overlapping ? std::span(list) : std::span(apart));
    };
    // Of other shapes where it does not overlap, so that nothing is done in any case.
    const auto before = all.to_vector<float>();
    const auto text = text_thrown_by<error>([&] { call(true); });
    EXPECT_THAT(text, AllOf(HasSubstr("tensor 0 of 3"), HasSubstr("at bytes 0 to " + std::to_string(8 * rows())),
                            HasSubstr("tensor 2"), HasSubstr("at bytes " + std::to_string(8 * rows() - 8) + " to")));
    EXPECT_EQ(all.to_vector<float>(), before);
    const auto by_one = text_thrown_by<error>([&] { call(among.rank() == 2); });
    EXPECT_THAT(by_one, AllOf(HasSubstr("tensor 0 of 3"), HasSubstr("tensor 2")));
    EXPECT_EQ(all.to_vector<float>(), before);
  });
}

TEST_P(GroupOverlap, ATensorThatIsThereTwiceIsCombinedOnceIfItIsSoOnAllRanks) {
  run([](group& among) {
    const auto one = tensor::ones<float>({rows()});
    const auto other = tensor::ones<float>({rows()});
    const std::vector<tensor> twice = {one, other, one};
    const std::vector<tensor> apart = {one, other, one.clone()};
    among.all_reduce(twice);
    EXPECT_EQ(one.at<float>(rows() - 1), ranks);
    EXPECT_EQ(other.at<float>(0), ranks);
    const auto text = text_thrown_by<error>([&] { among.all_reduce(among.rank() == 1 ? twice : apart); });
    EXPECT_THAT(text, AllOf(HasSubstr("tensor 2 is ("), HasSubstr("which is tensor 0 again, on rank 1")));
    EXPECT_EQ(one.at<float>(0), ranks);
  });
}

TEST_P(GroupOverlap, SeveralTensorsThatLieBetweenOneAnotherAreCombined) {
  run([](group& among) {
    const auto all = tensor::ones<float>({rows(), 4});
    std::vector<tensor> columns;
    for (std::size_t each = 0; each < 4; ++each) columns.push_back(all.slice(each, each + 1, 1));
    among.all_reduce(columns);
    EXPECT_EQ(all.to_vector<float>(), std::vector<float>(4 * rows(), ranks));
  });
}

// ---- what moves

TEST_P(GroupOverlap, AllGatherFromOnesOwnRowsIsDoneAndFromOthersIsRefused) {
  run([](group& among) {
    const auto self = among.rank();
    const auto own = numbers(rows());
    const auto all = tensor::zeros<float>({ranks * rows(), 2});
    const auto mine = all.slice(self * rows(), (self + 1) * rows());
    mine.copy_from(own);
    among.all_gather(mine, all);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(all.slice(rank * rows(), (rank + 1) * rows()).to_vector<float>(), own.to_vector<float>());
    }
    const auto next = (self + 1) % ranks;
    const auto foreign = [&](bool overlapping) {
      among.all_gather(overlapping ? all.slice(next * rows(), (next + 1) * rows()) : own, all);
    };
    const auto row = 2 * rows();
    expect_refused(all, foreign, self, "one tensor is elements ", " are its own");
    EXPECT_THAT(text_thrown_by<error>([&] { foreign(true); }),
                AllOf(HasSubstr("of rank 0 one tensor is elements " + std::to_string(row) + " to " +
                                std::to_string(2 * row) + " of the other"),
                      HasSubstr("elements 0 to " + std::to_string(row) + " are its own")));
    const auto shifted = [&](bool overlapping) {
      const auto flat = all.reshape({2 * ranks * rows()});
      among.all_gather(overlapping ? flat.slice(1, 1 + row).reshape({rows(), 2}) : own, all);
    };
    expect_refused(all, shifted, self, "the input, f32 (", "lies at bytes 4 to");
  });
}

TEST_P(GroupOverlap, GatherFromTheRootsOwnRowsIsDoneAndFromOthersIsRefused) {
  run([](group& among) {
    const auto self = among.rank();
    const auto own = numbers(rows());
    const auto all = tensor::zeros<float>({ranks * rows(), 2});
    const auto mine = all.slice(rows(), 2 * rows());
    mine.copy_from(own);
    among.gather(self == 1 ? mine : own, all, 1);
    EXPECT_EQ(all.slice(2 * rows(), 3 * rows()).to_vector<float>(),
              self == 1 ? own.to_vector<float>() : std::vector<float>(2 * rows(), 0));
    const auto call = [&](bool overlapping) { among.gather(overlapping ? all.slice(0, rows()) : own, all, 1); };
    expect_refused(all, call, self, "of rank 1 one tensor is elements 0 to", " are its own");
    among.gather(self == 1 ? mine : all.slice(0, rows()), all, 1);  // the others have nothing to write
  });
}

TEST_P(GroupOverlap, ScatterIntoTheRootsOwnRowsIsDoneAndIntoOthersIsRefused) {
  run([](group& among) {
    const auto self = among.rank();
    const auto all = numbers(ranks * rows());
    const auto before = all.to_vector<float>();
    const auto out = self == 1 ? all.slice(rows(), 2 * rows()) : tensor::zeros<float>({rows(), 2});
    among.scatter(all, out, 1);
    EXPECT_EQ(out.at<float>(0, 0), static_cast<float>(2 * self * rows()));
    EXPECT_EQ(all.to_vector<float>(), before);
    const auto call = [&](bool overlapping) {
      among.scatter(all, overlapping ? all.slice(0, rows()) : tensor::zeros<float>({rows(), 2}), 1);
    };
    expect_refused(all, call, self, "of rank 1 one tensor is elements 0 to", " are its own");
    const auto flat = all.reshape({2 * ranks * rows()});
    const auto shifted = [&](bool overlapping) {
      const auto part = flat.slice(1, 1 + 2 * rows()).reshape({rows(), 2});
      among.scatter(all, overlapping ? part : tensor::zeros<float>({rows(), 2}), 1);
    };
    expect_refused(all, shifted, self, "the output, f32 (", "lies at bytes 4 to");
  });
}

TEST_P(GroupOverlap, ReduceScatterIntoOnesOwnRowsIsDoneAndIntoOthersIsRefused) {
  run([](group& among) {
    const auto self = among.rank();
    const auto all = numbers(ranks * rows());
    const auto in = all.clone();
    const auto own = in.slice(self * rows(), (self + 1) * rows());
    among.reduce_scatter(in, own);
    EXPECT_EQ(own.at<float>(rows() - 1, 1), ranks * all.at<float>((self + 1) * rows() - 1, 1));
    EXPECT_EQ(own.at<float>(0, 0), ranks * all.at<float>(self * rows(), 0));
    const auto next = (self + 1) % ranks;
    const auto foreign = [&](bool overlapping) {
      const auto apart = tensor::zeros<float>({rows(), 2});
      among.reduce_scatter(all, overlapping ? all.slice(next * rows(), (next + 1) * rows()) : apart);
    };
    expect_refused(all, foreign, self, "one tensor is elements ", " are its own");
    const auto shifted = [&](bool overlapping) {
      const auto part = all.reshape({2 * ranks * rows()}).slice(1, 1 + 2 * rows()).reshape({rows(), 2});
      among.reduce_scatter(all, overlapping ? part : tensor::zeros<float>({rows(), 2}));
    };
    expect_refused(all, shifted, self, "the output, f32 (", "lies at bytes 4 to");
  });
}

TEST_P(GroupOverlap, AllToAllInPlaceIsDoneAndShiftedIsRefused) {
  run([](group& among) {
    const auto self = among.rank();
    const auto all = numbers(ranks * rows() + 1);
    const auto first = all.slice(0, ranks * rows());
    const auto expected = tensor::zeros<float>({ranks * rows(), 2});
    among.all_to_all(first, expected);
    const auto in_place = first.clone();
    among.all_to_all(in_place, in_place);
    EXPECT_EQ(in_place.to_vector<float>(), expected.to_vector<float>());
    const auto call = [&](bool overlapping) {
      among.all_to_all(first, overlapping ? all.slice(1, ranks * rows() + 1) : expected.clone());
    };
    expect_refused(all, call, self, "at bytes 0 to", "at bytes 8 to");
  });
}

TEST_P(GroupOverlap, AllToAllIntoMoreOrFewerOfTheSameRowsIsDone) {
  run([](group& among) {
    const auto self = among.rank();
    const auto sent = ranks * rows() * (self + 1);  // rank r sends so many to each
    const auto taken = rows() * (1 + 2 + 3);
    const auto memory = numbers(std::max(sent, taken));
    const auto expected = tensor::zeros<float>({taken, 2});
    among.all_to_all(memory.slice(0, sent), expected);
    among.all_to_all(memory.slice(0, sent), memory.slice(0, taken));
    EXPECT_EQ(memory.slice(0, taken).to_vector<float>(), expected.to_vector<float>());
  });
}

TEST_P(GroupOverlap, RowsOfAColumnSliceAreOnesOwnTooAndStridedResultsAreWrittenWhenAllHaveRead) {
  run([](group& among) {
    const auto self = among.rank();
    const auto wide = tensor::full<float>({ranks * rows(), 4}, static_cast<float>(self));
    const auto left = wide.slice(0, 2, 1);
    const auto right = wide.slice(2, 4, 1);
    among.all_gather(left.slice(self * rows(), (self + 1) * rows()), left);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(left.at<float>(rank * rows(), 1), static_cast<float>(rank));
    }
    among.all_gather(right.slice(0, rows()), left);
    EXPECT_EQ(left.at<float>(ranks * rows() - 1, 1), 2);
    among.reduce_scatter(left, left.slice(self * rows(), (self + 1) * rows()));
    EXPECT_EQ(left.at<float>(self * rows(), 0), static_cast<float>(3 * self));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupOverlap, testing::ValuesIn(cases()), name_of);

// ---- memory of several ranks

constexpr std::size_t longer = 4000;

tensor one_for_all() { return tensor::full<float>({ranks * longer}, 1); }

TEST(GroupOverlapOfRanks, WhatAnotherReadsIsNotWritten) {
  const auto all = one_for_all();
  run_group(rank_kind::threads, ranks, [&](group& among) {
    const auto self = among.rank();
    const auto part = [&](std::size_t rank) { return all.slice(rank * longer, (rank + 1) * longer); };
    const auto refused = [&](const std::function<void()>& call) {
      EXPECT_THAT(text_thrown_by<error>(call),
                  AllOf(HasSubstr("tensors of different ranks overlap: bytes "), HasSubstr("which rank "),
                        HasSubstr(" writes"), HasSubstr("of the same memory")));
      among.barrier();
      EXPECT_EQ(all.to_vector<float>(), std::vector<float>(ranks * longer, 1));
    };
    const auto apart = tensor::zeros<float>({longer});
    refused([&] { among.all_reduce(part(self), part((self + 1) % ranks)); });
    refused([&] { among.all_reduce(part(0)); });
    refused([&] { among.reduce(part(self), self == 0 ? part(2) : apart, 0); });
    refused([&] { among.broadcast(part(0), 1); });
    refused([&] { among.all_gather(part(self), all); });
    refused([&] { among.gather(part(self), self == 0 ? all : apart, 0); });
    refused([&] { among.scatter(all, self == 0 ? part(0) : part(self), 0); });
    refused([&] { among.reduce_scatter(self == 0 ? all : all.clone(), self == 1 ? part(0) : apart); });
    refused([&] { among.all_to_all(self == 0 ? all : all.clone(), self == 1 ? all : all.clone()); });
    // What all read, and parts of one tensor, are no ranks' alone.
    among.all_reduce(part(0), apart);
    EXPECT_EQ(apart.at<float>(longer - 1), ranks);
    among.barrier();
    among.all_reduce(part(self));
    EXPECT_EQ(part(self).at<float>(0), ranks);
  });
}

}  // namespace
}  // namespace muster::group_overlap_test
