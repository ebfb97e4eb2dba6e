// SPDX-License-Identifier: BSL-1.0
#pragma once

// Kills a worker after exactly k instructions, for many k, and checks everything.
//
// It works as follows. A task of the victim's *lands*: it stops in its user code. From there on the victim's way is
// the same every time, as nobody spins. So a *survey*, one run in single steps, tells in which `phase` the victim is
// after each instruction, and the points are chosen from it: every few instructions of the protocol, fewer in user code
// and encoding, and both sides of every change of phase. Then the scenario is repeated, with a new victim for each
// point.
//
// A further scenario is a further `step_test::scenario`: how it begins, and what it must hit.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "queue_support.hpp"
#include "tracee.hpp"

namespace muster::test {

/// What tasks and tests say to each other, in memory that workers share. Tasks are told apart by small numbers.
struct stage {
  std::array<std::atomic<unsigned>, 16> runs{};  ///< how often a task has begun its user code
  std::array<std::atomic<bool>, 16> lands{};     ///< it stops there, once
};

/// Every task's user code calls it first: counts, and lands.
void enter_stage(int task);

/// A task's user code: counts, lands, and returns value + 1.
int plain(int task, int value);

/// Where a victim is, as far as the last task of the scenario is concerned.
enum class phase {
  queued,      ///< nobody has claimed the task
  claimed,     ///< the victim has, and does not say yet that it runs
  running,     ///< from there on to the end of encoding
  done,        ///< so says the slot; perhaps a waiter must be woken
  entered,     ///< it is in the ring too
  bell_taken,  ///< and the bell is disarmed, perhaps not rung
  after,       ///< the victim is through with it
  lying_down,  ///< the victim says that it sleeps, and looks once more
  asleep,
  leaving
};

/// One task, and what must become of it.
class watched_task final : public completion_sink {
public:
  enum class reader { takes_later, sleeps, sink, nobody };
  struct how {
    int number = 1;  ///< on the stage
    std::size_t lane = board::shared_lanes;
    unsigned retries = 0;
    reader by = reader::takes_later;
    bool lands = false;
    bool chunk = false;  ///< then `check` sees the reply of a death too
  };
  using check = std::function<bool(task_reply&, std::uint64_t element)>;

  /// Posts it. A reader who sleeps does so when this returns. Requires: nobody completes it until then.
  watched_task(process_world& world, task_request request, const how& what, check is_right);
  watched_task(const watched_task&) = delete;
  watched_task& operator=(const watched_task&) = delete;
  ~watched_task();

  [[nodiscard]] const task_record::location& where() const noexcept { return where_; }
  /// Withdraws it, or asks it to stop; true as dispatcher::cancel says.
  bool cancel();
  /// Notes what the death of `victim`, who stands still, will do to it. `deaths` counts by consequence.
  void foresee_death(std::size_t victim, dispatcher::statistics& deaths);
  /// Waits for its end and compares.
  void verify();
  /// Told once, and run as often as deaths allow.
  void verify_counts() const;

private:
  void settled(task_record& record) noexcept override;
  void judge();

  process_world& world_;
  const how how_;
  const check is_right_;
  task_record* record_ = nullptr;
  task_record::location where_;
  std::optional<errc> error_;  // with which it must end
  unsigned deaths_ = 0;        // in its user code
  task_reply reply_;
  std::uint64_t element_ = 0;
  std::atomic<int> told_ = 0;
  std::thread waiter_;
};

/// Workers of which some are stepped and killed, while the last goes on.
class step_test : public testing::Test {
protected:
  static constexpr std::size_t victim = 0;
  static constexpr std::size_t slots = 8;

  struct scenario {
    std::string name;
    std::size_t least = 0;             ///< so many points at least
    std::vector<phase> hits;           ///< and in each of these some
    std::function<void()> begin;       ///< posts, and leaves the victim stopped at its origin
    std::function<void()> at_point{};  ///< while the victim stands still, before it is killed
    std::function<void()> verify{};    ///< besides the tasks
    unsigned stride = 2;               ///< in the protocol
    unsigned sparse = 24;              ///< while running
    unsigned behind = 8;               ///< once it is through with the task
    unsigned longest = 4000;           ///< instructions
  };

  explicit step_test(std::size_t workers, std::chrono::nanoseconds spin = {});
  ~step_test() override;

  /// Surveys, chooses points, kills at each, and reports.
  void sweep(const scenario& what);

  // Parts of a scenario.
  /// Forgets the last attempt. Requires: all workers are there and asleep.
  void begin_attempt();
  watched_task& post(const watched_task::how& what, task_request request, watched_task::check is_right);
  watched_task& post_plain(const watched_task::how& what);
  /// Traces the worker, has it run a task that lands, and leaves it there.
  void land(std::size_t worker, int number = 0);
  void trace(std::size_t worker);
  tracee& traced(std::size_t worker) { return *tracees_[worker]; }
  /// Lets the worker go on; false when it sleeps.
  bool step(std::size_t worker, unsigned instructions = 1);
  [[nodiscard]] phase phase_of(std::size_t worker);

  // What every attempt ends with.
  void count_point() { ++tally_[phase_of(victim)], ++points_; }
  void kill(std::size_t worker);
  void check_that_others_go_on();
  void recover(std::size_t worker);
  void restart(std::size_t worker);
  void verify_all();
  void report(const std::string& name, std::size_t least, const std::vector<phase>& hits);

  process_world& world() { return world_; }
  board& shared_board() { return world_.shared_board(); }
  dispatcher& tasks() { return world_.tasks(); }

private:
  std::vector<phase> survey(const scenario& what);
  static std::vector<unsigned> choose(const scenario& what, const std::vector<phase>& path);
  void attempt(const scenario& what, unsigned instructions);
  void end_attempt(const scenario& what);
  void verify_room();
  void verify_rest();

  shared<stage> stage_;
  process_world world_;
  std::vector<std::optional<tracee>> tracees_;
  std::vector<bool> asleep_;
  std::vector<exit_status> ends_;
  std::list<watched_task> watched_;
  std::uint64_t ring_before_ = 0;
  dispatcher::statistics before_;
  dispatcher::statistics foreseen_;
  std::map<phase, unsigned> tally_;
  std::size_t points_ = 0;
};

}  // namespace muster::test
