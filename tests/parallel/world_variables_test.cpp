// SPDX-License-Identifier: BSL-1.0
// Variables of worlds: collectives on them, and updates.
#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <type_traits>

#include "../collectives/combine_reference.hpp"
#include "world_support.hpp"

namespace muster::world_variables_test {
namespace {

using test::in_worlds;
using test::noise;
using test::refusal;
using test::total;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Runs a test in worlds of 1 to 4 ranks, for every rank that the caller can be, and for none.
template <class Test>
void for_every_master(const Test& test) {
  for (unsigned ranks = 1; ranks <= 4; ++ranks) {
    for (unsigned master = 0; master <= ranks; ++master) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, caller " << master);
      world w({.ranks = ranks, .master_rank = master % ranks, .caller_computes = master < ranks});
      test(w);
    }
  }
}

std::vector<float> part_of_values(const tensor& x, std::size_t rank, std::size_t ranks) {
  const auto part = part_of({0, x.rows()}, rank, ranks);
  return x.slice(part.first, part.last).to_vector<float>();
}

TEST(WorldVariables, WhatIsScatteredIsGatheredForEveryMaster) {
  for_every_master([](world& w) {
    for (const std::size_t more : {0U, 3U}) {
      const auto x = noise({8 * w.ranks() + more, 4});
      auto v = w.scattered("v", x);
      EXPECT_TRUE(v.is_scattered());
      EXPECT_EQ(w.gather(v, 0).to_vector<float>(), x.to_vector<float>());
      const auto lengths = w.get_lengths(v);
      EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), 8 * w.ranks() + more);
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        EXPECT_EQ(w.get_value(rank, v).to_vector<float>(), part_of_values(x, rank, w.ranks()));
        EXPECT_EQ(w.get_shapes(v)[rank], (tensor_shape{lengths[rank], 4}));
      }
    }
  });
}

TEST(WorldVariables, RanksSeeTheirShares) {
  for_every_master([](world& w) {
    const auto x = noise({8 * w.ranks() + 3, 4});
    auto v = w.scattered("v", x);
    auto f = w.function([](const tensor& share) { return share; }, replicas(v), outputs(none("share")));
    for (int round = 0; round < 2; ++round) {
      const auto shares = f();
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        EXPECT_EQ(shares[rank].to_vector<float>(), w.get_value(rank, v).to_vector<float>());
      }
      w.scatter(v, noise({5 * w.ranks() + 1, 4}, 3));  // other lengths
    }
  });
}

TEST(WorldVariables, AllReduceGivesTheMeanOfTheRanksToAll) {
  for_every_master([](world& w) {
    auto x = tensor::arange<float>(0, static_cast<float>(8 * w.ranks())).reshape({8 * w.ranks(), 1});
    auto v = w.scattered("v", x);
    w.all_reduce(v);
    const auto shift = 4.0F * static_cast<float>(w.ranks() - 1);
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      for (std::size_t row = 0; row < 8; ++row) {
        EXPECT_EQ(w.get_value(rank, v).at<float>(row, 0), static_cast<float>(row) + shift);
      }
    }
  });
}

TEST(WorldVariables, ReduceChangesTheMasterAloneOrNobody) {
  for_every_master([](world& w) {
    auto v = w.scattered("v", tensor::ones<float>({2 * w.ranks()}));
    const auto count = static_cast<float>(w.ranks());
    EXPECT_THAT(w.reduce(v, sum).to_vector<float>(), Each(count));
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(1));
    w.reduce_in_place(v, sum);
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      EXPECT_THAT(w.get_value(rank, v).to_vector<float>(), Each(rank == w.master_rank() ? count : 1));
    }
    EXPECT_EQ(w.reduce(v, max).at<float>(0), count);
    EXPECT_EQ(w.reduce(v, min).at<float>(0), 1);
    EXPECT_EQ(w.reduce(v, prod).at<float>(0), count);
  });
}

TEST(WorldVariables, SetValueChangesOneRankOnly) {
  for_every_master([](world& w) {
    auto v = w.replicate("v", tensor::zeros<float>({3, 2}));
    for (std::size_t changed = 0; changed < w.ranks(); ++changed) {
      w.set_value(changed, v, tensor::ones<float>({3, 2}));
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        EXPECT_THAT(w.get_value(rank, v).to_vector<float>(), Each(rank <= changed ? 1 : 0));
      }
    }
    w.set_value(0, v, tensor::arange<float>(0, 10).reshape({5, 2}), row_range{1, 3});  // of another length
    EXPECT_EQ(w.get_value(0, v).to_vector<float>(), (std::vector<float>{2, 3, 4, 5}));
    EXPECT_EQ(w.get_lengths(v)[0], 2U);
    auto f = w.function([](const tensor& value) { return total(value); }, replicas(v), outputs(none("total")));
    EXPECT_EQ(f()[0], 14.0F);
  });
}

// Lists were what the predecessor's ranks could not read unless they had been called before.
TEST(WorldVariables, RowsOfAListAreDealtOutAndSetInItsOrderWithRepeats) {
  for_every_master([](world& w) {
    const auto x = noise({30, 4});
    const std::vector chosen = {7, 29, 0, 7, 7, 3, 11, 2, 28};
    std::vector<float> wanted;
    for (const auto row : chosen) {
      const auto values = x.row(static_cast<std::size_t>(row)).to_vector<float>();
      wanted.insert(wanted.end(), values.begin(), values.end());
    }
    const auto made_so = w.scattered("made", x, chosen);
    EXPECT_EQ(w.gather(made_so, 0).to_vector<float>(), wanted);
    const auto v = w.scattered("v", x);
    w.scatter(v, x, chosen);
    EXPECT_EQ(w.gather(v, 0).to_vector<float>(), wanted);
    const auto lengths = w.get_lengths(v);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), chosen.size());

    const auto last = w.ranks() - 1;
    w.set_value(last, v, x, chosen);
    EXPECT_EQ(w.get_value(last, v).to_vector<float>(), wanted);
    const std::array both{v, w.replicate("u", x)};
    w.set_value(0, both, std::array{x, x}, std::vector<std::size_t>{29});
    EXPECT_EQ(w.get_value(0, both[1]).to_vector<float>(), x.row(29).to_vector<float>());
    w.scatter(std::span(both).first(1), std::array{x}, std::vector<std::int64_t>{3, 11});
    EXPECT_EQ(w.gather(v, 0).to_vector<float>(),
              std::vector<float>(wanted.begin() + std::ptrdiff_t{5 * 4}, wanted.begin() + std::ptrdiff_t{7 * 4}));
  });
}

