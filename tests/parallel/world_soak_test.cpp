// SPDX-License-Identifier: BSL-1.0
// Ranks are killed at any moment of thousands of training steps. After each, all replicas are what a serial program has
// that counts just the calls which did not fail.
#include <csignal>
#include <iostream>
#include <random>
#include <thread>

#include <muster/base/detail/mutex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/memory/domain.hpp>

#include "processes.hpp"
#include "seed.hpp"
#include "soak_time.hpp"
#include "world_support.hpp"

namespace muster::world_soak_test {
namespace {

constexpr std::size_t weights_count = 300;
constexpr double rate = 0.25;
constexpr double momentum = 0.5;

std::tuple<float, tensor, tensor, tensor, tensor> step_of(const tensor& x, const tensor& weights) {
  const auto sum = test::total(x);
  return {sum, x, tensor::full<float>({500}, sum), tensor::full<float>(weights.shape(), sum),
          tensor::full<float>({}, static_cast<float>(x.rows()))};
}

/// Kills ranks, one after the other, each some calls after the last one.
///
/// Thread safety: shared objects: safe.
class killer {
public:
  killer(const world& w, unsigned seed) : w_(w), random_(seed) {
    find_ranks();
    thread_ = std::thread([this] { run(); });
  }
  killer(const killer&) = delete;
  killer& operator=(const killer&) = delete;
  ~killer() {
    stops_ = true;
    thread_.join();
  }

  /// The processes may be others now.
  void find_ranks() {
    std::vector<unique_fd> found;
    for (const auto pid : w_.pids()) {
      if (pid == 0) continue;
      try {
        found.push_back(open_pidfd(pid));
      } catch (const error&) {  // it is dead already, and its place not taken
      }
    }
    const scoped_lock lock(guard_);
    ranks_ = std::move(found);
  }
  void count_call() noexcept { ++calls_; }

private:
  void run() {
    const auto draw = [&](unsigned most) { return std::uniform_int_distribution<unsigned>(0, most)(random_); };
    while (!stops_) {
      const auto until = calls_ + 5 + draw(40);
      while (calls_ < until && !stops_) ::sched_yield();
      test::work_for(std::chrono::microseconds(draw(200)));  // so that it comes at any moment of a call
      const scoped_lock lock(guard_);
      if (!ranks_.empty())
        static_cast<void>(send_signal(ranks_[draw(static_cast<unsigned>(ranks_.size() - 1))].get(), SIGKILL));
    }
  }

  const world& w_;
  std::mt19937 random_;  // the thread's alone
  mutex guard_;
  std::vector<unique_fd> ranks_ MUSTER_GUARDED_BY(guard_);
  std::atomic<unsigned> calls_ = 0;  // counted by the caller, read by the thread; no other data goes with it
  std::atomic<bool> stops_ = false;  // the other way round
  std::thread thread_;
};

/// What the variables of the ranks should be.
struct serial_state {
  std::vector<float> own_rows;  // by rank
  float weight = 1;
  float remembered = 0;

  void step(float sum, std::size_t rows) {
    remembered = static_cast<float>(momentum) * remembered + sum;
    weight -= static_cast<float>(rate) * remembered;
    for (std::size_t rank = 0; rank < own_rows.size(); ++rank) {
      own_rows[rank] += static_cast<float>(part_of({0, rows}, rank, own_rows.size()).size());
    }
  }
};

// Ten thousand in all when there is time.
int calls_to_make() { return test::soak_time(std::chrono::seconds(0)).count() > 0 ? 5'000 : 500; }

void soak(test::caller who) {
  const auto seed = test::seed(1);
  const int calls = calls_to_make();
  auto options = test::options_for(4, who);
  options.log = [](log_level /*level*/, std::string_view /*text*/) {};
  world w(options);
  auto weights = w.replicate("weights", tensor::full<float>({weights_count}, 1.0F));
  auto rows_seen = w.replicate("rows_seen", tensor::zeros<float>({}));
  auto f =
      w.function(step_of, rows("x"), replicas(weights), outputs(sum("sum"), gather("x"), sum("sums")),
                 updates(reduced_into(weights, sum, sgd{.rate = rate, .momentum = momentum}), increment(rows_seen)),
                 named("step"));
  serial_state expected{.own_rows = std::vector<float>(4)};
  std::mt19937 random(seed);
  killer deaths(w, seed + 1);
  int failed = 0;
  std::size_t held_bytes = 0;
  const auto held = [] { return domain::of_program()->blocks().read_statistics().held_bytes; };
  for (int call = 0; call < calls && !testing::Test::HasFailure(); ++call) {
    const auto count = std::uniform_int_distribution<std::size_t>(1, 12)(random);
    // Whole numbers from -1 to 1: what is computed has no rounding.
    auto x = tensor::empty<float>({count});
    for (auto& each : x.span<float>()) each = static_cast<float>(std::uniform_int_distribution<int>(-1, 1)(random));
    const auto replaced = w.replaced_ranks();
    deaths.count_call();
    if (call == calls / 4) held_bytes = held();
    try {
      const auto [sum, rows, sums] = f.with({.num_slices = 1 + static_cast<unsigned>(call % 3)})(x);
      EXPECT_EQ(sum, test::total(x));
      EXPECT_EQ(rows.to_vector<float>(), x.to_vector<float>());
      EXPECT_THAT(sums.to_vector<float>(), testing::Each(sum));
      expected.step(test::total(x), count);
    } catch (const rank_error& failure) {
      ++failed;
      EXPECT_EQ(failure.code(), errc::worker_died) << failure.what();
    }
    if (w.replaced_ranks() != replaced) deaths.find_ranks();
    const auto first = w.get_value(0, weights).to_vector<float>();
    EXPECT_NEAR(first[0], expected.weight, 1e-3F * std::max(1.0F, std::abs(expected.weight))) << "call " << call;
    EXPECT_THAT(first, testing::Each(first[0]));
    for (std::size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(w.get_value(rank, weights).to_vector<float>(), first) << "call " << call << ", rank " << rank;
      EXPECT_EQ(w.get_value(rank, rows_seen).item<float>(), expected.own_rows[rank]) << "call " << call;
    }
  }
  std::cout << calls << " calls, " << w.replaced_ranks() << " ranks replaced, " << failed << " calls failed\n";
  EXPECT_GT(w.replaced_ranks(), 10U);
  std::cout << held_bytes << " bytes held after a quarter of them, " << held() << " at the end\n";
}

TEST(WorldSoak, ReplicasAreEqualAndRightHoweverManyRanksDieWithACallerThatComputes) { soak(test::caller::first); }

TEST(WorldSoak, ReplicasAreEqualAndRightHoweverManyRanksDieWithACallerThatDoesNot) { soak(test::caller::none); }

}  // namespace
}  // namespace muster::world_soak_test
