// SPDX-License-Identifier: BSL-1.0
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <random>

#include <muster/collectives/detail/combine.hpp>
#include <muster/parallel/world.hpp>

#include "digits/train.hpp"
#include "ping_pong.hpp"
#include "python_peer.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

using muster::tensor;
using std::chrono::nanoseconds;

/// A world whose ranks are bound to processors: the caller to the first, if it computes.
class bound_world {
public:
  explicit bound_world(unsigned ranks) : world_({.ranks = ranks}) {
    const auto pids = world_.pids();
    for (std::size_t rank = 1; rank < pids.size(); ++rank) pin(pids[rank], rank);
    pin(0, caller);
  }
  muster::world* operator->() { return &world_; }

private:
  muster::world world_;
};

void nothing() {}
float one_number() { return 1; }

template <class F>
side calls_of(const std::string& name, const F& function) {
  return {.name = name, .run = [&function](std::size_t count) {
            for (std::size_t index = 0; index < count; ++index) function();
          }};
}

row call_empty(const effort& how) {
  ping_pong peer(callee);
  bound_world world(2);
  const auto empty = world->function(nothing);
  return compare_calls("call_empty", how, calls_of("call of nothing, 2 ranks", empty),
                       {{.name = "two-process spin ping-pong",
                         .run = [&](std::size_t count) { peer.run(count); },
                         .begin = [&] { peer.begin(); },
                         .end = [&] { peer.end(); }}});
}

row call_scalar(const effort& how) {
  bound_world world(2);
  const auto empty = world->function(nothing);
  const auto scalar = world->function(one_number, muster::outputs(muster::avg("one")));
  return compare_calls("call_scalar", how, calls_of("call with one number", scalar),
                       {calls_of("call of nothing", empty)});
}

float two_microseconds() {
  float value = 1;
  for (int step = 0; step < 2000; ++step) value = value * 0.999F + 0.5F;
  return value;
}

// What the function itself takes, in a rank of its own and in the caller: nothing may make it slower there.
row call_in_worker(const effort& how) {
  bound_world world(2);
  const auto function = world->function(two_microseconds, muster::outputs(muster::avg("value")));
  const auto time_in = [&](std::size_t rank) {
    return [&function, rank](std::size_t count) {
      const auto taken = [&] { return function.profile().ranks.at(rank).compute; };
      function();
      const auto before = taken();
      for (std::size_t index = 0; index < count; ++index) function();
      return taken() - before;
    };
  };
  return compare("call_in_worker", how, {.name = "the function, in a worker", .timed = time_in(1)},
                 {.name = "in the caller", .timed = time_in(0)});
}

// What it takes there while all ranks compute, and while the others have nothing to do.
row ranks_at_once(const effort& how) {
  bound_world world(2);
  const auto compute_in = [](const muster::rank_context& context, int first) {
    return static_cast<int>(context.rank) >= first ? two_microseconds() : 0;
  };
  const auto function = world->function(compute_in, muster::whole("first"), muster::outputs(muster::avg("value")));
  const auto time_from = [&](int first) {
    return [&function, first](std::size_t count) {
      const auto taken = [&] { return function.profile().ranks.at(1).compute; };
      function(first);
      const auto before = taken();
      for (std::size_t index = 0; index < count; ++index) function(first);
      return taken() - before;
    };
  };
  return compare("ranks_at_once", how, {.name = "in a worker, the caller too", .timed = time_from(0)},
                 {.name = "in the worker only", .timed = time_from(1)});
}

// ---- computing

// So much arithmetic for each row that a row takes about a microsecond.
float busy_rows(const tensor& x) {
  float sum = 0;
  for (const auto start : x.span<float>()) {
    float value = start;
    for (int step = 0; step < 700; ++step) value = value * 0.999F + 0.5F;
    sum += value;
  }
  return sum / static_cast<float>(x.rows());
}

double seconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

std::size_t rows_that_take(nanoseconds time) {
  constexpr std::size_t sample = 2000;
  const auto x = tensor::ones<float>({sample});
  volatile float sink = busy_rows(x);
  const auto taken = time_of([&] { sink = busy_rows(x); });
  static_cast<void>(sink);
  return static_cast<std::size_t>(sample * seconds(time) / seconds(taken));
}

// The speed-up is what users ask for: the ratio of the row is its inverse.
row efficiency_50ms(const effort& how) {
  bound_world two(2);
  bound_world one(1);
  const auto on_two = two->function(busy_rows, muster::rows("x"), muster::outputs(muster::avg("mean")));
  const auto on_one = one->function(busy_rows, muster::rows("x"), muster::outputs(muster::avg("mean")));
  const auto x = tensor::ones<float>({2 * rows_that_take(std::chrono::milliseconds(50))});
  return compare("efficiency_50ms", how,
                 {.name = "2 ranks, 50 ms each", .once = [&] { return time_of([&] { on_two(x); }); }},
                 {.name = "1 rank", .once = [&] { return time_of([&] { on_one(x); }); }});
}