// As what a store has is.
TEST(WorldVariables, ReadOnlyTensorsAreTakenForInputsAndValues) {
  for_every_master([](world& w) {
    const auto x = noise({30, 4});
    const auto same = x.as_read_only();
    const std::vector<std::int64_t> chosen = {7, 29, 0, 7, 3};
    const auto rows_chosen = w.gather(w.scattered("chosen", x, chosen), 0).to_vector<float>();
    EXPECT_EQ(w.gather(w.scattered("made", same, chosen), 0).to_vector<float>(), rows_chosen);
    const auto v = w.scattered("v", same);
    EXPECT_EQ(w.gather(v, 0).to_vector<float>(), x.to_vector<float>());
    w.set_value(0, v, same, chosen);
    EXPECT_EQ(w.get_value(0, v).to_vector<float>(), rows_chosen);
    auto f = w.function([](const tensor& share) { return share.clone(); }, rows("x"), outputs(gather("share")));
    EXPECT_EQ(f(same).to_vector<float>(), x.to_vector<float>());
    EXPECT_EQ(f.with({.batch = chosen})(same).to_vector<float>(), rows_chosen);
    auto sums = w.function([](const tensor& share) { return share; }, rows("x"), outputs(sum("share")));
    EXPECT_EQ(sums.with({.batch = row_range{0, w.ranks()}})(same).size(), 4U);
  });
}

TEST(WorldVariables, RowsThatAreNotThereAreRefusedAndNothingChanges) {
  in_worlds({1, 3}, [](world& w) {
    const auto x = noise({9, 2});
    const auto v = w.scattered("v", x);
    const auto refused = [&](const row_selection& batch) {
      const auto why = refusal([&] { w.scatter(v, x, batch); });
      EXPECT_THAT(why, AllOf(HasSubstr("'v'"), HasSubstr("9")));
      EXPECT_EQ(refusal([&] { w.set_value(0, v, x, batch); }), why);
      EXPECT_EQ(w.gather(v, 0).to_vector<float>(), x.to_vector<float>());
      return why;
    };
    EXPECT_THAT(refused(std::vector{3, 9}), AllOf(HasSubstr("no row 9"), HasSubstr("place 1")));
    EXPECT_THAT(refused(std::vector{-1}), AllOf(HasSubstr("no row -1"), HasSubstr("place 0")));
    EXPECT_THAT(refused(std::vector<int>{}), HasSubstr("empty list"));
    EXPECT_THAT(refused(row_range{3, 1}), HasSubstr("rows 3 to before 1"));
    EXPECT_THAT(refused(0), HasSubstr("first 0 rows"));
    EXPECT_THAT(refused(10), HasSubstr("no row 9"));
  });
}

TEST(WorldVariables, AllGatherGivesEveryRankAllRows) {
  for_every_master([](world& w) {
    for (const std::size_t more : {0U, 3U}) {
      const auto x = noise({8 * w.ranks() + more, 4});
      auto v = w.scattered("v", x);
      w.all_gather(v);
      EXPECT_THAT(w.get_shapes(v), Each(tensor_shape{8 * w.ranks() + more, 4}));
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        EXPECT_EQ(w.get_value(rank, v).to_vector<float>(), x.to_vector<float>());
      }
    }
  });
}

TEST(WorldVariables, SharesOfDifferentLengthsAreNotReduced) {
  in_worlds({2, 4, 5}, [](world& w) {
    const auto x = noise({8 * w.ranks() + 3, 4});
    auto v = w.scattered("v", x);
    EXPECT_THAT(refusal([&] { w.all_reduce(v); }),
                AllOf(HasSubstr("'v'"), HasSubstr(", 4) in rank 0 and ("), HasSubstr(", 4) in rank ")));
    EXPECT_THAT(refusal([&] { static_cast<void>(w.reduce(v, sum)); }), HasSubstr("'v'"));
    EXPECT_THAT(refusal([&] { static_cast<void>(w.gather(v, 1)); }), HasSubstr("'v'"));
    EXPECT_EQ(w.gather(v, 0).to_vector<float>(), x.to_vector<float>());
  });
}

TEST(WorldVariables, CollectivesTakeSeveralVariablesAndAnyNumberOfDimensions) {
  in_worlds({1, 3, 4}, [](world& w) {
    const std::vector both = {w.replicate("scalar", tensor::full<double>({}, 2.0)),
                              w.replicate("deep", tensor::full<double>({2, 1, 3, 2}, 3.0))};
    w.all_reduce(both, sum);
    const auto found = w.gather(both);
    EXPECT_EQ(found[0].shape(), tensor_shape{w.ranks()});
    EXPECT_EQ(found[1].shape(), (tensor_shape{w.ranks(), 2, 1, 3, 2}));
    EXPECT_THAT(found[0].to_vector<double>(), Each(2.0 * static_cast<double>(w.ranks())));
    EXPECT_THAT(found[1].to_vector<double>(), Each(3.0 * static_cast<double>(w.ranks())));
    w.reduce_in_place(both, avg);
    w.broadcast(both);
    EXPECT_THAT(w.gather(both[1]).to_vector<double>(), Each(3.0 * static_cast<double>(w.ranks())));
    EXPECT_THAT(refusal([&] { static_cast<void>(w.get_lengths(both[0])); }), HasSubstr("'scalar'"));
    EXPECT_THAT(refusal([&] { static_cast<void>(w.gather(both[0], 0)); }), HasSubstr("'scalar'"));
    EXPECT_THAT(refusal([&] { static_cast<void>(w.gather(both[0], 2)); }), HasSubstr("'scalar'"));
  });
}

TEST(WorldVariables, SeveralAreGivenTheirValuesInOneCallIfThereAreAsMany) {
  in_worlds({1, 3}, [](world& w) {
    const std::array both{w.replicate("one", tensor::zeros<float>({2})),
                          w.replicate("other", tensor::zeros<float>({3}))};
    const std::array values{tensor::full<float>({2}, 1), tensor::full<float>({3}, 2)};
    w.broadcast(both, values);
    EXPECT_THAT(w.get_value(w.ranks() - 1, both[1]).to_vector<float>(), ElementsAre(2, 2, 2));
    w.set_value(0, both, std::array{values[0], tensor::full<float>({3}, 7)});
    EXPECT_THAT(w.get_value(0, both[1]).to_vector<float>(), ElementsAre(7, 7, 7));
    EXPECT_THAT(refusal([&] { w.broadcast(both, std::array{values[1]}); }),
                HasSubstr("2 variables were given 1 values"));
    EXPECT_THAT(w.get_value(0, both[1]).to_vector<float>(), ElementsAre(7, 7, 7));

    const std::array shares{w.scattered("x", tensor::zeros<float>({4})),
                            w.scattered("y", tensor::zeros<float>({4, 2}))};
    w.scatter(shares, std::array{tensor::arange<float>(0, 5), tensor::ones<float>({7, 2})}, 3);
    EXPECT_THAT(w.gather(shares[0], 0).to_vector<float>(), ElementsAre(0, 1, 2));
    EXPECT_EQ(w.gather(shares[1], 0).shape(), (tensor_shape{3, 2}));
  });
}

