// SPDX-License-Identifier: BSL-1.0
// One worker is killed after every few instructions of what it does with a task. What is checked: step_harness.hpp.
#include <algorithm>
#include <cstring>
#include <optional>

#include <muster/pool/detail/batch_run.hpp>
#include <muster/queue/reply_seal.hpp>

#include "step_harness.hpp"

namespace muster::step_kill_test {
namespace {

using test::enter_stage;
using test::phase;
using test::value_of;
using test::watched_task;
using reader = watched_task::reader;

// So many bytes, which are encoded by copying them.
template <std::size_t Bytes>
struct bulk {
  std::array<char, Bytes> text;
};

template <std::size_t Bytes>
bulk<Bytes> grown(int task) {
  enter_stage(task);
  bulk<Bytes> made;
  made.text.fill('z');
  return made;
}

int length(int task, std::string text) {
  enter_stage(task);
  return static_cast<int>(text.size());
}

// Keeps a block of this worker's in its cache.
void keep_block(task_call& call) {
  const auto [task] = codec<int>::decode(call.arguments());
  const auto kept = call.cache().find_or_make<block>(block_ref{.descriptor = 1, .generation = 1, .size_bytes = 0},
                                                     [&] { return call.memory().allocate(3000); });
  enter_stage(task);
  codec<int>::encode(call.make_reply(codec<int>::size(task)), static_cast<int>(kept->size()));
}

class StepKill : public test::step_test {
protected:
  explicit StepKill(std::size_t workers = 2, std::size_t room = 0) : step_test(workers, {}, room) {}

  using poster = std::function<watched_task&(bool lands)>;

  // From inside the task before it to its user code.
  void sweep_claim(const std::string& name, const poster& post_it, unsigned stride = 2) {
    sweep({.name = name + ", claim",
           .begin =
               [&] {
                 land(victim);
                 post_it(false);
               },
           .until = phase::running,
           .beyond = 60,
           .stride = stride});
  }

  // From its user code until the worker is through with it.
  void sweep_completion(const std::string& name, const poster& post_it, unsigned sparse = 24, unsigned stride = 2) {
    sweep({.name = name + ", completion",
           .begin =
               [&] {
                 trace(victim);
                 look_at(post_it(true));
                 await_landing(victim);
               },
           .until = phase::after,
           .beyond = 60,
           .stride = stride,
           .sparse = sparse,
           .near = 16});
  }

  template <std::size_t Bytes>
  watched_task& post_grown(const watched_task::how& what) {
    return post(what, world().request<grown<Bytes>>(what.number), [](task_reply& reply, std::uint64_t) {
      return std::ranges::all_of(value_of<bulk<Bytes>>(reply).text, [](char each) { return each == 'z'; });
    });
  }

  watched_task& post_with_sink(bool lands) {
    auto& subject = post_plain({.lane = lane_of(victim), .by = reader::sink, .lands = lands});
    look_at(subject);
    post_plain({.number = 2, .lane = lane_of(victim), .by = reader::nobody});
    return subject;
  }

