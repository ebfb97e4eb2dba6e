// SPDX-License-Identifier: BSL-1.0
// What is at namespace scope is made before main, in the program and in each worker anew: a worker's is its own, in its
// own domain, until muster::init tells it of the program's. Who sends it is told so.
#include <utility>

#include <muster/device/tensor.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>

#include "check.hpp"

namespace {

using muster::errc;
using muster::event;
using muster::tensor;

const tensor at_namespace_scope = tensor::full<float>({4}, 2.0F);
const event event_at_namespace_scope;

float sum_of(const tensor& what) {
  float sum = 0;
  for (const auto each : what.to_vector<float>()) sum += each;
  return sum;
}

void is_used_in_a_worker(const muster::pool& workers) {
  check(workers.apply([] { return sum_of(at_namespace_scope); }) == 8, "a worker uses its own");
  check(workers.apply(sum_of, at_namespace_scope) == 8, "the program's goes as an argument");
  at_namespace_scope.at<float>(0) = 10;
  check(workers.apply([] { return sum_of(at_namespace_scope); }) == 8, "a worker's own is another");
  check(workers.apply(sum_of, at_namespace_scope) == 16, "the program's is what the program has written");
  check(sum_of(workers.apply([] { return at_namespace_scope.clone(); })) == 8, "a copy goes");
}

void is_told_where_it_lies(const muster::pool& workers) {
  constexpr auto why = "before muster::init";
  expect_error(errc::invalid_argument,
               {"a block of 16 bytes belongs to another domain", why, "namespace scope", "copy it"},
               [&] { static_cast<void>(workers.apply([] { return at_namespace_scope; })); });
  expect_error(errc::invalid_argument, {"events of different domains", why, "make the events in one"}, [&] {
    workers.apply([](const event& sent) { return any_of(sent, event_at_namespace_scope).is_set(); }, event());
  });
  expect_error(errc::invalid_argument, {"events of different domains", why}, [&] {
    workers.apply([](const event& sent) { return all_of(event_at_namespace_scope, sent).is_set(); }, event());
  });
}

// A worker's own pools have the domain that its own objects at namespace scope lie in.
void a_workers_own_pool_has_another_domain(const muster::pool& workers) {
  expect_error(errc::invalid_argument, {"Pools that a worker makes", "copy it"}, [&] {
    workers.apply(
        [](const tensor& sent) {
          const muster::pool own({.workers = 1});
          return own.apply(sum_of, sent);
        },
        tensor::ones<float>({4}));
  });
  expect_error(errc::invalid_argument, {"what a worker's own pools return", "copy it"}, [&] {
    static_cast<void>(workers.apply([] {
      const muster::pool own({.workers = 1});
      return own.apply([] { return tensor::ones<float>({4}); });
    }));
  });
  const auto by_copy = [](const tensor& sent) {
    const muster::pool own({.workers = 1});
    return own.apply(sum_of, sent.clone(muster::memory::local));
  };
  check(workers.apply(by_copy, tensor::ones<float>({4})) == 4, "a copy goes to a worker's own pool");
}

void an_isolated_pool_is_named(const muster::pool& workers) {
  const muster::pool isolated({.workers = 1, .isolated = true});
  constexpr auto why = "A pool made with `isolated` has a domain of its own";
  expect_error(errc::invalid_argument, {why}, [&] { isolated.apply(sum_of, at_namespace_scope); });
  const auto found = isolated.apply([] { return tensor::ones<float>({4}); });
  expect_error(errc::invalid_argument, {why}, [&] { workers.apply(sum_of, found); });
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const muster::pool workers({.workers = 1});
  is_used_in_a_worker(workers);
  is_told_where_it_lies(workers);
  a_workers_own_pool_has_another_domain(workers);
  an_isolated_pool_is_named(workers);
  return 0;
}
