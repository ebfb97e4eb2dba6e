// SPDX-License-Identifier: BSL-1.0
// Ranks that throw, die and stop, and how soon the caller hears of it. What tests leave behind is looked at by
// leak_check.
#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <muster/base/clock.hpp>
#include <muster/base/pidfd.hpp>

#include "leak_check.hpp"
#include "processes.hpp"
#include "temporary_directory.hpp"
#include "world_support.hpp"

namespace muster::world_fault_test {
namespace {

using namespace std::chrono_literals;

// How long it takes is for benchmarks to say; here, that nobody waited for what never comes.
constexpr auto in_time = 30s;
using testing::AllOf;
using testing::HasSubstr;

/// What a rank does besides its work, if it is the victim.
enum class mishap : int { none, throws, dies, stops, lingers };

void suffer(const rank_context& context, int victim, mishap what) {
  if (static_cast<int>(context.rank) != victim) return;
  switch (what) {
    case mishap::none: return;
    case mishap::throws: throw std::range_error("too much in rank " + std::to_string(context.rank));
    case mishap::dies: std::raise(SIGKILL); return;
    case mishap::stops: std::raise(SIGSTOP); return;
    case mishap::lingers: std::this_thread::sleep_for(600s); return;
  }
}

tensor troubled(const rank_context& context, const tensor& x, int victim, mishap what, int second, mishap then,
                const tensor& weights) {
  suffer(context, victim, what);
  suffer(context, second, then);
  return tensor::full<float>(weights.shape(), test::total(x));
}

/// A world, a variable and functions that change it, by themselves and together.
struct scene {
  explicit scene(world_options options) : w(std::move(options)) {}

  world w;
  variable weights = w.replicate("weights", tensor::full<float>({500}, 1.0F));
  using function_type = decltype(w.function(troubled, rows("x"), whole("victim", "what", "second", "then"),
                                            replicas(weights), updates(assign(weights, sum)), named("troubled")));
  // A momentum, so that there is something to remember.
  function_type together =
      w.function(troubled, rows("x"), whole("victim", "what", "second", "then"), replicas(weights),
                 updates(reduced_into(weights, sum, sgd{.rate = 1, .momentum = 0.5})), named("together"));
  function_type apart = w.function(troubled, rows("x"), whole("victim", "what", "second", "then"), replicas(weights),
                                   updates(increment(weights)), named("apart"));
  tensor x = tensor::ones<float>({8});

  void expect_weights(float value) const {
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      const auto found = w.get_value(rank, weights);
      EXPECT_THAT(found.to_vector<float>(), testing::Each(value)) << "rank " << rank;
    }
  }
  /// The world is as new.
  void expect_good_call() {
    w.broadcast(weights, tensor::full<float>({500}, 1.0F));
    auto f = w.function([](const tensor& part) { return test::total(part); }, rows("x"), outputs(sum("sum")));
    EXPECT_EQ(f(x), 8.0F);
    apart(x, -1, mishap::none, -1, mishap::none);
    for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
      const auto rows = part_of({0, 8}, rank, w.ranks()).size();
      EXPECT_EQ(w.get_value(rank, weights).at<float>(499), 1.0F + static_cast<float>(rows));
    }
    w.broadcast(weights, tensor::full<float>({500}, 1.0F));
  }
};

/// The error of a call, and how long it took.
struct ending {
  std::string text;
  std::error_code code;
  std::optional<std::size_t> rank;
  std::chrono::nanoseconds time{};
};
template <class Call>
ending end_of(const Call& call) {
  const auto begin = clock::now();
  ending found;
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const rank_error& failure) {
    found = {.text = failure.what(), .code = failure.code(), .rank = failure.rank()};
  } catch (const error& failure) {
    found = {.text = failure.what(), .code = failure.code(), .rank = {}};
  }
  found.time = clock::now() - begin;
  return found;
}

// Whoever waits for what never comes is killed after the grace. Elsewhere it is so long that nobody is, whatever the
// load.
constexpr auto short_grace = 100ms;

template <class Test>
void in_scenes(std::chrono::nanoseconds grace, const Test& test) {
  for (const auto who : {test::caller::first, test::caller::last, test::caller::none}) {
    SCOPED_TRACE(testing::Message() << "caller " << static_cast<int>(who));
    auto options = test::options_for(3, who);
    options.name = "stage";
    options.grace = grace;
    scene s(options);
    test(s, who);
  }
}
template <class Test>
void in_scenes(const Test& test) {
  in_scenes(in_time, test);
}