  template <std::size_t Bytes>
  watched_task& post_two_grown(bool lands) {
    post_grown<400>({.number = 2, .lane = lane_of(victim), .retries = 1});
    return post_grown<Bytes>({.lane = lane_of(victim), .by = reader::sink, .lands = lands});
  }
};

TEST_F(StepKill, AWaiterAsleepGetsItsValue) {
  const auto post_it = [&](bool lands) -> watched_task& {
    return post_plain({.lane = lane_of(victim), .retries = 1, .by = reader::sleeps, .lands = lands});
  };
  sweep_claim("waiter", post_it);
  sweep_completion("waiter", post_it);
  report("waiter", 200, {phase::queued, phase::claimed, phase::running, phase::done, phase::after});
}

TEST_F(StepKill, ASinkIsToldOnce) {
  const auto post_it = [&](bool lands) -> watched_task& { return post_with_sink(lands); };
  sweep_claim("sink", post_it);
  sweep_completion("sink", post_it);
  report("sink", 200,
         {phase::queued, phase::claimed, phase::running, phase::done, phase::entered, phase::bell_taken, phase::after});
}

// Where there is room for more than 64 workers, one that has entered something into its ring says so.
class StepKillOfALargeBoard : public StepKill {
protected:
  StepKillOfALargeBoard() : StepKill(2, 65) {}
};

TEST_F(StepKillOfALargeBoard, ASinkIsToldOnce) {
  const auto post_it = [&](bool lands) -> watched_task& { return post_with_sink(lands); };
  sweep_completion("sink on a large board", post_it);
  report("sink on a large board", 100, {phase::running, phase::done, phase::entered, phase::bell_taken, phase::after});
}

// The worker's very first block is not the one that is stepped: before it, it looks how much memory the machine has.
TEST_F(StepKill, AReplyInABlockIsAdoptedOrFreed) {
  sweep_completion("reply in a block", [&](bool lands) -> watched_task& { return post_two_grown<400>(lands); }, 80, 4);
  sweep_completion(
      "reply in the first block of a size", [&](bool lands) -> watched_task& { return post_two_grown<1000>(lands); },
      160, 6);
  report("reply in a block", 100, {phase::running, phase::done, phase::entered, phase::bell_taken, phase::after});
}

TEST_F(StepKill, ArgumentsInABlockAreStillThereForTheNext) {
  const auto post_it = [&](bool lands) -> watched_task& {
    return post({.lane = lane_of(victim), .retries = 1, .lands = lands},
                world().request<length>(1, std::string(2000, 'y')),
                [](task_reply& reply, std::uint64_t) { return value_of<int>(reply) == 2000; });
  };
  sweep_claim("arguments in a block", post_it, 4);
  sweep_completion("arguments in a block", post_it);
  report("arguments in a block", 100, {phase::queued, phase::claimed, phase::running, phase::done, phase::after}, 1);
}

TEST_F(StepKill, AStaleHintBeforeATaskHoldsNobodyUp) {
  sweep_claim(
      "behind a cancelled task",
      [&](bool) -> watched_task& {
        auto& cancelled = post_plain({.number = 2, .lane = lane_of(victim)});
        EXPECT_TRUE(cancelled.cancel());
        return post_plain({.lane = lane_of(victim), .retries = 1});
      },
      3);
  report("behind a cancelled task", 100, {phase::queued, phase::claimed, phase::running});
}

TEST_F(StepKill, ACancelledTaskEndsOnceWhereverItWas) {
  sweep({.name = "cancelled at the point",
         .begin =
             [&] {
               land(victim);
               post_plain({.lane = lane_of(victim), .retries = 1});
             },
         .until = phase::after,
         .beyond = 10,
         .stride = 4,
         .at_point = [&] { watched().back().cancel(); }});
  report("cancelled at the point", 60, {phase::queued, phase::claimed, phase::running, phase::done});
}

TEST_F(StepKill, AWorkerThatFallsAsleepIsNotMissed) {
  unsigned point = 0;
  sweep({.name = "falls asleep",
         .begin = [&] { land(victim); },
         .stride = 4,
         .behind = 40,
         .at_point =
             [&] {
               constexpr std::array<unsigned, 4> further = {0, 1, 60, 350};
               post_plain({.lane = lane_of(victim), .retries = 1});
               const auto instructions = further[point++ % further.size()];
               if (is_asleep(victim) && instructions > 0) await_wake(victim);
               step(victim, instructions);
             }});
  report("falls asleep", 50, {phase::after, phase::lying_down, phase::asleep});
}

TEST_F(StepKill, AWorkerThatIsWokenIsReplaced) {
  sweep({.name = "woken",
         .begin =
             [&] {
               freeze(victim);
               resume_sleep(victim);
               post_plain({.lane = lane_of(victim), .retries = 1});
               await_wake(victim);
             },
         .until = phase::running,
         .stride = 4});
  report("woken", 60, {phase::queued, phase::claimed, phase::running});
}

TEST_F(StepKill, BlocksInItsCacheAreFreed) {
  sweep({.name = "cache",
         .begin =
             [&] {
               trace(victim);
               task_request request;
               request.function = world().functions().encode(&keep_block);
               request.frame = outgoing_frame::of(world().memory(), 1);
               post({.lane = lane_of(victim), .retries = 1, .lands = true}, std::move(request),
                    [](task_reply& reply, std::uint64_t) { return value_of<int>(reply) == 3000; });
               await_landing(victim);
             },
         .until = phase::lying_down,
         .beyond = 60,
         .stride = 3,
         .sparse = 50,
         .behind = 60,
         .near = 120});
  report("cache", 80, {phase::after, phase::lying_down});
}

TEST_F(StepKill, AWorkerThatLeavesLeavesItsTasks) {
  for (const auto order : {worker_order::leave, worker_order::leave_when_idle, worker_order::retire}) {
    sweep({.name = "leaving",
           .begin =
               [&] {
                 land(victim);
                 post_plain({.lane = lane_of(victim), .retries = 1});
                 shared_board().line(victim).order = static_cast<std::uint32_t>(order);
               },
           .until = phase::leaving,
           .beyond = 120,
           .stride = order == worker_order::leave ? 4U : 32U,
           .behind = 8});
  }
  report("leaving", 100, {phase::queued, phase::leaving});
}

// ---- chunks

// Results that make their block grow at element 4; so short that no copy is one instruction of many steps.
constexpr std::size_t result_bytes(int element) { return element == 4 ? 2004 : 1012; }

struct grow_element {
  std::string operator()(int element) const {
    enter_stage(element);
    return std::string(result_bytes(element), static_cast<char>('a' + element));
  }
};

// Elements 2 to 5 of a batch, in one chunk.
class StepKillChunk : public StepKill {
protected:
  using code = detail::chunk_code<false, grow_element, int>;
  static constexpr std::uint64_t first = 2;
  static constexpr std::uint64_t count = 4;