TEST(WorldVariables, SeveralAreAskedForInOneCall) {
  in_worlds({1, 3}, [](world& w) {
    const std::array both{w.replicate("one", tensor::full<float>({2}, 1)),
                          w.scattered("rows", tensor::ones<float>({3, 2}))};
    EXPECT_THAT(w.get_value(0, both)[0].to_vector<float>(), ElementsAre(1, 1));
    EXPECT_EQ(w.get_lengths(both)[1], w.get_lengths(both[1]));
    EXPECT_EQ(w.get_shapes(both)[1], w.get_shapes(both[1]));
    const auto sums = w.reduce(both, sum);
    EXPECT_THAT(sums[0].to_vector<float>(), Each(static_cast<float>(w.ranks())));
    EXPECT_EQ(sums[1].shape(), (tensor_shape{3 / w.ranks(), 2}));
    w.set_value(0, both, std::array{tensor::arange<float>(0, 5), tensor::zeros<float>({9, 2})}, row_range{1, 3});
    EXPECT_THAT(w.get_value(0, both[0]).to_vector<float>(), ElementsAre(1, 2));
    EXPECT_EQ(w.get_lengths(both[1])[0], 2U);
  });
}

TEST(WorldVariables, GivenTwiceAreRefusedAndNothingChanges) {
  world w({.ranks = 2});
  const auto v = w.replicate("v", tensor::full<float>({2}, 1));
  const std::array twice{w.replicate("u", tensor::full<float>({2}, 1)), v, v};
  EXPECT_THAT(refusal([&] { w.all_reduce(twice, sum); }), AllOf(HasSubstr("'v'"), HasSubstr("number 1 and 2")));
  EXPECT_THAT(refusal([&] { static_cast<void>(w.get_value(0, twice)); }), HasSubstr("'v'"));
  EXPECT_THAT(w.get_value(1, twice[0]).to_vector<float>(), ElementsAre(1, 1));
}

TEST(WorldVariables, WhatDoesNotFitOneOfSeveralIsRefusedBeforeAnyOfThemChanges) {
  using several = std::span<const variable>;
  in_worlds({2, 3}, [](world& w) {
    world other({.ranks = 1});
    const auto strange = other.replicate("strange", tensor::ones<float>({2, 2}));
    const auto x = noise({2 * w.ranks(), 2});
    const auto good = w.scattered("good", x);  // another value in each rank, so that whatever becomes of it is seen
    const auto ragged = w.scattered("ragged", noise({2 * w.ranks() + 1, 2}));
    const auto scalar = w.replicate("scalar", tensor::ones<float>({}));
    const auto uneven = w.scattered("uneven", x);
    w.set_value(1, uneven, noise({2, 3}));
    const auto expect_refused = [&](const variable& bad, const auto& call) {
      EXPECT_THAT(refusal([&] { call(std::array{good, bad}); }), HasSubstr("'" + bad.name() + "'"));
      EXPECT_EQ(w.gather(good, 0).to_vector<float>(), x.to_vector<float>());
      EXPECT_THAT(w.get_lengths(good), Each(2));
    };

    const auto broadcast = [&](several both) { w.broadcast(both); };
    const auto all_gather = [&](several both) { w.all_gather(both); };
    const auto reduce_in_place = [&](several both) { w.reduce_in_place(both, sum); };
    const auto all_reduce = [&](several both) { w.all_reduce(both, sum); };
    expect_refused(strange, broadcast);
    expect_refused(strange, all_gather);
    expect_refused(scalar, all_gather);
    expect_refused(uneven, all_gather);
    expect_refused(strange, reduce_in_place);
    expect_refused(ragged, reduce_in_place);
    expect_refused(strange, all_reduce);
    expect_refused(ragged, all_reduce);

    const auto values_with = [](const tensor& second) { return std::array{tensor::ones<float>({5, 2}), second}; };
    const auto expect_all_refused = [&](const variable& bad, const tensor& second, const row_selection& batch = {}) {
      const auto values = values_with(second);
      if (batch.is_all()) expect_refused(bad, [&](several both) { w.broadcast(both, values); });
      expect_refused(bad, [&](several both) { w.scatter(both, values, batch); });
      expect_refused(bad, [&](several both) { w.set_value(0, both, values, batch); });
    };
    expect_all_refused(strange, tensor::ones<float>({5, 2}));
    expect_all_refused(ragged, tensor::ones<double>({5, 2}));
    expect_all_refused(ragged, tensor::ones<float>({5}));
    expect_all_refused(ragged, tensor::ones<float>({3, 2}), row_range{2, 5});
    expect_all_refused(ragged, tensor::ones<float>({3, 2}), std::vector{4, 1});
    expect_all_refused(ragged, tensor::ones<float>({}), 2);
    const auto no_rows = values_with(tensor::ones<float>({}));
    expect_refused(scalar, [&](several both) { w.scatter(both, no_rows); });

    all_reduce(std::array{good, scalar});
    EXPECT_EQ(w.get_value(1, good).to_vector<float>(), w.get_value(0, good).to_vector<float>());
    EXPECT_THAT(w.gather(scalar).to_vector<float>(), Each(static_cast<float>(w.ranks())));
  });
}

TEST(WorldVariables, CollectivesNameWhatDoesNotFit) {
  world w({.ranks = 2});
  world other({.ranks = 1});
  auto v = w.replicate("v", tensor::zeros<float>({3}));
  EXPECT_THAT(refusal([&] { static_cast<void>(other.get_value(0, v)); }), AllOf(HasSubstr("'v'"), HasSubstr("world")));
  EXPECT_THAT(refusal([&] { static_cast<void>(w.get_value(2, v)); }), AllOf(HasSubstr("'v'"), HasSubstr("rank 2")));
  EXPECT_THAT(refusal([&] { w.set_value(2, v, tensor::zeros<float>({3})); }), HasSubstr("rank 2"));
  EXPECT_THAT(refusal([&] { w.broadcast(v, tensor::zeros<double>({3})); }), AllOf(HasSubstr("f64"), HasSubstr("f32")));
  EXPECT_THAT(refusal([&] { w.broadcast(v, tensor::zeros<float>({3, 1})); }), HasSubstr("dimensions"));
  EXPECT_THAT(refusal([&] { w.scatter(v, tensor::zeros<float>({})); }), HasSubstr("'v'"));
  EXPECT_THAT(refusal([&] { w.scatter(v, tensor::zeros<float>({3, 1})); }), HasSubstr("dimensions"));
  EXPECT_THAT(refusal([&] { w.scatter(v, tensor::zeros<float>({3}), row_range{1, 4}); }),
              AllOf(HasSubstr("'v'"), HasSubstr("row 3"), HasSubstr("3 rows")));
  EXPECT_THAT(refusal([&] { w.all_reduce(v, gather); }), AllOf(HasSubstr("'v'"), HasSubstr("gather")));
  EXPECT_THAT(w.gather(v).to_vector<float>(), Each(0));
}