TEST(WorldFaults, WhatARankThrowsReachesTheCallerWithRankAndFunction) {
  in_scenes([](scene& s, test::caller /*who*/) {
    for (int rank = 0; rank < 3; ++rank) {
      for (auto* const f : {&s.together, &s.apart}) {
        const auto found = end_of([&] { (*f)(s.x, rank, mishap::throws, -1, mishap::none); });
        EXPECT_EQ(found.code, errc::remote_exception);
        EXPECT_EQ(found.rank, static_cast<std::size_t>(rank));
        EXPECT_THAT(found.text, AllOf(HasSubstr("rank " + std::to_string(rank)), HasSubstr("'" + f->name() + "'"),
                                      HasSubstr("too much in rank " + std::to_string(rank)), HasSubstr("'stage'")));
        EXPECT_LT(found.time, in_time);
        s.expect_weights(1);
      }
      s.expect_good_call();
    }
    EXPECT_EQ(s.w.replaced_ranks(), 0U);
  });
}

TEST(WorldFaults, ARankWhoseDeviceIsLostIsReplacedForTheNextCall) {
  scene here({.ranks = 3});
  const auto before = here.w.pids();
  auto lose = here.w.function(
      [](const rank_context& context, int victim) {
        if (static_cast<int>(context.rank) == victim) throw error(errc::device_lost, "an illegal address was read");
      },
      whole("victim"), named("lose"));
  try {
    lose(2);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const rank_error& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("rank 2"), HasSubstr("an illegal address")));
  }
  lose(-1);
  const auto after = here.w.pids();
  EXPECT_EQ(after[1], before[1]);
  EXPECT_NE(after[2], before[2]);
  EXPECT_EQ(here.w.replaced_ranks(), 1U);
}

TEST(WorldFaults, ARankKilledInItsComputationIsReplaced) {
  in_scenes([](scene& s, test::caller who) {
    for (int rank = 0; rank < 3; ++rank) {
      if (who != test::caller::none && static_cast<std::size_t>(rank) == s.w.master_rank()) continue;
      for (auto* const f : {&s.together, &s.apart}) {
        const auto before = s.w.pids();
        const auto found = end_of([&] { (*f)(s.x, rank, mishap::dies, -1, mishap::none); });
        EXPECT_EQ(found.code, errc::worker_died);
        EXPECT_EQ(found.rank, static_cast<std::size_t>(rank));
        EXPECT_THAT(found.text, AllOf(HasSubstr("rank " + std::to_string(rank)), HasSubstr("'" + f->name() + "'")));
        EXPECT_LT(found.time, in_time);
        s.expect_weights(1);
        s.expect_good_call();
        EXPECT_NE(s.w.pids(), before);
      }
    }
    EXPECT_EQ(s.w.replaced_ranks(), who == test::caller::none ? 6U : 4U);
  });
}

tensor one_more(const rank_context& context, int victim, const tensor& share) {
  suffer(context, victim, mishap::dies);
  auto made = share.clone();
  for (auto& each : made.span<float>()) ++each;
  return made;
}
std::tuple<float, tensor> all_of(const rank_context& context, int victim, const tensor& part) {
  suffer(context, victim, mishap::dies);
  return {test::total(part), part};
}

void expect_shares(const world& w, const variable& v, const tensor& all) {
  EXPECT_EQ(w.gather(v, 0).to_vector<float>(), all.to_vector<float>());
  for (std::size_t rank = 0; rank < w.ranks(); ++rank) {
    const auto rows = part_of({0, all.rows()}, rank, w.ranks());
    const auto own = w.get_value(rank, v);
    EXPECT_EQ(own.shape(), (tensor_shape{rows.size(), 2})) << "rank " << rank;
    EXPECT_EQ(own.to_vector<float>(), all.slice(rows.first, rows.last).to_vector<float>()) << "rank " << rank;
  }
}

TEST(WorldFaults, RowsThatAKilledRankHadAreThere) {
  in_scenes([](scene& s, test::caller who) {
    for (const std::size_t more : {0U, 3U}) {
      auto x = tensor::arange<float>(0, static_cast<float>(2 * (24 + more))).reshape({24 + more, 2});
      const auto v = s.w.scattered("v", x);
      auto change = s.w.function(one_more, whole("victim"), replicas(v), updates(assign(v)), named("change"));
      auto look = s.w.function(all_of, whole("victim"), sliceable(v), outputs(sum("sum"), gather("rows")));
      for (int rank = 0; rank < 3; ++rank) {
        if (who != test::caller::none && static_cast<std::size_t>(rank) == s.w.master_rank()) continue;
        change(-1);  // the other copy counts now
        for (auto& each : x.span<float>()) ++each;
        const auto expect_death = [&](const auto& call) {
          const auto found = end_of(call);
          EXPECT_EQ(found.code, errc::worker_died) << found.text;
          EXPECT_EQ(found.rank, static_cast<std::size_t>(rank));
          expect_shares(s.w, v, x);
        };
        expect_death([&] { change(rank); });
        expect_death([&] { look.with({.num_slices = 2})(rank); });
        for (const unsigned slices : {1U, 3U}) {
          const auto [all, rows] = look.with({.num_slices = slices})(-1);
          EXPECT_EQ(all, test::total(x));
          EXPECT_EQ(rows.to_vector<float>(), x.to_vector<float>());
        }
      }
    }
  });
}

