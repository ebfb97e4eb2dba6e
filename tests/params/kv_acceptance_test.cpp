// SPDX-License-Identifier: BSL-1.0
// What MXNet's own tests of dist_sync and dist_async ask for, in all sizes, dtypes and numbers of workers; the gate has
// some of each. Expected numbers are exact.
#include <cstddef>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <muster/device/detail/convert.hpp>
#include <muster/device/float16.hpp>
#include <muster/device/sparse_rows.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/params/ordered_server.hpp>

#include "kv_support.hpp"

namespace muster::kv_store_test {
namespace {

const tensor_shape indivisible({1211, 1211});
const tensor_shape big({1200, 1200});

tensor number(dtype type, const tensor_shape& shape, float value) {
  return convert(tensor::full<float>(shape, value), type);
}

void require_number(const tensor& found, float wanted, const std::string& where) {
  if (equal(found, number(found.dtype(), found.shape(), wanted))) return;
  throw std::runtime_error(text(where, " is not ", wanted, " everywhere"));
}

struct kept_key {
  store_key key;
  dtype type;
  tensor_shape shape;
};

const std::vector<kept_key>& kept_keys() {
  static const std::vector<kept_key> all = {{3, dtype::f32, small},       {"half", dtype::f16, small},
                                            {4, dtype::f32, big},         {"big half", dtype::f16, big},
                                            {5, dtype::f32, indivisible}, {"odd half", dtype::f16, indivisible}};
  return all;
}

void run_in_all_numbers(kv_kind kind, void (*run)(const kv_ticket&, std::size_t)) {
  for (const std::size_t workers : {1U, 2U, 4U, 7U}) {
    const kv_ticket ticket(kind, {.workers = workers});
    join_all(start(ticket, workers, run));
  }
}

// Values pushed by rank r are (r + 1), the store begins at 1: 1 + 2·(i + 1)·n(n + 1)/2 after round i.
void push_all_kinds(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  const auto n = static_cast<float>(kv.size());
  for (const auto& each : kept_keys()) kv.init(each.key, number(each.type, each.shape, rank == 0 ? 1 : 99));
  for (const auto& each : kept_keys()) require_number(kv.pull(each.key), 1, text(each.key, " at first"));
  kv.set_updater(add_twice);
  kv.barrier();
  for (int round = 0; round < 7; ++round) {
    const auto wanted = 1 + 2 * static_cast<float>(round + 1) * n * (n + 1) / 2;
    for (const auto& each : kept_keys()) {
      const auto mine = number(each.type, each.shape, static_cast<float>(rank + 1));
      const auto found = round % 2 == 0 ? kv.push_pull(each.key, mine) : (kv.push(each.key, mine), kv.pull(each.key));
      require_number(found, wanted, text(each.key, " in round ", round));
      require_number(mine, static_cast<float>(rank + 1), "what was pushed");
    }
    kv.barrier();
  }
}

TEST(KvAcceptance, RoundsOfAllSizesAndDtypes) {
  for (const std::size_t workers : {1U, 2U, 4U, 7U}) {
    for (const std::size_t owners : {std::size_t{1}, std::size_t{3}, std::size_t{0}}) {
      if (owners > workers) continue;
      const kv_ticket ticket(kv_kind::sync, {.workers = workers, .owners = owners});
      join_all(start(ticket, workers, push_all_kinds));
    }
  }
}

constexpr std::size_t many = 200;

// Half of them large, half of f16; what the other ranks give does not matter, but its form.
void init_many(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  std::vector<store_key> keys;
  std::vector<tensor> values;
  for (std::size_t each = 0; each < many; ++each) {
    keys.emplace_back(each);
    values.push_back(number(each % 4 < 2 ? dtype::f32 : dtype::f16, each % 2 == 0 ? small : tensor_shape({300, 400}),
                            rank == 0 ? static_cast<float>(each) : -1));
  }
  kv.init(keys, values);
  for (std::size_t each = 0; each < many; ++each) {
    require_number(kv.pull(keys[each]), static_cast<float>(each), text("key ", each));
  }
}

TEST(KvAcceptance, TwoHundredKeysAreThereRightAfterInit) { run_in_all_numbers(kv_kind::sync, init_many); }

constexpr std::size_t times = 50;

void push_alone(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  for (const auto& each : kept_keys()) kv.init(each.key, number(each.type, each.shape, 1));
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) { axpy(1.0, input, stored); });
  kv.barrier();
  for (std::size_t each = 0; each < times; ++each) {
    for (const auto& one : kept_keys()) kv.push(one.key, number(one.type, one.shape, 1));
  }
  kv.barrier();
  const auto wanted = static_cast<float>(1 + kv.size() * times);
  for (const auto& each : kept_keys()) require_number(kv.pull(each.key), wanted, text(each.key, " in the end"));
  kv.barrier();
}