TEST(WorldVariables, WhatFindsNoRoomChangesNoRank) {
  const auto small = domain::of_program({.arena_bytes = std::size_t{16} << 20U});
  world w({.ranks = 2});
  auto v = w.replicate("v", tensor::full<float>({1000}, 1.0F));
  auto f = w.function([](const tensor& old) { return tensor::full<float>({old.size()}, old.at<float>(0) + 1); },
                      replicas(v), updates(assign(v)));
  f();
  const auto large = tensor::full<float>({std::size_t{5} << 18U}, 7.0F, memory::local);
  EXPECT_THAT(test::text_of(errc::out_of_memory, [&] { w.broadcast(v, large); }), HasSubstr("5"));
  EXPECT_THAT(w.gather(v).to_vector<float>(), Each(2));
  f();
  EXPECT_THAT(w.get_lengths(v), Each(1000));
  EXPECT_THAT(w.gather(v).to_vector<float>(), Each(3));
}

TEST(WorldVariables, WhatNoFunctionUpdatesTakesItsMemoryOnce) {
  const auto small = domain::of_program({.arena_bytes = std::size_t{16} << 20U});
  world w({.ranks = 2});
  const auto large = tensor::full<float>({std::size_t{5} << 19U}, 1, memory::local);  // 10 MiB
  const auto x = w.scattered("x", large);
  auto f = w.function([](const tensor& rows) { return total(rows); }, sliceable(x), outputs(sum("sum")));
  EXPECT_EQ(f(), static_cast<float>(large.size()));
  // What is updated has room for what it is to be, whatever its shape becomes.
  const auto v = w.scattered("v", tensor::zeros<float>({4}));
  auto g = w.function([](const tensor& old) { return tensor::full<float>(old.shape(), old.at<float>(0) + 1); },
                      replicas(v), updates(assign(v)));
  g();
  w.scatter(v, tensor::ones<float>({100}));
  g();
  EXPECT_THAT(w.gather(v, 0).to_vector<float>(), Each(2));
}

TEST(WorldVariables, TheMemoryOfWhatIsGoneIsThereForWhoeverNeedsIt) {
  const auto small = domain::of_program({.arena_bytes = std::size_t{20} << 20U});
  world w({.ranks = 2});
  const auto large = tensor::full<float>({std::size_t{3} << 19U}, 1, memory::local);  // 6 MiB
  const auto sums = static_cast<float>(2 * large.size());
  const auto use_and_drop = [&] {
    const auto v = w.replicate("v", large);
    auto f = w.function([](const tensor& value) { return total(value); }, replicas(v), outputs(sum("sum")));
    EXPECT_EQ(f(), sums);
  };
  use_and_drop();
  use_and_drop();  // another one where the first was
  {
    const auto x = w.scattered("x", tensor::full<float>({2 * large.size()}, 1, memory::local));
    auto f = w.function([](const tensor& share) { return total(share); }, sliceable(x), outputs(sum("sum")));
    EXPECT_EQ(f(), sums);
  }
  const auto v = w.replicate("v", tensor::ones<float>({4}));
  auto of_v = w.function([](const tensor& value) { return total(value); }, replicas(v), outputs(sum("sum")));
  w.broadcast(v, large);
  EXPECT_EQ(of_v(), sums);
  w.broadcast(v, tensor::ones<float>({4}));
  use_and_drop();
  auto of_rows = w.function([](const tensor& given) { return total(given); }, rows("x"), outputs(sum("sum")));
  EXPECT_EQ(of_rows(large), static_cast<float>(large.size()));  // which is copied into shared memory
  EXPECT_EQ(of_v(), 8.0F);
}

TEST(WorldVariables, TheMemoryThatOneOfSeveralHadIsThereForTheNext) {
  const auto small = domain::of_program({.arena_bytes = std::size_t{20} << 20U});
  world w({.ranks = 2});
  const auto of_ones = [](std::size_t size) { return tensor::ones<float>({size}, memory::local); };
  constexpr std::size_t size = std::size_t{3} << 18U;  // 3 MiB
  const std::vector both{w.replicate("a", of_ones(size)), w.replicate("b", of_ones(size))};
  const auto f = w.function([](const tensor& a, const tensor& b) { return total(a) + total(b); },
                            replicas(both[0], both[1]), outputs(sum("sum")));
  EXPECT_EQ(f(), static_cast<float>(4 * size));
  w.broadcast(both, std::vector{of_ones(size - 2), of_ones(size - 2)});  // together they would not fit
  EXPECT_EQ(f(), static_cast<float>(4 * (size - 2)));
}

TEST(WorldVariables, RanksHoldTheCopiesOfOthersOnlyWhereTheyWriteIntoThem) {
  // 240 copies, of which three ranks hold 60 each, and the caller these too; with those of others it would be 1200.
  const auto small = domain::of_program({.arena_bytes = std::size_t{64} << 20U, .max_blocks = 1024});
  world w({.ranks = 4});
  const auto make = [&](const variable& v) {
    return w.function([](const tensor& old) { return tensor::full<float>(old.shape(), old.at<float>(0) + 1); },
                      replicas(v), updates(assign(v)));
  };
  std::vector<variable> all;
  std::vector<decltype(make(all.front()))> functions;
  for (int each = 0; each < 30; ++each) {
    all.push_back(w.replicate("v", tensor::zeros<float>({3})));
    functions.push_back(make(all.back()));
  }
  for (const auto& f : functions) f();
  for (const auto& v : all) EXPECT_THAT(w.gather(v).to_vector<float>(), Each(1));
  // Ranks that know the variable are told of the others' copies.
  auto g = w.function([](const tensor& old) { return tensor::ones<float>(old.shape()); }, replicas(all[7]),
                      updates(reduced_into(all[7], sum, sgd{.rate = 1})));
  g();
  functions[7]();
  g();
  EXPECT_THAT(w.gather(all[7]).to_vector<float>(), Each(1 - 4 + 1 - 4));
}

TEST(WorldVariables, ABroadcastOfTheMastersValueUndoesNoCallOfAnotherThread) {
  world w({.ranks = 2});
  auto v = w.replicate("v", tensor::zeros<float>({1}));
  auto f = w.function([](const tensor& old) { return tensor::full<float>({1}, old.at<float>(0) + 1); }, replicas(v),
                      updates(assign(v)));
  constexpr int calls = 500;
  std::jthread other([&] {
    for (int call = 0; call < calls; ++call) f();
  });
  for (int round = 0; round < calls; ++round) w.broadcast(v);
  other.join();
  EXPECT_THAT(w.gather(v).to_vector<float>(), Each(calls));
}

std::tuple<tensor, tensor, tensor, float> statistics(const tensor& x) {
  const auto values = x.span<float>();
  const auto sum_of_rows = total(x);
  const auto most = *std::ranges::max_element(values);
  const auto mean = sum_of_rows / static_cast<float>(values.size());
  const auto scalar = [](float value) { return tensor::full<float>({}, value); };
  return {scalar(sum_of_rows), scalar(most), scalar(mean), sum_of_rows};
}