tensor waited_for(const rank_context& context, const tensor& x, int stuck, const tensor& seen, const tensor& weights) {
  test::visits::add(seen);
  suffer(context, stuck, mishap::lingers);
  return tensor::full<float>(weights.shape(), test::total(x));
}

TEST(WorldFaults, ARankKilledWhileItWaitsForTheOthersEndsTheCall) {
  in_scenes(short_grace, [](scene& s, test::caller who) {
    const auto victim = who == test::caller::first ? 1U : 0U;
    const int stuck = who == test::caller::last ? 1 : 2;
    const auto pid = s.w.pids()[victim];
    auto f = s.w.function(waited_for, rows("x"), whole("stuck", "seen"), replicas(s.weights),
                          updates(reduced_into(s.weights, sum, sgd{.rate = 1})));
    const test::visits seen;
    // All have begun, and the victim waits for what one of them never gives.
    std::thread killer([&] {
      static_cast<void>(test::eventually([&] { return seen.count() == 3 && test::sleeps_on_futex(pid); }));
      ::kill(pid, SIGKILL);
    });
    const auto found = end_of([&] { f(s.x, stuck, seen.shared()); });
    killer.join();
    EXPECT_EQ(found.code, errc::worker_died) << found.text;
    EXPECT_EQ(found.rank, victim);
    EXPECT_LT(found.time, in_time);
    s.expect_weights(1);
    s.expect_good_call();
  });
}

TEST(WorldFaults, ARankKilledWhileIdleIsReplacedWithItsReplicas) {
  in_scenes([](scene& s, test::caller who) {
    float momentum = 0;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      if (who != test::caller::none && rank == s.w.master_rank()) continue;
      s.together(s.x, -1, mishap::none, -1, mishap::none);
      const float first = 0.5F * momentum + 8;
      momentum = 0.5F * first + 8;
      ::kill(s.w.pids()[rank], SIGKILL);
      try {
        s.together(s.x, -1, mishap::none, -1, mishap::none);
      } catch (const rank_error&) {  // it was not dead yet when the call began
        s.together(s.x, -1, mishap::none, -1, mishap::none);
      }
      s.expect_weights(1 - first - momentum);
      s.expect_good_call();
    }
  });
}

/// The error of a call in which that rank stops; all other calls have the time that they need. Where there is load
/// another rank, or the caller, may be late too, and is named, or the call be over before that rank begins; then all
/// get more time.
template <class Function>
ending end_of_stopped_call(const Function& f, scene& s, std::size_t stopped) {
  for (auto timeout = 100ms;; timeout *= 2) {
    const auto before = s.w.pids()[stopped];
    const auto found =
        end_of([&] { f.with({.timeout = timeout})(s.x, static_cast<int>(stopped), mishap::stops, -1, mishap::none); });
    EXPECT_EQ(found.code, errc::timed_out) << found.text;
    s.expect_weights(1);
    s.expect_good_call();
    const bool is_replaced = s.w.pids()[stopped] != before;
    const bool is_alone = found.rank == stopped && is_replaced;
    if (!is_alone && timeout < 5s) continue;
    EXPECT_TRUE(is_replaced);
    EXPECT_GE(found.time, timeout + short_grace);
    return found;
  }
}

TEST(WorldFaults, AStoppedRankIsTooLateAndIsReplaced) {
  for (const auto who : {test::caller::first, test::caller::none}) {
    for (const bool together : {true, false}) {
      auto options = test::options_for(3, who);
      options.grace = short_grace;
      scene s(options);
      auto& f = together ? s.together : s.apart;
      f(s.x, -1, mishap::none, -1, mishap::none);
      s.w.broadcast(s.weights, tensor::full<float>({500}, 1.0F));
      const auto found = end_of_stopped_call(f, s, 1);
      EXPECT_EQ(found.rank, 1U) << found.text;
      EXPECT_LT(found.time, in_time);
    }
  }
}

