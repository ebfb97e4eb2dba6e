// SPDX-License-Identifier: BSL-1.0
#pragma once

// Every operation of a group, with results that are checked.

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <muster/group.hpp>

namespace muster::test {

struct operation_size {
  std::size_t count = 1;  ///< of elements
  bool is_async = false;  ///< where there is such a form
  std::size_t round = 0;  ///< the same on all ranks; roots and values come of it
  device where = {};      ///< where the rank's tensors lie
  bool is_into = false;   ///< scatters go into a tensor: what they make themselves comes to the host
};

struct operation {
  const char* name;
  void (*run)(group&, const operation_size&);
  std::array<std::string_view, 2> calls;  ///< as errors name them; the second of the part, where one is made
  /// Which rank of that part a rank is; nullptr: none is made.
  std::size_t (*rank_in_part)(std::size_t rank, std::size_t ranks, std::size_t round) = nullptr;
};
inline std::ostream& operator<<(std::ostream& out, const operation& what) { return out << what.name; }

inline tensor floats(std::size_t count, std::size_t value, device where = {}) {
  return tensor::full<float>({count}, static_cast<float>(value), where);
}

inline void expect_all(const tensor& found, std::size_t count, std::size_t value, const char* what) {
  ASSERT_EQ(found.size(), count) << what;
  const auto here = found.to(device::cpu());
  for (const auto each : here.span<float>()) ASSERT_EQ(each, static_cast<float>(value)) << what;
}

// Row r of `count` elements is all `first + r`.
inline tensor rows(std::size_t ranks, std::size_t count, std::size_t first, device where) {
  auto made = tensor::empty<float>({ranks * count}, where);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    made.slice(rank * count, (rank + 1) * count).fill(static_cast<float>(first + rank));
  }
  return made;
}

inline void expect_rows(const tensor& found, std::size_t ranks, std::size_t count, std::size_t first,
                        const char* what) {
  ASSERT_EQ(found.size(), ranks * count) << what;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    expect_all(found.slice(rank * count, (rank + 1) * count), count, first + rank, what);
  }
}

inline std::size_t value_of(const group& of, const operation_size& how) { return of.rank() + how.round % 50; }
inline std::size_t sum_of(const group& of, const operation_size& how) {
  return of.size() * (of.size() - 1) / 2 + of.size() * (how.round % 50);
}

inline void run_broadcast(group& in, const operation_size& how) {
  const auto root = how.round % in.size();
  const auto own = floats(how.count, in.rank() == root ? how.round % 50 : 1000, how.where);
  how.is_async ? in.broadcast_async(own, root).wait() : in.broadcast(own, root);
  expect_all(own, how.count, how.round % 50, "broadcast");
}

inline void run_reduce(group& in, const operation_size& how) {
  const auto root = how.round % in.size();
  const auto own = floats(how.count, value_of(in, how), how.where);
  how.is_async ? in.reduce_async(own, root).wait() : in.reduce(own, root);
  expect_all(own, how.count, in.rank() == root ? sum_of(in, how) : value_of(in, how), "reduce");
}

inline void run_all_reduce(group& in, const operation_size& how) {
  const auto own = floats(how.count, value_of(in, how), how.where);
  how.is_async ? in.all_reduce_async(own).wait() : in.all_reduce(own);
  expect_all(own, how.count, sum_of(in, how), "all_reduce");
}

inline void run_gather(group& in, const operation_size& how) {
  const auto root = how.round % in.size();
  const auto own = floats(how.count, value_of(in, how), how.where);
  const auto found = how.is_async ? in.gather_async(own, root).result() : in.gather(own, root);
  if (in.rank() == root) expect_rows(found, in.size(), how.count, how.round % 50, "gather");
}

inline void run_all_gather(group& in, const operation_size& how) {
  const auto own = floats(how.count, value_of(in, how), how.where);
  const auto found = how.is_async ? in.all_gather_async(own).result() : in.all_gather(own);
  expect_rows(found, in.size(), how.count, how.round % 50, "all_gather");
}