TEST(WorldVariables, LocalUpdatesAreTheSameForAnySlicesAndWhateverOutputsAreAskedFor) {
  const auto x = tensor::arange<float>(1, 9);
  for (const auto who : {test::caller::first, test::caller::last, test::caller::none}) {
    world w(test::options_for(2, who));
    const auto zero = tensor::zeros<float>({});
    auto s = w.replicate("s", zero);
    auto most = w.replicate("most", zero);
    auto mean = w.replicate("mean", zero);
    auto t = w.replicate("t", zero);
    auto f = w.function(
        [](const tensor& part) {
          return std::tuple_cat(std::tuple(total(part), static_cast<int>(part.rows())), statistics(part));
        },
        rows("x"), outputs(sum("total"), sum("rows")),
        updates(assign(s, sum), assign(most, max), assign(mean, avg), increment(t)));
    for (unsigned slices = 1; slices <= 5; ++slices) {
      for (int outputs_asked = 0; outputs_asked < 3; ++outputs_asked) {
        for (const auto& each : {s, most, mean}) w.broadcast(each, zero);
        w.broadcast(t, tensor::ones<float>({}));
        const auto g = f.with({.num_slices = slices});
        if (outputs_asked == 0) {
          EXPECT_EQ(g(x), std::tuple(36.0F, 8));
        } else if (outputs_asked == 1) {
          EXPECT_EQ(f.only<1>().with({.num_slices = slices})(x), 8);
        } else {
          EXPECT_EQ((f.only<1, 0>().with({.num_slices = slices})(x)), std::tuple(8, 36.0F));
        }
        const auto by_rank = [&](const variable& which) { return w.gather(which).to_vector<float>(); };
        EXPECT_EQ(by_rank(s), (std::vector<float>{10, 26})) << slices;
        EXPECT_EQ(by_rank(t), (std::vector<float>{11, 27})) << slices;
        EXPECT_EQ(by_rank(most), (std::vector<float>{4, 8})) << slices;
        EXPECT_EQ(by_rank(mean), (std::vector<float>{2.5, 6.5})) << slices;
      }
    }
  }
}

/// Rows that the ranks have and a call is for.
struct resident_rows {
  resident_selection chosen{};
  std::vector<std::vector<float>> by_rank{};  ///< what they are
};

/// All, a range, a list, and in each rank another list, of another length.
std::vector<resident_rows> ways_to_choose(const tensor& x, std::size_t ranks) {
  resident_rows all;
  resident_rows range{.chosen = row_range{1, 6}};
  resident_rows list{.chosen = std::vector{2, 0, 7, 2}};
  resident_rows lists;
  std::vector<row_selection> list_of_rank;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto own = part_of_values(x, rank, ranks);
    all.by_rank.push_back(own);
    range.by_rank.emplace_back(own.begin() + 1, own.begin() + 6);
    list.by_rank.push_back({own[2], own[0], own[7], own[2]});
    std::vector<std::size_t> numbers(rank + 2, rank);
    numbers[0] = 5;
    std::vector<float> values(rank + 2, own[rank]);
    values[0] = own[5];
    list_of_rank.emplace_back(numbers);
    lists.by_rank.push_back(values);
  }
  lists.chosen = list_of_rank;
  return {all, range, list, lists};
}

/// What one process makes of some rows.
struct serial_figures {
  explicit serial_figures(const std::vector<float>& rows)
      : sum(std::accumulate(rows.begin(), rows.end(), 0.0F)),
        most(*std::ranges::max_element(rows)),
        mean(sum / static_cast<float>(rows.size())) {}

  float sum;
  float most;
  float mean;
};

/// Variables, each of which is updated in another way by `values_of`.
struct updated_variables {
  explicit updated_variables(world& w)
      : sums(w.replicate("sums", one)),
        most(w.replicate("most", one)),
        means(w.replicate("means", one)),
        added(w.replicate("added", one)),
        stepped(w.replicate("stepped", ones)),
        stepped_by_means(w.replicate("stepped by means", ones)) {}

  [[nodiscard]] auto how() const {
    return updates(assign(sums, sum), assign(most, max), assign(means, avg), increment(added),
                   reduced_into(stepped, sum, sgd{.rate = 1}), reduced_into(stepped_by_means, avg, sgd{.rate = 1}));
  }
  static std::tuple<tensor, tensor, tensor, float, tensor, tensor> values_of(const tensor& x) {
    const auto gradient = [](float value) { return tensor::full<float>({300}, value); };
    const auto sum_of_rows = total(x);
    return std::tuple_cat(statistics(x),
                          std::tuple(gradient(sum_of_rows), gradient(sum_of_rows / static_cast<float>(x.rows()))));
  }
  void reset(world& w) const {
    for (const auto& each : {sums, most, means, added}) w.broadcast(each, one);
    for (const auto& each : {stepped, stepped_by_means}) w.broadcast(each, ones);
  }
  void expect_serial(const world& w, const resident_rows& given) const {
    std::vector<float> all;
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      const serial_figures own(given.by_rank[rank]);
      EXPECT_EQ(w.get_value(rank, sums).item<float>(), own.sum);
      EXPECT_EQ(w.get_value(rank, most).item<float>(), own.most);
      EXPECT_FLOAT_EQ(w.get_value(rank, means).item<float>(), own.mean);
      EXPECT_EQ(w.get_value(rank, added).item<float>(), 1 + own.sum);
      all.insert(all.end(), given.by_rank[rank].begin(), given.by_rank[rank].end());
    }
    const serial_figures of_all(all);
    EXPECT_THAT(w.gather(stepped).to_vector<float>(), Each(1 - of_all.sum));
    EXPECT_THAT(w.gather(stepped_by_means).to_vector<float>(), Each(testing::FloatNear(1 - of_all.mean, 2e-5F)));
  }

  tensor one = tensor::ones<float>({});
  tensor ones = tensor::ones<float>({300});
  variable sums;
  variable most;
  variable means;
  variable added;
  variable stepped;
  variable stepped_by_means;
};

std::tuple<float, int, tensor, tensor, tensor, float, tensor, tensor> counted_values_of(const tensor& x) {
  return std::tuple_cat(std::tuple(total(x), static_cast<int>(x.rows())), updated_variables::values_of(x));
}

void expect_serial_updates(world& w) {
  const auto x = tensor::arange<float>(1, static_cast<float>(8 * w.ranks() + 4));
  const auto d = w.scattered("d", x);
  const updated_variables found(w);
  auto alone = w.function(updated_variables::values_of, sliceable(d), found.how());
  auto f = w.function(counted_values_of, sliceable(d), outputs(sum("total"), sum("rows")), found.how());
  for (const auto& given : ways_to_choose(x, w.ranks())) {
    float sum_of_all = 0;
    std::size_t count = 0;
    for (const auto& each : given.by_rank) {
      sum_of_all += serial_figures(each).sum;
      count += each.size();
    }
    for (unsigned slices = 1; slices <= 5; ++slices) {
      SCOPED_TRACE(testing::Message() << count << " rows, " << slices << " slices");
      const run_options how{.batch_s = given.chosen, .num_slices = slices};
      found.reset(w);
      alone.with(how)();
      found.expect_serial(w, given);
      found.reset(w);
      EXPECT_EQ(f.with(how)(), std::tuple(sum_of_all, static_cast<int>(count)));
      found.expect_serial(w, given);
      found.reset(w);
      EXPECT_EQ(f.only<1>().with(how)(), static_cast<int>(count));
      found.expect_serial(w, given);
    }
  }
}