TEST(KvAcceptance, PushesAloneAllCount) { run_in_all_numbers(kv_kind::async, push_alone); }

// Worker r pushes row r mod 10, as r + 1.
void push_some_rows(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  constexpr std::size_t rows = 10;
  kv.init("e", number(dtype::f32, {rows, 400}, 0));
  kv.set_updater([](const store_key&, const tensor& input, tensor& stored) { axpy(1.0, input, stored); });
  kv.barrier();
  const std::vector<std::int64_t> own{static_cast<std::int64_t>(rank % rows)};
  kv.push("e", sparse_rows::of(own, number(dtype::f32, {1, 400}, static_cast<float>(rank + 1))));
  kv.barrier();
  const std::vector<std::int64_t> asked{7, 0, 3, 3, static_cast<std::int64_t>(rank % rows)};
  const auto found = kv.row_sparse_pull("e", asked).to_dense(rows);
  for (const auto row : asked) {
    const auto which = static_cast<std::size_t>(row);
    const auto wanted = which < kv.size() ? static_cast<float>(which + 1) : 0.0F;
    require_number(found.row(which), wanted, text("row ", row));
  }
  kv.push("e", sparse_rows::of({}, number(dtype::f32, {0, 400}, 0)));  // of none
  kv.barrier();
}

TEST(KvAcceptance, RowsOfAllWorkersAreThere) { run_in_all_numbers(kv_kind::sync, push_some_rows); }

void push_at_any_time(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  kv.init("w", tensor::zeros<float>({100, 100}));
  kv.set_optimizer(adam{.rate = 0.1});
  kv.barrier();
  std::mt19937 random(static_cast<unsigned>(rank * 7919U + std::random_device()()));
  for (std::size_t round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));  // not to wait: to come in any order
    kv.push("w", tensor::full<float>({100, 100}, 1.0F / static_cast<float>(3 * rank + round + 1)));
  }
}

TEST(KvAcceptance, TwentyRunsGiveTheSameBits) {
  std::vector<float> first;
  for (int run = 0; run < 20; ++run) {
    const kv_ticket ticket(kv_kind::sync, {.workers = 4});
    join_all(start(ticket, 4, push_at_any_time));
    const auto found = store(ticket.values()).pull<tensor>("w").value.to_vector<float>();
    if (first.empty()) first = found;
    ASSERT_EQ(found, first) << "in run " << run;
  }
}

void add_one_often(const store_ticket& ticket, std::size_t often) {
  const ordered_server server(ticket, "o");
  for (std::size_t each = 0; each < often;) {
    const auto now = server.pull<std::int64_t>("n");
    if (server.push<std::int64_t>("n", now->value + 1, now->version + 1, now->version)) ++each;
  }
}

TEST(KvAcceptance, FourClientsOfAnOrderedServerAddFourThousand) {
  const store_ticket ticket((store_options()));
  const ordered_server server(ticket, "o");
  ASSERT_TRUE(server.push<std::int64_t>("n", 0, 0, std::nullopt));
  std::vector<process> all;
  for (int each = 0; each < 4; ++each) all.emplace_back(add_one_often, ticket, std::size_t{1000});
  join_all(all);
  EXPECT_EQ(server.pull<std::int64_t>("n")->value, 4000);
  EXPECT_EQ(server.pull<std::int64_t>("n")->version, 4000);
}

}  // namespace
}  // namespace muster::kv_store_test
