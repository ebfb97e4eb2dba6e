// SPDX-License-Identifier: BSL-1.0
// A rank is killed at points all over its part in a call: the first one of a function, of which it is told with it, and
// a later one; with an update that is reduced over all ranks, one of its own, and outputs, in short and in long
// tensors. The call then happens as a whole or not at all, the next one is right, and no memory is lost.
//
// The ranks are a pool's workers. One is stopped where it sleeps between calls; then another thread calls, and the rank
// is stepped through its part, while caller and other ranks run free.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/memory/domain.hpp>
#include <muster/parallel/detail/frame_port.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>
#include <muster/parallel/detail/share_run.hpp>
#include <muster/parallel/world.hpp>

#include "memory_state.hpp"
#include "tracee.hpp"

namespace muster::world_step_test {
namespace {

constexpr std::size_t all_rows = 40;

struct scenario {
  const char* name;
  std::size_t count = 8;  // elements of each variable, and of an output's row
  unsigned ranks = 2;
  bool caller_computes = true;
  bool is_first = false;  // the rank does not know function and variables yet
  unsigned points = 8;    // behind each place
};

// Stops whoever is traced, for its tracer.
void land() {
  const unique_fd file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  const auto got = ::read(file.get(), text.data(), text.size());
  const std::string_view status(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (status.find("TracerPid:\t0\n") == std::string_view::npos) ::raise(SIGTRAP);
}

/// Something that is sent: whoever is traced lands when it reads or writes it.
struct landmark {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value);
    land();
  }
  int value = 0;
};

/// Outputs: a row for each, how many there are, and what it was given. Updates: of all ranks together, and of one's
/// own.
struct part {
  std::tuple<tensor, float, landmark, tensor, tensor> operator()(const tensor& x, landmark given, const tensor& shared,
                                                                 const tensor&) const {
    const auto rows = static_cast<float>(x.rows());
    auto made = tensor::full<float>({x.rows(), shared.size()}, 1.0F);
    auto update = tensor::full<float>({shared.size()}, rows);
    land();
    return {std::move(made), rows, given, update, update};
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(sent);
  }
  landmark sent;  // with the function
};

// Where a rank is stepped from: behind so many landings, and behind so many calls of a function from there.
struct place {
  const char* name;
  unsigned landings = 0;
  std::uintptr_t function = 0;
  unsigned calls = 0;
};

template <class Function>
std::uintptr_t address_of(Function what) {
  return std::bit_cast<std::array<std::uintptr_t, sizeof what / sizeof(std::uintptr_t)>>(what)[0];
}

// `told`: by how many landings being told of the function comes first.
std::vector<place> places(unsigned told) {
  const auto lent = address_of(&arena::borrow_into);
  const auto ring = address_of(&muster::ring);
  const auto given_back = address_of(&detail::borrowing_source::end);
  std::vector<place> all = {
      {.name = "woken"},
      {.name = "reading arguments", .landings = told + 1},
      {.name = "in the function", .landings = told + 2},
      {.name = "finishing updates",
       .landings = told + 2,
       .function = address_of(&detail::share_run::finish_updates),
       .calls = 1},
      {.name = "computed", .landings = told + 2, .function = ring, .calls = 1},
      {.name = "reading what others offer", .landings = told + 2, .function = lent, .calls = 1},
      {.name = "writing replicas", .landings = told + 2, .function = address_of(&detail::apply), .calls = 1},
      {.name = "counting the reply", .landings = told + 3},
      {.name = "writing the reply", .landings = told + 4},
      {.name = "giving back", .landings = told + 4, .function = given_back, .calls = 1},
      {.name = "done", .landings = told + 4, .function = ring, .calls = 1}};
  if (told != 0) {
    all.push_back({.name = "told of the function", .landings = 1});
    all.push_back({.name = "told of the variables", .landings = 1, .function = lent, .calls = 2});
    all.push_back({.name = "told of all", .landings = 1, .function = lent, .calls = 4});
  }
  return all;
}

/// A function, its variables, and how often it has been called.
class called_function {
public:
  called_function(world& in, std::size_t count)
      : world_(in),
        shared_(in.replicate("shared", tensor::full<float>({count}, 0.0F))),
        own_(in.replicate("own", tensor::full<float>({count}, 0.0F))),
        call_(in.function(part{}, rows("x"), whole("given"), replicas(shared_, own_),
                          outputs(gather("rows"), sum("count"), none("given")),
                          updates(reduced_into(shared_, sum, sgd{.rate = 1.0}), increment(own_, sum)))) {}

  auto begin() { return call_.async(x_, landmark{.value = 3}); }

  template <class Future>
  void end(Future&& of) {
    try {
      const auto [made, count, given] = of.get();
      EXPECT_EQ(count, static_cast<float>(all_rows));
      EXPECT_EQ(made.shape(), (tensor_shape{all_rows, shared_size()}));
      EXPECT_TRUE(std::ranges::all_of(made.template span<float>(), [](float each) { return each == 1.0F; }));
      EXPECT_TRUE(std::ranges::all_of(given, [](const landmark& each) { return each.value == 3; }));
      ++calls_;
    } catch (const rank_error& failure) {
      EXPECT_EQ(failure.info().code(), errc::worker_died) << failure.what();
    }
    expect_variables();
  }