constexpr std::size_t mnist_parameters = 160362;

std::tuple<float, tensor> step_with_gradient(const tensor& x, const tensor& weights) {
  const auto loss = busy_rows(x);
  auto gradient = tensor::full<float>(weights.shape(), loss * 1e-6F);
  return {loss, gradient};
}

row efficiency_mnist_like(const effort& how) {
  bound_world two(2);
  bound_world one(1);
  const auto step_of = [](bound_world& world) {
    const auto weights = world->replicate("weights", tensor::zeros<float>({mnist_parameters}));
    return world->function(step_with_gradient, muster::rows("x"), muster::replicas(weights),
                           muster::outputs(muster::avg("loss")),
                           muster::updates(muster::reduced_into(weights, muster::avg, muster::sgd{.rate = 0.1})));
  };
  const auto on_two = step_of(two);
  const auto on_one = step_of(one);
  const auto x = tensor::ones<float>({rows_that_take(std::chrono::milliseconds(7))});
  return compare("efficiency_mnist_like", how,
                 {.name = "2 ranks, loss and 0.64 MB of gradient", .once = [&] { return time_of([&] { on_two(x); }); }},
                 {.name = "1 rank", .once = [&] { return time_of([&] { on_one(x); }); }});
}

// As many parameters as ResNet-50 has.
constexpr std::size_t resnet_parameters = 25'500'000;

// The ratio is the inverse of the efficiency: the ranks compute as much each as the one does.
row efficiency_resnet_like(const effort& how) {
  bound_world two(2);
  bound_world one(1);
  const auto step_of = [](bound_world& world) {
    const auto weights = world->replicate("weights", tensor::zeros<float>({resnet_parameters}));
    return world->function(step_with_gradient, muster::rows("x"), muster::replicas(weights),
                           muster::outputs(muster::avg("loss")),
                           muster::updates(muster::reduced_into(weights, muster::avg, muster::sgd{.rate = 0.1})));
  };
  const auto on_two = step_of(two);
  const auto on_one = step_of(one);
  const auto rows = rows_that_take(std::chrono::milliseconds(100));
  const auto x_of_two = tensor::ones<float>({2 * rows});
  const auto x_of_one = tensor::ones<float>({rows});
  return compare("efficiency_resnet_like", how,
                 {.name = "2 ranks, 102 MB of gradient", .once = [&] { return time_of([&] { on_two(x_of_two); }); }},
                 {.name = "1 rank, half as many rows", .once = [&] { return time_of([&] { on_one(x_of_one); }); }});
}

row slices_overhead(const effort& how) {
  bound_world world(2);
  const auto function = world->function(busy_rows, muster::rows("x"), muster::outputs(muster::avg("mean")));
  const auto x = tensor::ones<float>({2 * rows_that_take(std::chrono::milliseconds(5))});
  const auto sliced = function.with({.num_slices = 16});
  const auto whole = function.with({});
  return compare("slices_overhead", how, {.name = "16 slices", .once = [&] { return time_of([&] { sliced(x); }); }},
                 {.name = "1 slice", .once = [&] { return time_of([&] { whole(x); }); }});
}

// ---- learning

digits::samples as_many_as_the_digits() {
  constexpr std::size_t images = 1500;
  digits::samples made{.images = tensor::empty<float>({images, digits::pixels}),
                       .labels = tensor::empty<std::int32_t>({images})};
  std::minstd_rand random(1);
  for (auto& each : made.images.span<float>()) each = static_cast<float>(random() % 17) / 16;
  for (auto& each : made.labels.span<std::int32_t>()) each = static_cast<std::int32_t>(random() % digits::kinds);
  return made;
}

class bound_trainer {
public:
  explicit bound_trainer(unsigned ranks)
      : trainer_({.hidden = 512, .ranks = ranks, .batch = 512}, as_many_as_the_digits()) {
    const auto pids = trainer_.world().pids();
    for (std::size_t rank = 1; rank < pids.size(); ++rank) pin(pids[rank], rank);
    pin(0, caller);
  }
  void epoch() {
    for (std::size_t step = 0; step < trainer_.steps_per_epoch(); ++step) trainer_.step();
  }

private:
  digits::trainer trainer_;
};

row digits_epoch(const effort& how) {
  bound_trainer two(2);
  bound_trainer one(1);
  return compare("digits_epoch", how, {.name = "2 ranks", .once = [&] { return time_of([&] { two.epoch(); }); }},
                 {.name = "1 rank", .once = [&] { return time_of([&] { one.epoch(); }); }});
}