TEST(WorldVariables, UpdatesByRowsThatTheRanksHaveAreTheSerialOnes) {
  for (unsigned ranks = 1; ranks <= 3; ++ranks) {
    for (const auto who : {test::caller::first, test::caller::last, test::caller::none}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, caller " << static_cast<int>(who));
      world w(test::options_for(ranks, who));
      expect_serial_updates(w);
    }
  }
}

TEST(WorldVariables, VariablesAreArgumentsInTheOrderOfTheirTags) {
  in_worlds({1, 2}, [](world& w) {
    auto d = w.scattered("d", tensor::ones<float>({4}));
    auto v = w.replicate("v", tensor::full<float>({3}, 10));
    const auto first_of_each = [](const tensor& one, const tensor& other) {
      return std::tuple(one.at<float>(0), other.at<float>(0));
    };
    auto f = w.function(first_of_each, sliceable(d), replicas(v), outputs(max("first"), max("second")));
    auto g = w.function(first_of_each, replicas(v), sliceable(d), outputs(max("first"), max("second")));
    EXPECT_EQ(f(), std::tuple(1, 10));
    EXPECT_EQ(g(), std::tuple(10, 1));
  });
}

TEST(WorldVariables, AFunctionOfUpdatesAloneUpdates) {
  in_worlds({1, 2, 4}, [](world& w) {
    auto count = w.replicate("count", tensor::zeros<std::int64_t>({}));
    auto f = w.function([] { return std::int64_t{1}; }, updates(increment(count)));
    for (int call = 0; call < 5; ++call) f();
    EXPECT_THAT(w.gather(count).to_vector<std::int64_t>(), Each(5));
  });
}

TEST(WorldVariables, ASharesUpdateFitsAfterItsLengthHasChanged) {
  in_worlds({4, 4, 2}, [](world& w) {
    auto v = w.scattered("v", tensor::zeros<float>({1, 2}));  // most ranks have nothing
    auto f = w.function([](const tensor& share) { return tensor::ones<float>(share.shape()); }, replicas(v),
                        updates(increment(v)));
    f();
    EXPECT_THAT(w.gather(v, 0).to_vector<float>(), Each(1));
    w.scatter(v, tensor::zeros<float>({9, 2}));
    f();
    EXPECT_EQ(w.gather(v, 0).shape(), (tensor_shape{9, 2}));
    EXPECT_THAT(w.gather(v, 0).to_vector<float>(), Each(1));
    w.scatter(v, tensor::zeros<float>({2, 2}));
    f();
    f();
    EXPECT_THAT(w.gather(v, 0).to_vector<float>(), Each(2));
  });
}

TEST(WorldVariables, ARepeatedUpdateIsRefused) {
  world w({.ranks = 2});
  auto v = w.replicate("twice", tensor::zeros<float>({}));
  const auto two = [](const tensor& x) { return std::tuple(total(x), total(x)); };
  EXPECT_THAT(refusal([&] {
                static_cast<void>(w.function(two, rows("x"), updates(assign(v), increment(v)), named("careless")));
              }),
              AllOf(HasSubstr("'twice'"), HasSubstr("'careless'")));
  world other({.ranks = 1});
  auto strange = other.replicate("strange", tensor::zeros<float>({}));
  EXPECT_THAT(
      refusal([&] {
        static_cast<void>(w.function([](const tensor& x) { return total(x); }, rows("x"), updates(assign(strange))));
      }),
      AllOf(HasSubstr("'strange'"), HasSubstr("another world")));
  EXPECT_THAT(
      refusal([&] {
        static_cast<void>(w.function([](const tensor& x) { return total(x); }, rows("x"), updates(assign(v, gather))));
      }),
      HasSubstr("gather"));
  auto shares = w.scattered("shares", tensor::zeros<float>({4}));
  EXPECT_THAT(refusal([&] {
                static_cast<void>(w.function([](const tensor& x) { return total(x); }, rows("x"),
                                             updates(reduced_into(shares, sum))));
              }),
              HasSubstr("'shares'"));
}

TEST(WorldVariables, AnAverageIsRefusedForAVariableOfWholeNumbersWhenTheFunctionIsMade) {
  world w({.ranks = 2});
  auto n = w.replicate("n", tensor::zeros<std::int32_t>({3}));
  auto flags = w.replicate("flags", tensor::zeros<bool>({3}));
  const auto ones = [](const tensor& /*x*/) { return tensor::ones<std::int32_t>({3}); };
  const auto made = [&](const auto& update) { return w.function(ones, rows("x"), updates(update), named("whole")); };
  for (const auto& update : {assign(n), assign(n, mean_of_ranks), increment(n, avg)}) {
    EXPECT_THAT(refusal([&] { static_cast<void>(made(update)); }),
                AllOf(HasSubstr("'whole'"), HasSubstr("'n'"), HasSubstr("i32"), HasSubstr("f64"), HasSubstr("sum")));
  }
  EXPECT_THAT(refusal([&] { static_cast<void>(made(assign(flags))); }), AllOf(HasSubstr("'whole'"), HasSubstr("bool")));
  made(assign(n, max))(tensor::ones<float>({4}));
  made(increment(n))(tensor::ones<float>({4}));
  EXPECT_THAT(w.gather(n).to_vector<std::int32_t>(), Each(2));
}

tensor gradient(const tensor& x, const tensor& weights) {
  auto made = tensor::empty<float>(weights.shape());
  made.fill(total(x) / static_cast<float>(x.rows()));
  return made;
}

/// The same steps with all rows in one process.
template <class Rule>
std::vector<std::vector<float>> steps_of(unsigned ranks, const Rule& rule, unsigned slices) {
  world w({.ranks = ranks});
  auto v = w.replicate("v", noise({300}));
  auto f = w.function(gradient, rows("x"), replicas(v), updates(reduced_into(v, avg, rule)));
  std::vector<std::vector<float>> found;
  for (std::uint32_t step = 1; step <= 5; ++step) {
    f.with({.num_slices = slices})(noise({101}, step));
    const auto first = w.get_value(0, v).to_vector<float>();
    for (std::size_t rank = 1; rank < ranks; ++rank) EXPECT_EQ(w.get_value(rank, v).to_vector<float>(), first);
    found.push_back(first);
  }
  return found;
}