TEST(WorldFaults, ATimeoutOfOneCallIsThatOfTheCall) {
  scene s({.ranks = 2, .grace = 20ms});
  auto f = s.w.function([](const rank_context& context) { suffer(context, 1, mishap::lingers); }, named("slow"));
  const auto found = end_of([&] { f.with({.timeout = 50ms})(); });
  EXPECT_EQ(found.code, errc::timed_out) << found.text;
  EXPECT_THAT(found.text, HasSubstr("'slow'"));
  EXPECT_GE(found.time, 50ms);
  s.expect_good_call();
}

void await_file(const std::string& name) {
  while (!std::filesystem::exists(name)) ::sched_yield();
}

TEST(WorldFaults, ACallEndsInItsTimeThoughARankIsStillBeingStarted) {
  const test::temporary_directory directory;
  const auto gate = directory.path() / "gate";
  directory.write("gate", "");
  world w({.ranks = 2, .initializer = muster::bind_front(await_file, gate.string())});
  const auto v = w.replicate("v", tensor::zeros<float>({3}));
  auto f = w.function([](const tensor& old) { return tensor::full<float>({3}, old.at<float>(0) + 1); }, replicas(v),
                      updates(assign(v)), named("patient"));
  f();
  float calls = 1;
  std::filesystem::remove(gate);
  ::kill(w.pids()[1], SIGKILL);
  for (int round = 0; round < 2; ++round) {
    ending found;
    // It may not be dead yet when a call begins.
    EXPECT_TRUE(test::eventually([&] {
      try {
        f.with({.timeout = 20ms})();
        ++calls;
        return false;
      } catch (const rank_error& failure) {
        found = {.text = failure.what(), .code = failure.code(), .rank = failure.rank()};
        return found.text.find("still being started") != std::string::npos;
      }
    }));
    EXPECT_EQ(found.code, errc::timed_out);
    EXPECT_EQ(found.rank, 1U);
    EXPECT_THAT(found.text, HasSubstr("'patient'"));
    EXPECT_EQ(w.replaced_ranks(), 1U);
    EXPECT_THAT(w.gather(v).to_vector<float>(), testing::Each(calls));
  }
  directory.write("gate", "");
  f();
  EXPECT_THAT(w.gather(v).to_vector<float>(), testing::Each(calls + 1));
  EXPECT_EQ(w.replaced_ranks(), 1U);
}

tensor late_by(const rank_context& context, const tensor& x, int late, std::chrono::milliseconds time,
               const tensor& weights) {
  if (static_cast<int>(context.rank) == late) std::this_thread::sleep_for(time);
  return tensor::full<float>(weights.shape(), test::total(x));
}

/// The error of a call in which the rank is late. Where there is load, the caller may be late too, or another rank;
/// then all get more time.
template <class Function>
ending end_of_late_call(const Function& f, scene& s, int late) {
  ending found;
  for (auto timeout = 20ms; timeout < 5s; timeout *= 2) {
    try {
      f.with({.timeout = timeout})(s.x, late, 3 * timeout);
      s.w.broadcast(s.weights, tensor::full<float>({500}, 1.0F));
      continue;
    } catch (const rank_error& failure) {
      found = {.text = failure.what(), .code = failure.code(), .rank = failure.rank()};
    } catch (const error& failure) {
      found = {.text = failure.what(), .code = failure.code(), .rank = {}};
    }
    const bool is_another = found.rank && *found.rank != static_cast<std::size_t>(late);
    if (!is_another) break;
  }
  return found;
}

TEST(WorldFaults, ARankThatIsTooLateAndComesBackInTheGraceIsNamed) {
  for (const auto who : {test::caller::first, test::caller::last, test::caller::none}) {
    for (const bool together : {true, false}) {
      SCOPED_TRACE(testing::Message() << "caller " << static_cast<int>(who) << ", together " << together);
      auto options = test::options_for(3, who);
      options.grace = in_time;
      scene s(options);
      auto f = s.w.function(late_by, rows("x"), whole("late", "time"), replicas(s.weights),
                            updates(together ? reduced_into(s.weights, sum, sgd{.rate = 1}) : increment(s.weights)),
                            named("slow"));
      const auto found = end_of_late_call(f, s, 1);
      EXPECT_EQ(found.code, errc::timed_out);
      EXPECT_EQ(found.rank, 1U) << found.text;
      EXPECT_THAT(found.text, AllOf(HasSubstr("rank 1"), HasSubstr("'slow'")));
      EXPECT_EQ(s.w.replaced_ranks(), 0U);
      s.expect_weights(1);
      s.expect_good_call();
    }
  }
}

tensor after_the_other(const rank_context& context, const tensor& x, mishap what, int stuck, const tensor& seen,
                       const tensor& weights) {
  if (static_cast<int>(context.rank) == stuck) test::visits::add(seen);
  suffer(context, stuck, mishap::stops);
  if (context.rank == 0) {
    test::visits::await(seen);
    suffer(context, 0, what);
  }
  return tensor::full<float>(weights.shape(), test::total(x));
}