inline void run_scatter(group& in, const operation_size& how) {
  const auto root = how.round % in.size();
  const auto all = in.rank() == root ? rows(in.size(), how.count, how.round % 50, how.where) : tensor();
  auto found = floats(how.count, 0, how.where);
  if (how.is_async) {
    found = in.scatter_async(all, root).result();
  } else if (how.is_into) {
    in.scatter(all, found, root);
  } else {
    found = in.scatter(all, root);
  }
  expect_all(found, how.count, value_of(in, how), "scatter");
}

inline void run_reduce_scatter(group& in, const operation_size& how) {
  const auto out = floats(how.count, 0, how.where);
  const auto own = rows(in.size(), how.count, in.rank(), how.where);
  how.is_async ? in.reduce_scatter_async(own, out).wait() : in.reduce_scatter(own, out);
  expect_all(out, how.count, in.size() * (in.size() - 1) / 2 + in.size() * in.rank(), "reduce_scatter");
}

inline void run_all_to_all(group& in, const operation_size& how) {
  const auto own = rows(in.size(), how.count, 10 * in.rank(), how.where);
  const std::vector<std::size_t> counts(in.size(), how.count);
  const auto found = how.is_async ? in.all_to_all_async(own, counts).result() : in.all_to_all(own, counts);
  ASSERT_EQ(found.size(), in.size() * how.count);
  for (std::size_t rank = 0; rank < in.size(); ++rank) {
    expect_all(found.slice(rank * how.count, (rank + 1) * how.count), how.count, 10 * rank + in.rank(), "all_to_all");
  }
}

inline void run_barrier(group& in, const operation_size& how) {
  how.is_async ? in.barrier_async().wait() : in.barrier();
}

// Everybody to the next one.
inline void run_messages(group& in, const operation_size& how) {
  const auto next = (in.rank() + 1) % in.size();
  const auto before = (in.rank() + in.size() - 1) % in.size();
  const auto own = floats(how.count, value_of(in, how), how.where);
  const auto into = floats(how.count, 1000, how.where);
  if (how.is_async) {
    const std::array works = {in.isend(own, next, 3), in.irecv(into, before, 3)};
    for (const auto& each : works) each.wait();
  } else {
    in.send(own, next, 3);
    in.recv(into, before, 3);
  }
  expect_all(into, how.count, before + how.round % 50, "messages");
}

inline void run_split(group& in, const operation_size& how) {
  auto part = in.split(0, -static_cast<int>(in.rank()));
  ASSERT_TRUE(part.has_value());
  ASSERT_EQ(part->rank(), in.size() - 1 - in.rank());
  run_all_reduce(*part, {.count = how.count, .round = how.round, .where = how.where});
}

inline void run_subset(group& in, const operation_size& how) {
  std::vector<std::size_t> all;
  for (std::size_t rank = 0; rank < in.size(); ++rank) all.push_back((rank + how.round) % in.size());
  auto part = in.subset(all);
  ASSERT_EQ(all[part.rank()], in.rank());
  run_all_reduce(part, {.count = how.count, .round = how.round, .where = how.where});
}

inline std::size_t rank_in_split(std::size_t rank, std::size_t ranks, std::size_t /*round*/) {
  return ranks - 1 - rank;
}
inline std::size_t rank_in_subset(std::size_t rank, std::size_t ranks, std::size_t round) {
  return (rank + ranks - round % ranks) % ranks;
}

inline constexpr std::array operations = {operation{"Broadcast", run_broadcast, {"broadcast"}},
                                          operation{"Reduce", run_reduce, {"reduce"}},
                                          operation{"AllReduce", run_all_reduce, {"all_reduce"}},
                                          operation{"Gather", run_gather, {"gather"}},
                                          operation{"AllGather", run_all_gather, {"all_gather"}},
                                          operation{"Scatter", run_scatter, {"scatter"}},
                                          operation{"ReduceScatter", run_reduce_scatter, {"reduce_scatter"}},
                                          operation{"AllToAll", run_all_to_all, {"all_to_all"}},
                                          operation{"Barrier", run_barrier, {"barrier"}},
                                          operation{"Messages", run_messages, {"send", "receive"}},
                                          operation{"Split", run_split, {"split", "all_reduce"}, rank_in_split},
                                          operation{"Subset", run_subset, {"subset", "all_reduce"}, rank_in_subset}};

}  // namespace muster::test
