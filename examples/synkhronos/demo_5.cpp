// SPDX-License-Identifier: BSL-1.0
// Demo 5 of Synkhronos: rows that lie in the ranks, of which each call takes some: the same in all ranks, or different
// ones, and as many as one likes.
#include <vector>

#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

constexpr std::size_t rows_of_each = 200;
constexpr unsigned most_ranks = rows_of_each / 2;  // the last one takes row 198

void demo(unsigned ranks) {
  muster::world world({.ranks = ranks});
  const auto x = noise({rows_of_each * ranks, 3}, 1);
  const auto d = world.scattered("d", x);
  const auto f = world.function(total, muster::sliceable(d), muster::outputs(muster::sum("sum")));

  const std::vector same{7, 3, 7, 150};
  std::vector<muster::row_selection> ranges;
  std::vector<muster::row_selection> lists;
  float in_range = 0;
  float in_ranges = 0;
  float in_same = 0;
  float in_lists = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto own = x.slice(rank * rows_of_each, (rank + 1) * rows_of_each);
    in_range += total(own.slice(100, 200));
    ranges.emplace_back(muster::row_range{rank, rank + 100});
    in_ranges += total(own.slice(rank, rank + 100));
    for (const auto each : same) in_same += total(own.row(static_cast<std::size_t>(each)));
    const std::vector<std::size_t> longer_and_longer(rank + 1, 2 * rank);
    lists.emplace_back(longer_and_longer);
    for (const auto each : longer_and_longer) in_lists += total(own.row(each));
  }
  for (const unsigned slices : {1U, 4U}) {
    compare("rows 100 to 199 of each", f.with({.batch_s = muster::row_range{100, 200}, .num_slices = slices})(),
            in_range);
    compare("the same list for each", f.with({.batch_s = same, .num_slices = slices})(), in_same);
    compare("a range for each", f.with({.batch_s = ranges, .num_slices = slices})(), in_ranges);
    compare("a list for each", f.with({.batch_s = lists, .num_slices = slices})(), in_lists);
  }
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return run([&] { demo(ranks_of(argc, argv, most_ranks)); });
}