TEST(WorldFaults, ARankThatDoesNotComeBackAfterAnothersFailureIsKilledAfterTheGrace) {
  in_scenes(short_grace, [](scene& s, test::caller who) {
    const int stuck = who == test::caller::last ? 1 : 2;
    for (const bool together : {true, false}) {
      auto f = s.w.function(after_the_other, rows("x"), whole("what", "stuck", "seen"), replicas(s.weights),
                            updates(together ? reduced_into(s.weights, sum, sgd{.rate = 1}) : increment(s.weights)),
                            named("joint"));
      for (const auto failure : {mishap::throws, mishap::dies}) {
        if (failure == mishap::dies && who == test::caller::first) continue;  // that is this process
        const test::visits seen;
        const auto found = end_of([&] { f(s.x, failure, stuck, seen.shared()); });
        EXPECT_EQ(found.rank, 0U) << found.text;
        EXPECT_EQ(found.code, failure == mishap::throws ? errc::remote_exception : errc::worker_died);
        EXPECT_GE(found.time, short_grace);
        EXPECT_LT(found.time, in_time);
        s.expect_weights(1);
        s.expect_good_call();
      }
    }
  });
}

TEST(WorldFaults, WhatTheCallersOwnShareThrowsIsNested) {
  scene s({.ranks = 3, .master_rank = 1});
  try {
    s.together(s.x, 1, mishap::throws, -1, mishap::none);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const rank_error& failure) {
    EXPECT_EQ(failure.rank(), 1U);
    EXPECT_THROW(std::rethrow_if_nested(failure), std::range_error);
  }
  s.expect_weights(1);
  s.expect_good_call();
}

TEST(WorldFaults, AWorldWhoseRanksAreStoppedCanBeDestroyed) {
  const auto begin = [] {
    auto w = std::make_unique<world>(world_options{.ranks = 3});
    w->function([] {})();
    for (const auto pid : w->pids()) {
      if (pid != 0) ::kill(pid, SIGSTOP);
    }
    const auto from = clock::now();
    w.reset();
    return clock::now() - from;
  };
  EXPECT_LT(begin(), in_time);
}

TEST(WorldFaults, AWorldIsDestroyedInTimeAfterTheCallersShareThrew) {
  auto s = std::make_unique<scene>(world_options{.ranks = 2});
  EXPECT_THROW(s->together(s->x, 0, mishap::throws, -1, mishap::none), rank_error);
  const auto from = clock::now();
  s.reset();
  EXPECT_LT(clock::now() - from, in_time);
}

TEST(WorldFaults, LinesOfRanksComeWithTheirNumbersAndTheFunctionsName) {
  std::mutex guard;
  std::vector<std::pair<std::size_t, std::string>> lines;
  {
    world w({.ranks = 3, .master_rank = 1, .output = [&](const worker_output& line) {
               const std::scoped_lock lock(guard);
               lines.emplace_back(line.worker, line.function + ": " + line.text);
             }});
    auto f = w.function(
        [](const rank_context& context, int speaker) {
          if (static_cast<int>(context.rank) == speaker) std::printf("rank %zu of %zu\n", context.rank, context.ranks);
        },
        whole("speaker"), named("speech"));
    f(0);
    f(2);
  }
  EXPECT_THAT(
      lines, testing::UnorderedElementsAre(std::pair(0U, "speech: rank 0 of 3"), std::pair(2U, "speech: rank 2 of 3")));
}

TEST(WorldFaults, ClosesWhileItsOutputSinkUsesIt) {
  std::optional<world> w;
  std::optional<variable> v;
  std::atomic<bool> is_used = false;
  std::atomic<bool> is_refused = false;
  // Until the world has been closed; the pool waits for it then.
  const auto use = [&](const worker_output& /*line*/) {
    while (!is_refused) {
      EXPECT_EQ(w->pids().size(), 2U);
      try {
        static_cast<void>(w->get_value(1, *v));
      } catch (const error& failure) {
        EXPECT_EQ(failure.code(), errc::pool_closed) << failure.what();
        w->close();
        is_refused = true;
      }
      is_used = true;
      test::work_for(1ms);
    }
  };
  w.emplace(world_options{.ranks = 2, .output = use});
  v = w->replicate("v", tensor::ones<float>({3}));
  w->function([](const rank_context& context) {
    if (context.rank == 1) std::printf("a line\n");
  })();
  EXPECT_TRUE(test::eventually([&] { return is_used.load(); }));
  w->close();
  EXPECT_TRUE(is_refused);
}