row ddp_step(const effort& how) {
  python_peer torch(with_ddp(resnet_parameters));  // first: it binds itself to processors of all that there are
  bound_world world(2);
  const auto weights = world->replicate("weights", tensor::ones<float>({resnet_parameters}));
  const auto step =
      world->function([](const tensor& w) { return tensor::ones<float>(w.shape()); }, muster::replicas(weights),
                      muster::updates(muster::reduced_into(weights, muster::avg, muster::sgd{.rate = 0.1})));
  return compare("ddp_step", how, {.name = "a call that updates", .once = [&] { return time_of([&] { step(); }); }},
                 {.name = "DistributedDataParallel with gloo, torch " + python_peer::version_of("torch"),
                  .once = [&] { return time_of([&] { torch.run(1); }); }});
}

// ---- selecting rows

constexpr std::size_t images = 1000;
constexpr std::size_t chosen = 100;
constexpr std::size_t image_bytes = std::size_t{3} * 224 * 224 * sizeof(float);

tensor all_images() { return tensor::ones<float>({images, 3, 224, 224}); }

std::vector<std::int64_t> some_images(std::size_t count) {
  std::minstd_rand random(1);
  std::vector<std::int64_t> list(count);
  for (auto& each : list) each = static_cast<std::int64_t>(random() % images);
  return list;
}

// Of rows that are selected by a list each rank makes a copy, and nothing but that happens.
auto first_of_rows(bound_world& world) {
  return world->function([](const tensor& rows) { return rows.at<float>(0, 0, 0, 0); }, muster::rows("x"),
                         muster::outputs(muster::max("first")));
}

row scatter_list(const effort& how) {
  const auto x = all_images();
  const auto list = some_images(chosen);
  bound_world world(2);
  const auto function = first_of_rows(world);
  const auto selected = function.with({.batch = list});
  const auto room = tensor::empty<float>({chosen, 3, 224, 224}, muster::memory::local);
  const auto copy = [&] {
    for (std::size_t index = 0; index < chosen; ++index) {
      muster::detail::copy(room.data() + index * image_bytes,
                           x.data() + static_cast<std::size_t>(list[index]) * image_bytes, image_bytes,
                           muster::detail::stores::streaming);
    }
  };
  const auto times =
      compare("scatter_list", how,
              {.name = "100 of 1000 images, 2 ranks", .once = [&] { return time_of([&] { selected(x); }); }},
              {.name = "the same copy by one thread", .once = [&] { return time_of(copy); }});
  return as_rate(times, chosen * image_bytes);
}

row scatter_ranks(const effort& how) {
  const auto x = all_images();
  bound_world two(2);
  bound_world one(1);
  const auto of_two = first_of_rows(two);
  const auto of_one = first_of_rows(one);
  const auto by_two = of_two.with({.batch = some_images(2 * chosen)});
  const auto by_one = of_one.with({.batch = some_images(chosen)});
  const auto half = [](std::chrono::nanoseconds time) { return time / 2; };
  const auto times =
      compare("scatter_ranks", how,
              {.name = "2 ranks, 100 images each", .once = [&] { return half(time_of([&] { by_two(x); })); }},
              {.name = "1 rank, 100 images", .once = [&] { return time_of([&] { by_one(x); }); }});
  return as_rate(times, chosen * image_bytes);
}

// ---- dying

void die_in(const muster::rank_context& context, int victim) {
  if (static_cast<int>(context.rank) == victim) std::raise(SIGKILL);
}

row kill_recovery(const effort& how) {
  muster::world world({.ranks = 2, .log = [](muster::log_level, std::string_view) {}});
  const auto replicas = world.replicate("weights", tensor::ones<float>({1000}));
  const auto function = world.function(die_in, muster::whole("victim"));
  const auto failed_and_next = [&] {
    try {
      function(1);
      std::abort();
    } catch (const muster::rank_error&) {
      function(-1);
    }
  };
  return compare("kill_recovery", how,
                 {.name = "failed call to next result", .once = [&] { return time_of(failed_and_next); }},
                 spawning_peer());
}

}  // namespace

std::vector<workload> worlds() {
  return {{.name = "call_empty", .run = call_empty},
          {.name = "call_scalar", .run = call_scalar},
          {.name = "call_in_worker", .run = call_in_worker},
          {.name = "ranks_at_once", .run = ranks_at_once},
          {.name = "efficiency_50ms", .run = efficiency_50ms},
          {.name = "efficiency_mnist_like", .run = efficiency_mnist_like},
          {.name = "efficiency_resnet_like", .run = efficiency_resnet_like},
          {.name = "slices_overhead", .run = slices_overhead},
          {.name = "digits_epoch", .run = digits_epoch},
          {.name = "scatter_list", .run = scatter_list},
          {.name = "scatter_ranks", .run = scatter_ranks},
          {.name = "kill_recovery", .run = kill_recovery},
          {.name = "ddp_step", .run = ddp_step, .needs_module = "torch"}};
}

}  // namespace bench