TEST(WorldVariables, RulesWithMemoryGoTheSameWayForAnyNumberOfRanksAndSlices) {
  const auto check = [](const auto& rule) {
    const auto serial = steps_of(1, rule, 1);
    for (const unsigned ranks : {1U, 2U, 3U, 4U}) {
      for (const unsigned slices : {1U, 3U}) {
        const auto found = steps_of(ranks, rule, slices);
        for (std::size_t step = 0; step < serial.size(); ++step) {
          for (std::size_t index = 0; index < 300; index += 13) {
            EXPECT_NEAR(found[step][index], serial[step][index], 1e-5F) << ranks << ' ' << slices << ' ' << step;
          }
        }
      }
    }
    EXPECT_EQ(steps_of(3, rule, 2), steps_of(3, rule, 2)) << "not the same bits";
  };
  check(sgd{.rate = 0.1, .momentum = 0.9, .nesterov = true});
  check(adam{.rate = 0.01});
  check(adagrad{});
  check(rmsprop{.momentum = 0.5});
  check(adadelta{.rate = 0.1});
  check(adamax{});
}

TEST(WorldVariables, MomentumIsRemembered) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto v = w.replicate("v", tensor::zeros<float>({200}));
    auto f =
        w.function([](const tensor& x, const tensor& value) { return tensor::full<float>(value.shape(), total(x)); },
                   rows("x"), replicas(v), updates(reduced_into(v, sum, sgd{.rate = 1, .momentum = 0.5})));
    float value = 0;
    float momentum = 0;
    for (int step = 0; step < 4; ++step) {
      f(tensor::ones<float>({8}));
      momentum = 0.5F * momentum + 8;
      value -= momentum;
      EXPECT_THAT(w.gather(v).to_vector<float>(), Each(value));
    }
    f(tensor::empty<float>({0}));  // no gradient: no step, and the momentum stays
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(value));
    f(tensor::ones<float>({1}));
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(value - (0.5F * momentum + 1)));
  });
}

TEST(WorldVariables, WhatIsReducedIntoReplicasNeedsThemAlike) {
  in_worlds({2, 3}, [](world& w) {
    auto v = w.replicate("v", tensor::zeros<float>({4}));
    auto f =
        w.function([](const tensor& x, const tensor& value) { return tensor::full<float>(value.shape(), total(x)); },
                   rows("x"), replicas(v), updates(reduced_into(v, sum, sgd{.rate = 1, .momentum = 0.5})));
    const auto x = tensor::ones<float>({8});
    w.set_value(1, v, tensor::zeros<float>({4000}));
    EXPECT_THAT(refusal([&] { f(x); }), AllOf(HasSubstr("'v'"), HasSubstr("(4000,)"), HasSubstr("rank 1")));
    w.broadcast(v, tensor::zeros<float>({4000}));
    EXPECT_THAT(refusal([&] { f(x); }), AllOf(HasSubstr("'v'"), HasSubstr("(4000,)"), HasSubstr("again")));
    w.broadcast(v, tensor::zeros<float>({4}));
    f(x);
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(-8));
  });
}

TEST(WorldVariables, WhatIsReducedBeginsWithTheMastersReplicaWhereTheyDiffer) {
  for_every_master([](world& w) {
    const auto v = w.replicate("v", tensor::ones<float>({1000}));
    auto f = w.function([](const tensor& x) { return tensor::full<float>({1000}, static_cast<float>(x.rows())); },
                        rows("x"), updates(reduced_into(v, sum, sgd{.rate = 1, .momentum = 0.5})));
    const auto x = tensor::zeros<float>({8});
    f.local(x.slice(0, 1));
    EXPECT_THAT(w.get_value(w.master_rank(), v).to_vector<float>(), Each(0));
    f(x);
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(-8.5F));
    w.set_value(w.master_rank(), v, tensor::full<float>({1000}, 100.0F));
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      if (rank != w.master_rank()) w.set_value(rank, v, tensor::full<float>({1000}, -7.0F));
    }
    f(x);
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(100 - (8.5F / 2 + 8)));
  });
}

TEST(WorldVariables, AfterAStepOfTheMasterAloneACallGoesOnFromThereInAllRanks) {
  for (const bool computes : {true, false}) {
    world w({.ranks = 2, .master_rank = 1, .caller_computes = computes});
    const auto v = w.replicate("v", tensor::ones<float>({3}));
    auto f = w.function([](const tensor& old) { return tensor::ones<float>(old.shape()); }, replicas(v),
                        updates(reduced_into(v, sum, sgd{.rate = 1})));
    f.local();
    EXPECT_THAT(w.gather(v).to_vector<float>(), ElementsAre(1, 1, 1, 0, 0, 0));
    f();
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(-2));
  }
}

TEST(WorldVariables, AnUpdateOfAnotherShapeOrTypeIsRefusedAndChangesNothing) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto v = w.replicate("v", tensor::zeros<float>({4}));
    auto f = w.function([](const tensor& /*x*/) { return tensor::ones<float>({5}); }, rows("x"), updates(assign(v)));
    auto g = w.function([](const tensor& /*x*/) { return tensor::ones<double>({4}); }, rows("x"),
                        updates(reduced_into(v, sum)));
    const auto x = tensor::ones<float>({8});
    for (const auto& text :
         {test::text_of(errc::remote_exception, [&] { f(x); }), test::text_of(errc::remote_exception, [&] { g(x); })}) {
      EXPECT_THAT(text, AllOf(HasSubstr("'v'"), HasSubstr("rank ")));
    }
    EXPECT_THAT(w.gather(v).to_vector<float>(), Each(0));
  });
}

/// Whole numbers that every type has, and that differ by rank and place; of either sign where the type has one.
template <class T>
double small_number(std::size_t rank, std::size_t index) {
  const auto size = static_cast<double>(1 + (index + rank) % 3);
  return !std::is_unsigned_v<T> && (index + 2 * rank) % 5 < 2 ? -size : size;
}
template <class T>
tensor small_numbers(dtype type, const tensor_shape& shape, std::size_t rank) {
  auto made = tensor::empty(type, shape);
  auto values = made.template span<T>();
  for (std::size_t index = 0; index < values.size(); ++index) {
    values[index] = T(static_cast<float>(small_number<T>(rank, index)));
  }
  return made;
}

double joined_numbers(output_op op, double a, double b) {
  switch (op) {
    case output_op::prod: return a * b;
    case output_op::min: return std::min(a, b);
    case output_op::max: return std::max(a, b);
    default: return a + b;
  }
}