TEST(WorldFaults, WhoClosesAWorldThatAnotherClosesWaitsForItsEnd) {
  world w({.ranks = 3});
  auto f = w.function([] {});
  f();
  std::vector<unique_fd> processes;
  for (const auto pid : w.pids()) {
    if (pid != 0) processes.push_back(open_pidfd(pid));
  }
  const auto close = [&] {
    w.close();
    for (const auto& each : processes) {
      pollfd end{.fd = each.get(), .events = POLLIN, .revents = 0};
      EXPECT_EQ(::poll(&end, 1, 0), 1);
    }
  };
  std::thread first(close);
  std::thread second(close);
  first.join();
  second.join();
}

TEST(WorldFaults, ADeathIsToldWhileTheOutputSinkWaitsForTheWorld) {
  std::optional<world> w;
  std::optional<variable> v;
  const test::visits lines;
  const auto use = [&](const worker_output& /*line*/) {
    test::visits::add(lines.shared());
    static_cast<void>(w->get_value(0, *v));  // after the call
  };
  w.emplace(world_options{.ranks = 2, .output = use});
  v = w->replicate("v", tensor::ones<float>({3}));
  auto f = w->function(
      [](const rank_context& context, const tensor& seen) {
        if (context.rank != 1) return;
        std::printf("a line\n");
        test::visits::await(seen);
        std::raise(SIGKILL);
      },
      whole("seen"));
  const auto found = end_of([&] { f(lines.shared()); });
  EXPECT_EQ(found.code, errc::worker_died);
  EXPECT_THAT(found.text, AllOf(HasSubstr("rank 1"), HasSubstr("SIGKILL")));
  w->close();  // the sink may still be at it
}

TEST(WorldFaults, ADeathsErrorHasTheLastLinesOfTheRank) {
  world w({.ranks = 2, .output = output_choice::discard()});
  auto f = w.function(
      [](const rank_context& context) {
        if (context.rank != 1) return;
        std::fprintf(stderr, "the last words\n");
        std::raise(SIGKILL);
      },
      named("farewell"));
  try {
    f();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const rank_error& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("the last words"), HasSubstr("rank 1"), HasSubstr("'farewell'")));
  }
}

TEST(WorldFaults, OutputsOfDifferentShapesAreAnErrorThatNamesThem) {
  in_scenes([](scene& s, test::caller /*who*/) {
    auto f = s.w.function(
        [](const rank_context& context, const tensor& part) {
          return std::tuple(test::total(part), tensor::ones<float>({context.rank == 2 ? 5U : 4U}),
                            tensor::ones<float>({1, context.rank == 1 ? 3U : 2U}));
        },
        rows("x"), outputs(sum("fine"), sum("odd"), gather("rows")), named("shapely"));
    EXPECT_THAT(
        test::refusal([&] { f.only<0, 1>()(s.x); }),
        AllOf(HasSubstr("'odd'"), HasSubstr("'shapely'"), HasSubstr("rank 2"), HasSubstr("(5,)"), HasSubstr("(4,)")));
    EXPECT_THAT(test::refusal([&] { f.only<2>()(s.x); }),
                AllOf(HasSubstr("'rows'"), HasSubstr("rank 1"), HasSubstr("(1, 3)"), HasSubstr("(1, 2)")));
    EXPECT_EQ(f.only<0>()(s.x), 8.0F);
    EXPECT_EQ(s.w.replaced_ranks(), 0U);
    s.expect_good_call();
  });
}

TEST(WorldFaults, SlicesOfDifferentShapesAreAnErrorOfTheRankThatGaveThem) {
  test::in_worlds({1, 2}, [](world& w) {
    auto f = w.function(
        [](const rank_context& context, const tensor& /*part*/) {
          return tensor::ones<float>({2, context.rank == 0 && context.slice == 1 ? 2U : 3U});
        },
        rows("x"), outputs(gather("rows")), named("shapely"));
    const auto x = tensor::ones<float>({8});
    const auto found = end_of([&] { f.with({.num_slices = 2})(x); });
    EXPECT_EQ(found.rank, 0U);
    EXPECT_THAT(found.text, AllOf(HasSubstr("rank 0"), HasSubstr("'shapely'"), HasSubstr("'rows'"), HasSubstr("(2, 2)"),
                                  HasSubstr("(2, 3)")));
    EXPECT_THAT(found.text, testing::Not(HasSubstr("before it")));
    EXPECT_EQ(f(x).shape(), (tensor_shape{2 * w.ranks(), 3}));
  });
}

