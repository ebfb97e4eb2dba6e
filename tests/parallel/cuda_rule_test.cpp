// SPDX-License-Identifier: BSL-1.0
// The device's steps of optimizers against the host's.
#include <muster/parallel/detail/rule_kernels.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <muster/device/detail/convert.hpp>
#include <muster/device/tensor.hpp>

#include "../device/cuda_support.hpp"
#include "../device/device_support.hpp"
#include "gpu_fixture.hpp"
#include "quick_random.hpp"
#include "rule_kernel.hpp"
#include "rule_support.hpp"
#include "share_device.hpp"

namespace muster::cuda_rule_test {
namespace {

using detail::cuda_rule_arrays;
using test::column;
using test::cuda_bench;
using test::variable;
using test::wide_of;

template <class T>
std::span<const std::byte> bytes_of(const column<T>& values) {
  return std::as_bytes(std::span(values));
}

// A column's copy on the device, `offset` elements after a place that is well aligned.
template <class T>
CUdeviceptr sent(cuda_bench& bench, const column<T>& values, std::size_t offset) {
  const auto where = bench.take((values.size() + offset) * sizeof(T)) + offset * sizeof(T);
  bench.send(where, bytes_of(values));
  return where;
}

template <class T>
void expect_column(cuda_bench& bench, CUdeviceptr where, const column<T>& expected, const update_rule& rule) {
  column<T> found(expected.size());
  bench.fetch(std::as_writable_bytes(std::span(found)), where);
  std::size_t differences = 0;
  for (std::size_t at = 0; at < found.size(); ++at)
    differences += test::same_element(found[at], expected[at]) ? 0U : 1U;
  EXPECT_EQ(differences, 0U) << rule.name() << " of " << found.size();
}

// A variable on the device, which goes through the same updates as one on the host.
template <class T>
struct device_variable {
  device_variable(cuda_bench& on, const variable<T>& host, std::size_t offset)
      : bench(on), value(sent(on, host.values, offset)) {
    arrays.type = dtype_of<T>;
    arrays.count = host.values.size();
    arrays.value = arrays.new_value = value;
    for (std::size_t each = 0; each < host.states.size(); ++each) {
      arrays.old_states[each] = arrays.new_states[each] = sent(on, host.states[each], offset);
    }
  }

  void update(const variable<T>& host, const std::vector<column<T>>& gradients, const std::vector<double>& weights,
              std::size_t offset) {
    std::vector<CUdeviceptr> from;
    for (const auto& each : gradients) from.push_back(sent(bench, each, offset));
    arrays.gradients = from;
    arrays.weights = weights;
    bench.kernels().apply_rule(bench.stream(), detail::numbers_of(host.rule, host.step), arrays);
  }

  void expect(const variable<T>& host) {
    expect_column(bench, value, host.values, host.rule);
    for (std::size_t each = 0; each < host.states.size(); ++each) {
      expect_column(bench, arrays.new_states[each], host.states[each], host.rule);
    }
  }

  cuda_bench& bench;
  CUdeviceptr value;
  cuda_rule_arrays arrays;
};

std::vector<update_rule> all_rules() {
  auto rules = test::optimizers();
  rules.emplace_back(assign_rule{});
  return rules;
}

template <class T>
class CudaRules : public testing::Test {
protected:
  void SetUp() override {
    if (const auto why = cuda_driver::problem()) GTEST_SKIP() << *why;
    bench_.emplace();
  }

  std::optional<cuda_bench> bench_;
};

using optimizable = testing::Types<f16, bf16, float, double>;

struct dtype_names {
  template <class T>
  static std::string GetName(int) {
    return std::string(dtype_name(dtype_of<T>));
  }
};

TYPED_TEST_SUITE(CudaRules, optimizable, dtype_names);

TYPED_TEST(CudaRules, GiveTheBitsOfTheHostsOverManySteps) {
  const std::vector<double> weights = {0.3, 0.1, 0.6};
  for (const std::size_t count : {1U, 4U, 2501U}) {
    for (const std::size_t offset : {0U, 1U}) {
      for (const auto& rule : all_rules()) {
        this->bench_->forget();
        variable<TypeParam> host(rule, count);
        device_variable<TypeParam> device(*this->bench_, host, offset);
        for (; host.step <= 4; ++host.step) {
          const auto gradients = test::random_gradients<TypeParam>(3, count, static_cast<unsigned>(host.step));
          host.update(detail::baseline_rule_kernel, gradients, weights, 0, count);
          device.update(host, gradients, weights, offset);
          device.expect(host);
        }
      }
    }
  }
}

TYPED_TEST(CudaRules, GiveTheBitsOfTheHostsForAnyNumbers) {
  constexpr std::size_t count = 3000;
  test::quick_random random(7);
  std::vector<column<TypeParam>> gradients(1, column<TypeParam>(count));
  for (auto& each : gradients[0]) each = test::random_element<TypeParam>(random);
  for (const auto& rule : all_rules()) {
    this->bench_->forget();
    variable<TypeParam> host(rule, count);
    device_variable<TypeParam> device(*this->bench_, host, 0);
    for (; host.step <= 2; ++host.step) {
      host.update(detail::baseline_rule_kernel, gradients, {0.5}, 0, count);
      device.update(host, gradients, {0.5}, 0);
      device.expect(host);
    }
  }
}

TYPED_TEST(CudaRules, LeaveTheOldWhereTheNewIsElsewhere) {
  constexpr std::size_t count = 100;
  variable<TypeParam> host(adam{.rate = 0.05}, count);
  const auto before = host;
  device_variable<TypeParam> device(*this->bench_, host, 0);
  device.arrays.new_value = this->bench_->take(count * sizeof(TypeParam));
  for (auto& each : device.arrays.new_states) each = this->bench_->take(count * sizeof(double));
  const auto gradients = test::random_gradients<TypeParam>(1, count, 1);
  host.update(detail::baseline_rule_kernel, gradients, {1}, 0, count);
  device.update(before, gradients, {1}, 0);
  expect_column(*this->bench_, device.value, before.values, host.rule);
  device.value = device.arrays.new_value;
  device.expect(host);
}

TYPED_TEST(CudaRules, RefuseWhatIsNoRuleOfTheirs) {
  const auto& kernels = this->bench_->kernels();
  const CUdeviceptr gradient = this->bench_->take(16);
  const double weight = 1;
  cuda_rule_arrays arrays{.type = dtype_of<TypeParam>, .count = 1};
  const auto apply = [&] { kernels.apply_rule(this->bench_->stream(), {}, arrays); };
  test::expect_refused(apply, "0 gradients");
  arrays.gradients = {&gradient, 1};
  test::expect_refused(apply, "0 weights");
  arrays.weights = {&weight, 1};
  arrays.type = dtype::i32;
  test::expect_refused(apply, "not i32");
}

// ---- of tensors

tensor random_tensor(dtype type, std::size_t count, unsigned seed) {
  auto wide = tensor::empty<double>({count});
  test::quick_random random(seed);
  for (auto& each : wide.span<double>()) each = random.between(-4, 4);
  return convert(wide, type);
}

struct both_sides {
  tensor here;
  tensor there;