  watched_task& post_chunk(std::uint64_t lands_at) {
    constexpr std::array elements = {0, 1, 2, 3, 4, 5};
    job_.emplace(world().memory(), 0, world().functions().encode(&code::run), false, false);
    batch_ = detail::make_batch<int, std::string>(world().memory(), elements.begin(), elements.size()).memory;
    task_request request;
    request.function = job_->code();
    request.frame = outgoing_frame::of(
        world().memory(),
        detail::chunk_arguments{
            .job = job_->ref().handle(), .batch = batch_.ref().handle(), .first = first, .count = count});
    return post({.number = static_cast<int>(lands_at),
                 .lane = lane_of(victim),
                 .by = reader::sink,
                 .lands = true,
                 .chunk = true},
                std::move(request), [this](task_reply& reply, std::uint64_t element) {
                  const bool right = is_right(reply, element);
                  batch_.reset();
                  job_.reset();
                  return right;
                });
  }

  bool is_right(task_reply& reply, std::uint64_t element) {
    detail::chunk_reply line;
    std::memcpy(&line, reply.bytes().data(), sizeof line);
    const auto finished = reply.succeeded() ? line.finished : element - first;
    if (reply.succeeded() && finished != count) return false;
    adopted_ += !reply.succeeded() && finished > 0 ? 1U : 0U;
    const auto results = reply.take_attached(detail::results_attachment);
    return finished <= count && (finished == 0 || has_results(results.bytes(), finished));
  }

  static bool has_results(std::span<const std::byte> encoded, std::uint64_t finished) {
    for (std::uint64_t each = first; each < first + finished; ++each) {
      const auto bytes = codec<std::string>::size(grown_text(each));
      const auto frame = encoded.subspan(detail::result_prefix_bytes, bytes);
      if (std::get<0>(codec<std::string>::decode(frame)) != grown_text(each)) return false;
      encoded = encoded.subspan(detail::result_prefix_bytes + detail::round_up(bytes, frame_alignment));
    }
    return true;
  }

  static std::string grown_text(std::uint64_t element) {
    return std::string(result_bytes(static_cast<int>(element)), static_cast<char>('a' + element));
  }