TEST(WorldFaults, ATensorWithoutDimensionsHasNoRowsToGatherSaysTheRankThatGaveIt) {
  scene s({.ranks = 3});
  auto f = s.w.function(
      [](const rank_context& context) {
        return context.rank == 1 ? tensor::ones<float>({}) : tensor::ones<float>({1});
      },
      outputs(gather("loss")), named("scalar"));
  const auto found = end_of([&] { f(); });
  EXPECT_EQ(found.rank, 1U);
  EXPECT_THAT(found.text,
              AllOf(HasSubstr("'loss'"), HasSubstr("no dimensions"), HasSubstr("(1,)"), HasSubstr("none()")));
  s.expect_good_call();
}

TEST(WorldFaults, AFunctionThatUsesItsOwnWorldIsRefused) {
  static world* inside = nullptr;
  world w({.ranks = 1});
  inside = &w;
  auto f = w.function([] { static_cast<void>(inside->replicate("again", tensor::ones<float>({}))); });
  EXPECT_THAT(end_of([&] { f(); }).text, HasSubstr("inside of a call"));
  inside = nullptr;
}

TEST(WorldFaults, DeadRanksOfSeveralKillsAreAllReplaced) {
  scene s({.ranks = 4, .caller_computes = false});
  for (int round = 0; round < 3; ++round) {
    for (const auto pid : s.w.pids()) ::kill(pid, SIGKILL);
    try {
      s.apart(s.x, -1, mishap::none, -1, mishap::none);
    } catch (const rank_error&) {  // they were not dead yet when the call began
    }
    s.expect_good_call();
  }
  EXPECT_EQ(s.w.replaced_ranks(), 12U);
}

TEST(WorldFaults, AnInitializerThatThrowsEndsTheConstruction) {
  const auto found = end_of([] {
    world({.ranks = 2,
           .start_timeout = 10s,
           .initializer = [] { throw std::runtime_error("no licence"); },
           .log = [](log_level /*level*/, std::string_view /*text*/) {}});
  });
  EXPECT_THAT(found.text, HasSubstr("no licence"));
  EXPECT_LT(found.time, in_time);
}

TEST(WorldFaults, ARankThatExitsIsReplaced) {
  scene s({.ranks = 2});
  auto f = s.w.function(
      [](const rank_context& context, int victim) {
        if (static_cast<int>(context.rank) == victim) ::_exit(3);
      },
      whole("victim"), named("leaver"));
  const auto found = end_of([&] { f(1); });
  EXPECT_EQ(found.code, errc::worker_died);
  EXPECT_THAT(found.text, AllOf(HasSubstr("rank 1"), HasSubstr("'leaver'"), HasSubstr("3")));
  f(-1);
  s.expect_good_call();
}

TEST(WorldFaults, CallsInTheBackgroundGoOnAfterADeath) {
  scene s({.ranks = 2});
  std::vector<future<void>> all;
  for (int call = 0; call < 6; ++call) {
    all.push_back(s.apart.async(s.x, 1, call == 2 ? mishap::dies : mishap::none, -1, mishap::none));
  }
  for (int call = 0; call < 6; ++call) {
    if (call == 2) {
      EXPECT_EQ(end_of([&] { all[2].get(); }).code, errc::worker_died);
    } else {
      all[static_cast<std::size_t>(call)].get();
    }
  }
  s.expect_weights(21);  // five times four rows
}

// ---- the program is killed

/// What the ranks are in the middle of. In an exchange they wait for one that never comes to it.
enum class scene_of_death { idle, user_code, exchange };
constexpr int everybody = -2;

tensor never_together(const rank_context& context, const tensor& x, int stuck, const tensor& seen,
                      const tensor& weights) {
  test::visits::add(seen);
  std::atomic<bool> for_ever = stuck == everybody || stuck == static_cast<int>(context.rank);
  while (for_ever) continue;
  return tensor::full<float>(weights.shape(), test::total(x));
}

struct cast {
  std::array<std::atomic<pid_t>, 3> ranks;
  std::atomic<bool> is_ready;
};

/// Whether all have begun, and those who are not stuck in their own code are asleep until the others come.
bool all_are_there(const cast& of, int stuck, const test::visits& seen) {
  if (seen.count() != 3) return false;
  for (int rank = 0; stuck != everybody && rank < 3; ++rank) {
    const pid_t pid = of.ranks[static_cast<std::size_t>(rank)];
    if (rank != stuck && !test::sleeps_on_futex(pid == 0 ? ::getpid() : pid)) return false;
  }
  return true;
}

