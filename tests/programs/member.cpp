// SPDX-License-Identifier: BSL-1.0
// A program of its own that is a rank of a group whose ticket another program offers: member PATH NAME RANK.
// tests/collectives/group_of_pool_test.cpp.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <muster/collectives/group.hpp>
#include <muster/process/join.hpp>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    const auto host = muster::join(argv[1]);
    const auto ticket = host.get<muster::group_ticket>(argv[2]);
    muster::group all(ticket, static_cast<std::size_t>(std::atoi(argv[3])));
    auto mine = all.subset({1, 2});  // rank 0 never comes
    const auto sum = muster::tensor::full<float>({10'000}, static_cast<float>(all.rank()));
    mine.all_reduce(sum);
    return sum.at<float>(9999) == 3 ? EXIT_SUCCESS : 3;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "member: %s\n", failure.what());
    return 4;
  }
}