  std::optional<detail::map_job> job_;
  block batch_;
  unsigned adopted_ = 0;
};

TEST_F(StepKillChunk, FinishedElementsSurvive) {
  const auto begin_at = [&](std::uint64_t element) {
    return [this, element] {
      trace(victim);
      post_chunk(element);
      await_landing(victim);
    };
  };
  sweep({.name = "chunk that grows",
         .begin = begin_at(first + 2),
         .over = [&] { return shared_board().line(victim).element == seal_number(first + 3); },
         .stride = 4,
         .sparse = 250,
         .near = 16});
  sweep({.name = "last element of a chunk",
         .begin = begin_at(first + 3),
         .until = phase::after,
         .beyond = 20,
         .stride = 6,
         .sparse = 80,
         .near = 16});
  EXPECT_GT(adopted_, 20U);
  report("chunk", 60, {phase::running, phase::done, phase::entered, phase::after}, 1);
}

// ---- more than one worker that may take a task

TEST_F(StepKill, AnotherTakesWhatTheVictimHasNot) {
  unsigned point = 0;
  sweep({.name = "shared lane",
         .begin =
             [&] {
               land(victim);
               freeze(1);  // it is woken for one of these, and stays where it is
               look_at(post_plain({.lane = 1, .retries = 1, .by = reader::sleeps}));
               post_plain({.number = 2, .lane = 1, .retries = 1});
             },
         .until = phase::after,
         .stride = 4,
         .at_point =
             [&] {
               traced(1).release();
               EXPECT_TRUE(test::eventually(
                   [&] { return std::ranges::none_of(watched(), [](const auto& each) { return each.is_queued(); }); }));
               step(victim, point++ % 3 * 40);  // what it saw is out of date now
             }});
  report("shared lane", 100, {phase::queued, phase::claimed, phase::running, phase::done});
}

class StepKillOfThree : public StepKill {
protected:
  StepKillOfThree() : StepKill(3) {}
};

// The victim is woken and finds more than one task; the worker that was woken for the other one does not move. So the
// victim wakes the third, or owes it when it dies: then recovery must.
TEST_F(StepKillOfThree, AWakeThatAVictimOwesComesFromRecovery) {
  sweep({.name = "chain of wakes",
         .begin =
             [&] {
               freeze(victim);
               resume_sleep(victim);
               freeze(1);
               look_at(post_plain({.lane = 1, .retries = 1, .by = reader::sink}));
               await_wake(victim);
               post_plain({.number = 2, .lane = 1, .by = reader::sink});
             },
         .until = phase::running,
         .stride = 5,
         .end =
             [&] {
               kill(victim);
               recover(victim);
               for (const auto& each : watched()) {
                 EXPECT_TRUE(test::eventually([&] { return each.has_ended(); })) << "nobody woke the third worker";
               }
               traced(1).release();
               restart(victim);
               verify_all();
             }});
  report("chain of wakes", 80, {phase::queued, phase::claimed, phase::running});
}

class StepKillSpinning : public test::step_test {
protected:
  StepKillSpinning() : step_test(2, std::chrono::hours(24)) {}

  // One spins, the other sleeps. A worker does not spin beside its caller on one processor: here the board does not say
  // where that runs, and one that has gone to sleep for it is woken.
  std::size_t spinner() {
    auto& board = shared_board();
    const auto is_parked = [&](std::size_t worker) { return board.line(worker).parked != 0; };
    EXPECT_TRUE(test::eventually([&] {
      board.caller_place() = 0;
      if (is_parked(0) && is_parked(1)) board.wake_any();
      return is_parked(0) != is_parked(1);
    }));
    return is_parked(0) ? 1 : 0;
  }
};

// Its bit says that nobody need be woken; whoever waits for a task wakes the other all the same.
TEST_F(StepKillSpinning, ASpinningWorkerThatDiesHoldsNobodyUp) {
  for (unsigned point = 0; point < 60 && !HasFailure(); ++point) {
    SCOPED_TRACE("point " + std::to_string(point));
    begin_attempt();
    const auto dying = spinner();
    freeze(dying);
    post_plain({.lane = lane_of(dying), .retries = 1});
    auto& shared = post_plain({.number = 2, .lane = 1, .retries = 1, .by = reader::sink});
    step(dying, 18 * point);
    count_point(phase_held_by(dying));
    kill(dying);
    if (shared.is_queued()) {
      auto& waited = post_plain({.number = 3, .lane = 1, .by = reader::waits});
      EXPECT_TRUE(test::eventually([&] { return waited.has_ended(); }));
    }
    recover(dying);
    restart(dying);
    verify_all();
  }
  report("spinning", 60, {phase::queued, phase::claimed, phase::running});
}

}  // namespace
}  // namespace muster::step_kill_test