[[noreturn]] void play(cast& of, test::caller who, scene_of_death what, int stuck) {
  init(0, nullptr);  // a forked child is another process
  scene s(test::options_for(3, who));
  s.together(s.x, -1, mishap::none, -1, mishap::none);
  for (std::size_t rank = 0; rank < 3; ++rank) of.ranks[rank] = s.w.pids()[rank];
  const test::visits seen;
  std::thread watches([&] {
    of.is_ready = what == scene_of_death::idle || test::eventually([&] { return all_are_there(of, stuck, seen); });
  });
  auto f = s.w.function(never_together, rows("x"), whole("stuck", "seen"), replicas(s.weights),
                        updates(reduced_into(s.weights, sum, sgd{.rate = 1})));
  if (what != scene_of_death::idle) f(s.x, stuck, seen.shared());
  for (;;) ::pause();
}

void kill_program(test::caller who, scene_of_death what, int stuck = everybody) {
  SCOPED_TRACE(testing::Message() << "caller " << static_cast<int>(who) << ", stuck " << stuck);
  const auto before = test::take_footprint();
  const test::shared<cast> shared;
  const auto programs = test::spawn(1, [&](std::size_t /*rank*/) -> int { play(*shared, who, what, stuck); });
  EXPECT_TRUE(test::eventually([&] { return shared->is_ready.load(); }));
  programs->kill(0);
  EXPECT_EQ(programs->wait(0), exit_status::killed(SIGKILL));
  for (const auto& each : shared->ranks) {
    const pid_t pid = each;
    EXPECT_EQ(pid == 0, who != test::caller::none && &each == &shared->ranks[who == test::caller::last ? 2 : 0]);
    // Orphans come to this process.
    EXPECT_TRUE(pid == 0 || test::eventually([&] { return ::waitpid(pid, nullptr, WNOHANG) == pid; }));
  }
  const auto after = test::take_footprint();
  EXPECT_EQ(after.shared_memory, before.shared_memory);
  EXPECT_EQ(after.children, before.children);
}

TEST(WorldFaults, RanksLeaveWhenTheProgramIsKilled) {
  kill_program(test::caller::first, scene_of_death::idle);
  kill_program(test::caller::none, scene_of_death::idle);
}

TEST(WorldFaults, RanksInUserCodeAreGoneWhenTheProgramIsKilled) {
  for (const auto who : {test::caller::first, test::caller::last, test::caller::none}) {
    kill_program(who, scene_of_death::user_code);
  }
}

TEST(WorldFaults, RanksThatWaitInAnExchangeAreGoneWhenTheProgramIsKilled) {
  kill_program(test::caller::first, scene_of_death::exchange, 0);  // for the program itself
  kill_program(test::caller::first, scene_of_death::exchange, 2);  // with the program
  kill_program(test::caller::last, scene_of_death::exchange, 2);
  kill_program(test::caller::last, scene_of_death::exchange, 0);
  kill_program(test::caller::none, scene_of_death::exchange, 1);
}

// As a terminal sends it: to all processes of the group, in the middle of a call.
TEST(WorldFaults, AnInterruptFromTheTerminalEndsTheProgramAndItsRanks) {
  const test::shared<std::atomic<int>> ready;
  auto programs = test::spawn(1, [&](std::size_t /*rank*/) {
    ::setpgid(0, 0);
    init(0, nullptr);
    scene s({.ranks = 3});
    s.together(s.x, -1, mishap::none, -1, mishap::none);
    const auto under_way = s.together.async(s.x, 1, mishap::lingers, 2, mishap::lingers);
    ++*ready;
    for (;;) ::pause();
    return 0;
  });
  EXPECT_TRUE(test::eventually([&] { return *ready == 1; }));
  ::kill(-programs->pid(0), SIGINT);
  EXPECT_EQ(programs->wait(0), exit_status::killed(SIGINT));
}

// A task that calls a world of its own, and passes on what that throws.
TEST(WorldFaults, ARankErrorOfATaskArrivesAsItself) {
  const pool pool({.workers = 1});
  const auto fail = [] {
    throw rank_error({errc::timed_out, "too late"}, "rank 1 was too late", 1, "train",
                     {{.rank = 2, .info = {errc::worker_died, "killed"}}});
  };
  try {
    pool.apply(fail);
    FAIL();
  } catch (const rank_error& caught) {
    EXPECT_EQ(caught.code(), errc::timed_out);
    EXPECT_STREQ(caught.what(), "rank 1 was too late");
    EXPECT_EQ(caught.info().message(), "too late");
    EXPECT_EQ(caught.rank(), 1U);
    EXPECT_EQ(caught.function(), "train");
    ASSERT_EQ(caught.others().size(), 1U);
    EXPECT_EQ(caught.others().front().rank, 2U);
    EXPECT_EQ(caught.others().front().info.message(), "killed");
  }
}

}  // namespace
}  // namespace muster::world_fault_test