  explicit both_sides(tensor value) : here(std::move(value)), there(here.to(device::cuda(0))) {}
  [[nodiscard]] bool are_equal() const {
    const auto found = there.to(device::cpu());
    return std::memcmp(found.data(), here.data(), here.nbytes()) == 0;
  }
};

// Goes through the rule on both sides; says whether all that comes of it is the same.
bool gives_the_same(const update_rule& rule, reduction_op op, dtype type, std::size_t ranks) {
  constexpr std::size_t count = 700;
  const bool is_weighted = op == reduction_op::avg;
  std::vector<both_sides> gradients;
  std::vector<const std::byte*> from;
  std::vector<double> weights;
  detail::device_rule_pass pass{.op = op, .step = 3};
  for (unsigned rank = 0; rank < ranks; ++rank) {
    gradients.emplace_back(random_tensor(type, count, rank));
    weights.push_back(is_weighted ? 1.0 / (3 + rank) : 1.0);
    pass.gradients.push_back(gradients.back().there);
  }
  for (const auto& each : gradients) from.push_back(each.here.data());
  pass.weights = weights;
  const both_sides value(random_tensor(type, count, 100));
  const both_sides made(tensor::zeros(type, {count}));
  std::vector<both_sides> states;
  std::vector<both_sides> new_states;
  std::vector<const std::byte*> old_states;
  std::vector<std::byte*> written_states;
  for (unsigned state = 0; state < rule.state_count(); ++state) {
    const auto wide = update_rule::state_type(type);
    states.emplace_back(convert(random_tensor(dtype::u8, count, 200 + state), wide));
    new_states.emplace_back(tensor::zeros(wide, {count}));
    pass.old_states.push_back(states.back().there);
    pass.new_states.push_back(new_states.back().there);
    old_states.push_back(states.back().here.data());
    written_states.push_back(new_states.back().here.data());
  }
  pass.value = value.there;
  pass.new_value = made.there;
  auto* const to = made.here.data();
  detail::apply(rule, {.type = type,
                       .op = op,
                       .gradients = from,
                       .weights = weights,
                       .value = value.here.data(),
                       .new_values = {&to, 1},
                       .old_states = old_states,
                       .new_states = written_states,
                       .step = 3,
                       .count = count});
  detail::apply_there(rule, pass);
  return made.are_equal() && std::ranges::all_of(new_states, [](const both_sides& each) { return each.are_equal(); });
}

class CudaRulesOfTensors : public test::gpu_test {};

TEST_F(CudaRulesOfTensors, GiveTheBitsOfTheHostsForAnyNumberOfRanks) {
  for (const auto type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    for (const std::size_t ranks : {1U, 2U, 16U, 17U, 40U}) {
      for (const auto& rule : all_rules()) {
        EXPECT_TRUE(gives_the_same(rule, reduction_op::sum, type, ranks)) << rule.name() << type << ranks;
        EXPECT_TRUE(gives_the_same(rule, reduction_op::avg, type, ranks)) << rule.name() << type << ranks;
      }
    }
  }
}

TEST_F(CudaRulesOfTensors, AssignWhatAnyOperationGives) {
  using enum reduction_op;
  for (const auto type : {dtype::boolean, dtype::i8, dtype::i64, dtype::u16, dtype::f16, dtype::f32, dtype::f64,
                          dtype::c64, dtype::c128}) {
    const bool has_order = type != dtype::c64 && type != dtype::c128;
    for (const std::size_t ranks : {1U, 3U, 20U}) {
      for (const auto op : {sum, avg, prod, min, max}) {
        if (op == avg && type < dtype::f16) continue;
        if (!has_order && (op == min || op == max)) continue;
        EXPECT_TRUE(gives_the_same(assign_rule{}, op, type, ranks)) << op << type << ranks;
      }
    }
  }
}

}  // namespace
}  // namespace muster::cuda_rule_test
