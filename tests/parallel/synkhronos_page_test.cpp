// SPDX-License-Identifier: BSL-1.0
// Every line of code of docs/coming-from-synkhronos.md, as it stands there; and that none is missing here.
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include <muster/base/effective_cpus.hpp>
#include <muster/parallel/world.hpp>
#include <muster/pool/device_choice.hpp>
#include <muster/serialize/callable.hpp>

#include "page.hpp"
#include "world_support.hpp"

namespace muster::synkhronos_page_test {
namespace {

using testing::ElementsAre;

float g(const tensor& x, const tensor& y) { return test::total(x) / static_cast<float>(x.rows()) + y.at<float>(0); }
float total_of(const tensor& x) { return test::total(x); }
float resident(const tensor& rows) { return test::total(rows); }

TEST(SynkhronosPage, Worlds) {
  world w({.ranks = 4, .master_rank = 1});
  EXPECT_EQ(w.ranks(), 4U);
  auto f = w.function(g, rows("x"), whole("y"), outputs(avg("mean")));
  w.distribute();
  testing::internal::CaptureStdout();
  std::cout << f.profile();
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("0 calls"));
  w.close();
  const auto ranks = muster::effective_cpus();
  EXPECT_GE(ranks, 1U);
}

TEST(SynkhronosPage, AWorldOfProcessors) {
  world w({.ranks = 4, .devices = {}});
  EXPECT_EQ(w.master_rank(), 0U);
}

TEST(SynkhronosPage, AWorldOfDevicesOrWhyThereIsNone) {
  try {
    EXPECT_GE(muster::device_choice::automatic().resolve().size(), 1U);
    world w({.ranks = 4, .devices = device_choice::automatic()});
    EXPECT_EQ(w.ranks(), 4U);
  } catch (const error& none) {
    EXPECT_THAT(none.what(), testing::HasSubstr("GPU"));
  }
}

class SynkhronosLines : public testing::Test {
protected:
  world w{{.ranks = 2}};
  const tensor x = tensor::arange<float>(0, 300);
  const tensor y = tensor::ones<float>({300});
  const tensor value = tensor::ones<float>({20, 3});
};

TEST_F(SynkhronosLines, Functions) {
  auto f = w.function(g, rows("x"), whole("y"), outputs(avg("mean")));
  EXPECT_EQ(f(x, y), 150.5F);
  EXPECT_EQ(f.with({.batch = 100})(x, y), 50.5F);
  EXPECT_EQ(f.with({.batch = row_range{100, 200}})(x, y), 150.5F);
  EXPECT_NEAR(f.with({.batch = std::vector{7, 3, 7}})(x, y), 17.0 / 3 + 1, 1e-5);
  EXPECT_EQ(f.with({.num_slices = 4})(x, y), 150.5F);
  EXPECT_EQ(f.local(x, y), 150.5F);
  auto later = f.async(x, y);
  EXPECT_EQ(later.get(), 150.5F);
  auto [x_data] = f.build_inputs(x);
  EXPECT_EQ(f(x_data, y), 150.5F);
  const auto minis = f.build_inputs({.type = dtype::f32, .minibatch = true, .force_cast = true, .oversize = 1.1}, x);
  EXPECT_EQ(minis[0].alloc_size(), 330U);
  EXPECT_EQ(f.build_inputs(value)[0].rows(), 20U);
  EXPECT_THAT(f.output_modes(), ElementsAre(avg));
  EXPECT_THAT(f.update_modes(), ElementsAre());
  const auto named_one = w.function(g, rows(typed<float>("x", 2)), whole("y"), outputs(avg("a")), named("step"));
  EXPECT_EQ(named_one.name(), "step");
  EXPECT_FALSE(f.name().empty());
  const auto bound = w.function(muster::bind_front(g, value), whole("y"), outputs(sum("a")));
  EXPECT_EQ(bound(y), 2 * (3 + 1));
}

TEST_F(SynkhronosLines, OutputsAndUpdates) {
  auto s = w.replicate("s", tensor::zeros<float>({}));
  auto t = w.replicate("t", tensor::zeros<float>({}));
  const auto both = w.function(
      [](const tensor& rows) { return std::tuple{total_of(rows), total_of(rows), total_of(rows), total_of(rows)}; },
      rows("x"), outputs(sum("a"), none("b")), updates(increment(s), assign(t, sum)));
  EXPECT_EQ(std::get<1>(both(x)).size(), 2U);
  const auto kept = w.function([](const tensor& old) { return old.item<float>(); }, replicas(s), updates(increment(s)));
  kept();
  const auto one = w.function([](const tensor& rows) { return total_of(rows); }, rows("x"), updates(assign(s, sum)));
  one(x);
  EXPECT_EQ(w.get_value(0, s).item<float>() + w.get_value(1, s).item<float>(), 300 * 299 / 2);
  auto f = w.function([](const tensor& a, const tensor& b) { return std::tuple{g(a, b), 2, total_of(a)}; },
                      rows("x", "y"), outputs(avg("a"), max("b"), sum("c")));
  EXPECT_EQ((f.only<2, 0>()(x, y)), (std::tuple{300 * 299 / 2.0F, 150.5F}));
}

TEST_F(SynkhronosLines, ResidentRows) {
  auto d = w.scattered("d", tensor::ones<float>({40}));
  auto f = w.function(resident, sliceable(d), outputs(sum("total")));
  EXPECT_EQ(f.with({.batch_s = row_range{0, 10}})(), 20);
  EXPECT_EQ(f.with({.batch_s = std::vector<row_selection>{std::vector{0, 1}, std::vector{5}}})(), 3);
}

TEST_F(SynkhronosLines, DataThatAreMade) {
  {
    data d({.value = value, .name = "x"});
  }
  {
    data d({.type = dtype::f32, .dimensions = 2});
  }
  {
    data d({.type = dtype::f32, .shape = tensor_shape{100, 8}});
  }
  {
    data d({.value = value, .minibatch = true});
  }
  data d({.value = value, .type = dtype::f32, .force_cast = true, .oversize = 1.5});
  EXPECT_EQ(d.alloc_size(), 90U);
}

TEST_F(SynkhronosLines, DataThatChange) {
  data d({.value = value});
  const auto x = tensor::full<float>({20, 3}, 2);
  d.set_value(x, {.force_cast = true, .oversize = 1.1});
  d.set_length(2000, 1.1);
  EXPECT_EQ(d.at<float>(1999, 0), 0);
  d.set_shape({100, 8}, 1.1);
  EXPECT_EQ(d.condition_data(x).dtype(), dtype::f32);
  const std::size_t k = 3;
  const std::size_t i = 1;
  const std::size_t j = 2;
  const auto v = tensor::ones<float>({2, 8});
  d.set_rows(k, v);
  d.at<float>(i, j) = v.at<float>(0, 0);
  EXPECT_EQ(d[k].at<float>(7), 1);
  EXPECT_EQ(d.value().at<float>(1, 2), 1);
  EXPECT_EQ(d.rows(), 100U);
  EXPECT_EQ(d.shape(), (tensor_shape{100, 8}));
  EXPECT_EQ(d.size(), 800U);
  EXPECT_EQ(d.dimensions(), 2U);
  EXPECT_GE(d.alloc_size(), 800U);
  EXPECT_EQ(d.dtype(), dtype::f32);
  EXPECT_EQ(d.name(), "");
  EXPECT_FALSE(d.minibatch());
  d.free_memory();
  EXPECT_EQ(d.rows(), 0U);
}

TEST_F(SynkhronosLines, Variables) {
  auto s = w.replicate("s", value);
  auto t = w.replicate("t", value);
  auto d = w.scattered("d", value);
  w.broadcast(s);
  w.broadcast(s, value);
  const auto value = tensor::arange<float>(0, 200).reshape({200, 1});
  w.scatter(d, value, row_range{0, 100});
  EXPECT_EQ(w.gather(s).shape(), (tensor_shape{2, 20, 3}));
  EXPECT_EQ(w.gather(s, 0).rows(), 40U);
  EXPECT_EQ(w.reduce(s, avg).at<float>(0, 0), 1);
  w.reduce_in_place(s, avg);
  w.all_reduce(s, avg);
  w.all_reduce(std::array{s, t});
  w.set_value(1, s, value, row_range{0, 100});
  EXPECT_EQ(w.get_value(1, s).rows(), 100U);
  EXPECT_THAT(w.get_lengths(s), ElementsAre(20, 100));
  EXPECT_EQ(w.get_shapes(s)[1], (tensor_shape{100, 1}));
  std::vector<tensor> both = w.get_value(1, std::array{s, t});
  EXPECT_EQ(both.size(), 2U);
  w.all_gather(t);
  w.broadcast(s);
  w.all_gather(s);
  EXPECT_EQ(w.get_value(0, s).rows(), 40U);
}

std::tuple<float, tensor, tensor> loss_and_gradients(const tensor& x, const tensor& /*y*/, const tensor& w1,
                                                     const tensor& w2) {
  return {test::total(x) / static_cast<float>(x.rows()), w1, w2};
}

TEST_F(SynkhronosLines, Rules) {
  auto w1 = w.replicate("w1", tensor::ones<float>({3}));
  auto w2 = w.replicate("w2", tensor::ones<float>({5}));
  auto weights = w1;
  const auto tags = std::array{updates(reduced_into(weights, avg, sgd{.rate = 0.1})),
                               updates(reduced_into(weights, avg, sgd{.rate = 0.1, .momentum = 0.9}))};
  EXPECT_EQ(tags.size(), 2U);
  for (const update_rule& rule : std::initializer_list<update_rule>{
           sgd{.rate = 0.1, .momentum = 0.9}, sgd{.rate = 0.1, .momentum = 0.9, .nesterov = true}, adagrad{}, rmsprop{},
           adadelta{}, adam{}, adamax{}}) {
    auto step = w.function(loss_and_gradients, rows("x", "y"), replicas(w1, w2), outputs(avg("loss")),
                           updates(reduced_into(w1, avg, rule), reduced_into(w2, avg, rule)));
    EXPECT_EQ(step(x, y), 149.5F);
    EXPECT_EQ(step.local(x, y), 149.5F);
  }
}

TEST(SynkhronosPage, EveryLineOfItIsCompiledHere) {
  test::expect_compiled(MUSTER_DOCS "coming-from-synkhronos.md", __FILE__, 60);
}

}  // namespace
}  // namespace muster::synkhronos_page_test
