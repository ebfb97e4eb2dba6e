// SPDX-License-Identifier: BSL-1.0
// The results that the predecessor's tests of shared tensors expect: its pool's, and those of its pickling.
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/pool/p2p_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/shared_queue.hpp>

namespace muster::predecessor_tensor_test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

std::vector<tensor> multiples_of_ones() {
  std::vector<tensor> all;
  for (int each = 0; each < 5; ++each) all.push_back(tensor::full<double>({10}, each));
  return all;
}

double sum_of_doubled(const tensor& x) {
  double sum = 0;
  for (const auto each : x.span<const double>()) sum += 2 * each;
  return sum;
}

template <class Pool>
class PredecessorTensors : public testing::Test {
protected:
  const Pool pool_{pool_options{.workers = 2}};
};
using pools = testing::Types<pool, p2p_pool>;
TYPED_TEST_SUITE(PredecessorTensors, pools);

TYPED_TEST(PredecessorTensors, SharedTensorsAreSummedWhereTheyLie) {
  EXPECT_THAT(this->pool_.map(sum_of_doubled, multiples_of_ones()), ElementsAre(0, 20, 40, 60, 80));
}

TYPED_TEST(PredecessorTensors, WhatAWorkerWritesIsSeen) {
  const auto x = tensor::zeros<double>({10});
  this->pool_.apply([](const tensor& given) { given.fill(3.0); }, x);
  EXPECT_EQ(sum_of_doubled(x), 60);
}

TEST(PredecessorMessages, OfALargeTensorIsSmall) {
  const auto large = tensor::empty<float>({std::size_t{16} << 20U});
  EXPECT_EQ(large.size() * sizeof(float), std::size_t{64} << 20U);
  EXPECT_LT(codec<tensor>::size_with(large).bytes, 1024U);
}

// A callable that owns a tensor.
struct sum_of_owned {
  tensor inside;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(inside);
  }
  double operator()(double more) const { return sum_of_doubled(inside) + more; }
};

// Its pickling: what a child sends arrives, by copy, by reference, and in a callable.
TYPED_TEST(PredecessorTensors, WhatAChildSendsArrives) {
  const shared_queue<tensor> sent(2);
  this->pool_.apply(
      [](const shared_queue<tensor>& to) {
        to.push(tensor::zeros<double>({10}), transfer::copy);
        to.push(tensor::zeros<double>({10}));
      },
      sent);
  EXPECT_THAT(sent.pop()->template to_vector<double>(), AllOf(SizeIs(10), Each(0)));
  EXPECT_THAT(sent.pop()->template to_vector<double>(), AllOf(SizeIs(10), Each(0)));
  const shared_queue<sum_of_owned> callables(1);
  this->pool_.apply([](const shared_queue<sum_of_owned>& to) { to.push({.inside = tensor::zeros<double>({10})}); },
                    callables);
  const auto closure = *callables.pop();
  EXPECT_TRUE(closure.inside.is_shared());
  EXPECT_THAT(closure.inside.template to_vector<double>(), AllOf(SizeIs(10), Each(0)));
  EXPECT_EQ(closure(1), 1);
  EXPECT_EQ(this->pool_.apply(closure, 2.0), 2) << "and back";
  const auto bound = muster::bind_front([](const tensor& inside, double more) { return sum_of_doubled(inside) + more; },
                                        closure.inside);
  EXPECT_EQ(this->pool_.apply(bound, 3.0), 3);
}

}  // namespace
}  // namespace muster::predecessor_tensor_test