  [[nodiscard]] unsigned calls() const { return calls_; }

private:
  [[nodiscard]] std::size_t shared_size() const { return world_.get_value(0, shared_).size(); }

  void expect_variables() const {
    for (std::size_t rank = 0; rank < world_.ranks(); ++rank) {
      const auto share = part_of({.first = 0, .last = all_rows}, rank, world_.ranks());
      expect_all(world_.get_value(rank, shared_), -static_cast<float>(calls_ * all_rows), "shared", rank);
      expect_all(world_.get_value(rank, own_), static_cast<float>(calls_ * share.size()), "own", rank);
    }
  }

  static void expect_all(const tensor& found, float expected, const char* name, std::size_t rank) {
    const auto values = found.span<float>();
    EXPECT_TRUE(std::ranges::all_of(values, [&](float each) { return each == expected; }))
        << name << " in rank " << rank << " is " << values[0] << ", but should be " << expected;
  }

  using call_type = decltype(std::declval<world&>().function(
      part{}, rows("x"), whole("given"), replicas(std::declval<variable>(), std::declval<variable>()),
      outputs(gather("rows"), sum("count"), none("given")),
      updates(reduced_into(std::declval<variable>(), sum, sgd{}), increment(std::declval<variable>(), sum))));

  world& world_;
  variable shared_;
  variable own_;
  call_type call_;
  tensor x_ = tensor::full<float>({all_rows}, 1.0F);
  unsigned calls_ = 0;
};

class WorldStep : public testing::TestWithParam<scenario> {
protected:
  struct stepped {
    unsigned instructions = 0;
    bool happened = false;
  };

  // The thread that calls is made before this one is bound to a processor.
  void SetUp() override {
    used_.emplace(*world_, GetParam().count);
    used_->end(used_->begin());
  }

  // Kills the rank so many instructions behind a place of its part in a call, or at the part's end.
  void kill_at(const place& where, unsigned instructions) {
    if (GetParam().is_first) used_.emplace(*world_, GetParam().count);
    const auto before = used_->calls();
    step(where, instructions);
    const bool has_happened = used_->calls() > before;
    if (has_happened) ++happened_;
    go_on(has_happened);
  }

  // A death behind a call that happened may be known only in the next one.
  void go_on(bool may_fail_once) {
    const auto before = used_->calls();
    used_->end(used_->begin());
    if (may_fail_once && used_->calls() == before) used_->end(used_->begin());
    EXPECT_EQ(used_->calls(), before + 1) << "the next call has failed";
  }

  void step(const place& where, unsigned instructions) {
    const auto victim = world_->pids()[1];
    EXPECT_TRUE(test::eventually([&] { return test::sleeps_on_futex(victim); }));
    test::tracee traced(victim);
    traced.interrupt();
    auto call = used_->begin();
    for (unsigned each = 0; each < where.landings; ++each) traced.run_to_landing();
    for (unsigned each = 0; each < where.calls; ++each) traced.run_to(where.function);
    for (unsigned done = 0; done < instructions; ++done) {
      if (traced.step(true) == test::tracee::outcome::stopped) continue;
      if (call.wait_for(std::chrono::milliseconds(20))) break;
      static_cast<void>(traced.await_stop());
    }
    ::kill(victim, SIGKILL);
    used_->end(std::move(call));
  }

  unsigned happened_ = 0;
  std::shared_ptr<domain> domain_ =
      domain::of_program({.arena_bytes = std::size_t{64} << 20U, .max_participants = 16, .max_blocks = 1024});
  std::optional<world> world_{
      std::in_place,
      world_options{.ranks = GetParam().ranks, .caller_computes = GetParam().caller_computes, .log = {}}};
  std::optional<called_function> used_;
};

TEST_P(WorldStep, AKillAtAnyPointLeavesEqualReplicasAndARightNextCall) {
  constexpr unsigned apart = 67;  // instructions from one point to the next
  unsigned points = 0;
  for (const auto& where : places(GetParam().is_first ? 1 : 0)) {
    for (unsigned point = 0; point < GetParam().points && !HasFailure(); ++point, ++points) {
      kill_at(where, point * apart);
      if (HasFailure()) ADD_FAILURE() << "killed " << point * apart << " instructions behind: " << where.name;
    }
  }
  std::printf("%u kill points; %u of the calls happened\n", points, happened_);
  EXPECT_GT(happened_, 0U);
  EXPECT_GE(world_->replaced_ranks(), points);
  used_.reset();
  world_.reset();
  EXPECT_TRUE(test::is_all_free(*domain_));
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, WorldStep,
    testing::Values(scenario{.name = "LaterCallOfShortTensors"},
                    scenario{.name = "LaterCallOfLongTensors", .count = 600},
                    scenario{.name = "FirstCallOfShortTensors", .is_first = true},
                    scenario{.name = "FirstCallOfLongTensors", .count = 600, .is_first = true},
                    scenario{.name = "LaterCallWithoutTheCaller", .ranks = 3, .caller_computes = false},
                    scenario{
                        .name = "FirstCallWithoutTheCaller", .ranks = 3, .caller_computes = false, .is_first = true}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace muster::world_step_test