template <class T>
void expect_collectives(world& w, const tensor_shape& shape) {
  constexpr auto type = dtype_of<T>;
  SCOPED_TRACE(testing::Message() << type << ' ' << shape);
  auto v = w.replicate("v", tensor::zeros(type, shape));
  const auto fill = [&] {
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) w.set_value(rank, v, small_numbers<T>(type, shape, rank));
  };
  for (const output_op op : {output_op(sum), output_op(prod), output_op(min), output_op(max), output_op(avg)}) {
    std::vector<double> expected;
    for (std::size_t index = 0; index < small_numbers<T>(type, shape, 0).size(); ++index) {
      double value = 0;
      for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
        const auto next = small_number<T>(rank, index);
        value = rank == 0 ? next : joined_numbers(op, value, next);
      }
      if (op == avg) value /= static_cast<double>(w.ranks());
      expected.push_back(static_cast<double>(static_cast<float>(T(static_cast<float>(value)))));
    }
    const auto check = [&](const tensor& found) {
      EXPECT_EQ(found.shape(), shape);
      for (std::size_t index = 0; index < expected.size(); ++index) {
        EXPECT_NEAR(static_cast<double>(static_cast<float>(found.span<T>()[index])), expected[index],
                    op == avg && !std::is_integral_v<T> ? 1e-3 : 0)
            << output_op_name(op);
      }
    };
    fill();
    check(w.reduce(v, op));
    w.reduce_in_place(v, op);
    check(w.get_value(w.master_rank(), v));
    fill();
    w.all_reduce(v, op);
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) check(w.get_value(rank, v));
  }
  fill();
  const auto stacked = w.gather(v);
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    EXPECT_EQ(stacked.row(rank).template to_vector<T>(), small_numbers<T>(type, shape, rank).template to_vector<T>());
  }
  w.broadcast(v);
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    EXPECT_EQ(w.get_value(rank, v).template to_vector<T>(),
              small_numbers<T>(type, shape, w.master_rank()).template to_vector<T>());
  }
  if (shape.empty()) return;
  const auto x = small_numbers<T>(type, shape, 0);
  w.scatter(v, x);
  EXPECT_EQ(w.gather(v, 0).template to_vector<T>(), x.template to_vector<T>());
  w.all_gather(v);
  EXPECT_EQ(w.get_value(0, v).template to_vector<T>(), x.template to_vector<T>());
}

TEST(WorldVariables, EveryCollectiveIsRightForEveryTypeAndNumberOfDimensions) {
  in_worlds({2, 3, 4}, [](world& w) {
    // As many rows as ranks: nobody may mistake the one for the other.
    for (const auto& shape :
         {tensor_shape{}, tensor_shape{w.ranks()}, tensor_shape{w.ranks(), 3}, tensor_shape{w.ranks(), 2, 3}}) {
      expect_collectives<f16>(w, shape);
      expect_collectives<bf16>(w, shape);
      expect_collectives<float>(w, shape);
      expect_collectives<double>(w, shape);
      expect_collectives<std::int32_t>(w, shape);
      expect_collectives<std::int64_t>(w, shape);
      expect_collectives<std::int8_t>(w, shape);
      expect_collectives<std::uint8_t>(w, shape);
    }
  });
}

// Numbers of which few can be added without going beyond the type; and whose quotients have fractions.
template <class T>
T great_number(std::size_t rank, std::size_t index) {
  using limits = std::numeric_limits<T>;
  const auto step = static_cast<T>(3 * rank + index / 4);
  switch (index % 4) {
    case 0: return static_cast<T>(limits::max() - step);
    case 1: return static_cast<T>(limits::min() + step);
    case 2: return rank % 2 == 0 ? limits::max() : static_cast<T>(step + 1);
    default: break;
  }
  if constexpr (std::is_signed_v<T>) return static_cast<T>(-1 - step);
  return step;
}

template <class T>
void expect_averages(world& w) {
  SCOPED_TRACE(testing::Message() << dtype_of<T>);
  constexpr std::size_t count = 24;
  auto v = w.replicate("v", tensor::zeros<T>({count}));
  std::vector<T> expected;
  for (std::size_t index = 0; index < count; ++index) {
    std::vector<T> of_ranks;
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) of_ranks.push_back(great_number<T>(rank, index));
    expected.push_back(test::reference_of_integers(reduction_op::avg, of_ranks));
  }
  const auto fill = [&] {
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      auto own = tensor::empty<T>({count});
      for (std::size_t index = 0; index < count; ++index) own.template at<T>(index) = great_number<T>(rank, index);
      w.set_value(rank, v, own);
    }
  };
  fill();
  EXPECT_EQ(w.reduce(v, avg).template to_vector<T>(), expected);
  w.reduce_in_place(v, avg);
  EXPECT_EQ(w.get_value(w.master_rank(), v).template to_vector<T>(), expected);
  fill();
  w.all_reduce(v, avg);
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    EXPECT_EQ(w.get_value(rank, v).template to_vector<T>(), expected) << "rank " << rank;
  }
}

TEST(WorldVariables, AveragesOfIntegersDoNotWrapAroundAndAreTruncatedTowardsZero) {
  in_worlds({1, 2, 3, 4}, [](world& w) {
    expect_averages<std::int8_t>(w);
    expect_averages<std::int16_t>(w);
    expect_averages<std::int32_t>(w);
    expect_averages<std::int64_t>(w);
    expect_averages<std::uint8_t>(w);
    expect_averages<std::uint16_t>(w);
    expect_averages<std::uint32_t>(w);
    expect_averages<std::uint64_t>(w);
  });
}

TEST(WorldVariables, AVariableOfIntegersStaysOneWhenItIsAveraged) {
  world w({.ranks = 2});
  auto counts = w.replicate("counts", tensor::full<std::int32_t>({3}, 2));
  w.set_value(1, counts, tensor::full<std::int32_t>({3}, 5));
  w.all_reduce(counts);
  EXPECT_THAT(w.gather(counts).to_vector<std::int32_t>(), Each(3));  // 3.5, truncated
}

TEST(WorldVariables, AllUpdatesOfACallReadTheOldValues) {
  in_worlds({1, 2, 3}, [](world& w) {
    auto a = w.replicate("a", tensor::full<float>({4}, 1));
    auto b = w.replicate("b", tensor::full<float>({4}, 2));
    auto f = w.function([](const tensor& one, const tensor& other) { return std::tuple(other, other, one); },
                        replicas(a, b), outputs(none("b")), updates(assign(a), assign(b)));
    for (int call = 0; call < 3; ++call) {
      const auto old = f();
      for (const auto& each : old) EXPECT_THAT(each.to_vector<float>(), Each(call % 2 == 0 ? 2 : 1));
      EXPECT_THAT(w.gather(a).to_vector<float>(), Each(call % 2 == 0 ? 2 : 1));
      EXPECT_THAT(w.gather(b).to_vector<float>(), Each(call % 2 == 0 ? 1 : 2));
    }
  });
}

TEST(WorldVariables, EverySliceReadsTheOldValueAndTheOldValueCountsOnce) {
  world w({.ranks = 1});
  auto s = w.replicate("s", tensor::ones<float>({}));
  auto f = w.function([](const tensor& x, const tensor& value) { return total(x) * value.item<float>(); }, rows("x"),
                      replicas(s), updates(increment(s)));
  for (unsigned slices = 1; slices <= 5; ++slices) {
    w.broadcast(s, tensor::ones<float>({}));
    f.with({.num_slices = slices})(tensor::arange<float>(1, 5));
    EXPECT_EQ(w.get_value(0, s).item<float>(), 11.0F);
  }
}

}  // namespace
}  // namespace muster::world_variables_test
