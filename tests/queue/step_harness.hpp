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
  enum class reader { takes_later, waits, sleeps, sink, nobody };
  struct how {
    int number = 1;  ///< on the stage
    std::size_t lane = board::shared_lanes;
    unsigned retries = 0;
    reader by = reader::takes_later;
    bool lands = false;
    bool chunk = false;  ///< then `check` sees the reply of a death too
  };
  using check = std::function<bool(task_reply&, std::uint64_t element)>;

  /// Posts it. `waits`: in a thread of his own. `sleeps`: the same, and he is asleep when this returns. Requires:
  /// nobody completes it until then.
  watched_task(process_world& world, task_request request, const how& what, check is_right);
  watched_task(const watched_task&) = delete;
  watched_task& operator=(const watched_task&) = delete;
  ~watched_task();

  /// Where it is, or was when it was posted, if nobody will read its reply.
  [[nodiscard]] task_record::location where() const noexcept;
  /// Whether the worker has claimed it.
  [[nodiscard]] bool is_held_by(std::size_t worker) const;
  [[nodiscard]] bool is_queued() const;
  [[nodiscard]] bool has_ended() const noexcept { return told_ != 0; }
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
  bool asked_ = false;         // to stop
  task_reply reply_;
  std::uint64_t element_ = 0;
  std::atomic<int> told_ = 0;
  std::thread waiter_;
};

/// Workers of which some are stepped and killed, while the last goes on.
class step_test : public testing::Test {
protected:
  static constexpr std::size_t victim = 0;
  static constexpr std::size_t slots = 16;  // so many that no worker uses up its share

  struct scenario {
    std::string name;
    std::function<void()> begin;  ///< posts, and leaves the victim stopped at its origin
    phase until = phase::asleep;  ///< the path ends so many instructions after this was reached
    unsigned beyond = 0;
    std::function<bool()> over{};      ///< … or when this is true
    unsigned stride = 2;               ///< in the protocol
    unsigned sparse = 24;              ///< while running
    unsigned behind = 8;               ///< once the victim is through with the task
    unsigned near = 0;                 ///< so many instructions before a change of phase count as protocol
    std::function<void()> at_point{};  ///< while the victim stands still, before it is killed
    std::function<void()> end{};       ///< instead of end_attempt()
  };

  explicit step_test(std::size_t workers, std::chrono::nanoseconds spin = {}, std::size_t room = 0);
  ~step_test() override;

  /// Surveys, chooses points, and kills at each.
  void sweep(const scenario& what);
  /// Prints how many points there were; fails if it were fewer than `least`, or none in one of these phases. Then ends
  /// all workers: of shared memory no more is held than `host_extents`, which the parent's own allocations opened.
  void report(const std::string& name, std::size_t least, const std::vector<phase>& hits, std::size_t host_extents = 0);

  // Parts of a scenario.
  watched_task& post(const watched_task::how& what, task_request request, watched_task::check is_right);
  watched_task& post_plain(const watched_task::how& what);
  /// The task that phases are about; else it is the last that was posted.
  void look_at(const watched_task& task) { subject_ = &task; }
  void trace(std::size_t worker) { tracees_[worker].emplace(world_.pid(worker)); }
  [[nodiscard]] tracee& traced(std::size_t worker) { return *tracees_[worker]; }
  /// Waits until the worker has landed in a task that was posted.
  void await_landing(std::size_t worker);
  /// Leaves the worker inside of a task that lands.
  void land(std::size_t worker, int number = 0);
  /// Traces a worker that sleeps or spins, and stops it there.
  void freeze(std::size_t worker);
  /// Has one that was frozen asleep sleep again; it will stop as soon as it was woken.
  void resume_sleep(std::size_t worker);
  /// After resume_sleep() and a wake.
  void await_wake(std::size_t worker);
  /// Lets the worker go on for so many instructions; false when it sleeps.
  bool step(std::size_t worker, unsigned instructions = 1);
  /// To the next instruction at which it is in that phase, of at most so many: for phases of few instructions, which
  /// chance alone may miss.
  void step_to(std::size_t worker, phase where, unsigned most);
  [[nodiscard]] bool is_asleep(std::size_t worker) const { return asleep_[worker]; }
  [[nodiscard]] phase phase_of(std::size_t worker);
  /// The same about whatever task the worker has.
  [[nodiscard]] phase phase_held_by(std::size_t worker);

  // An attempt in parts.
  /// Forgets the last one. Requires: all workers are there, and asleep unless they spin.
  void begin_attempt();
  /// What the death to come will do to tasks that are not watched is added here.
  [[nodiscard]] dispatcher::statistics& foreseen() { return foreseen_; }
  void count_point(phase where) { ++tally_[where], ++points_; }
  void kill(std::size_t worker);
  void check_that_others_go_on();
  void recover(std::size_t worker);
  void verify_recovered(std::size_t worker);
  void restart(std::size_t worker);
  void verify_all();
  /// All of this for the victim.
  void end_attempt();

  process_world& world() { return world_; }
  static constexpr int someone = 15;  ///< on the stage: tasks of no interest
  board& shared_board() { return world_.shared_board(); }
  dispatcher& tasks() { return world_.tasks(); }
  std::list<watched_task>& watched() { return watched_; }
  [[nodiscard]] const exit_status& end_of(std::size_t worker) const { return ends_[worker]; }
  [[nodiscard]] static std::size_t lane_of(std::size_t worker) { return board::shared_lanes + worker; }

private:
  // What others can see of the victim, and of the slot of its task.
  struct place {
    phase where = phase::queued;
    std::size_t held_bytes = 0;  // of shared memory, by all processes
    std::array<std::byte, sizeof(task_slot)> slot{};
    std::array<std::byte, sizeof(worker_line)> line{};
    friend bool operator==(const place&, const place&) = default;
  };
  [[nodiscard]] place place_of(std::size_t worker);
  std::vector<place> survey(const scenario& what);
  static std::vector<unsigned> choose(const scenario& what, const std::vector<place>& path);
  void attempt(const scenario& what, const std::vector<place>& path, unsigned point);
  void finish(const scenario& what);
  [[nodiscard]] phase phase_of(std::size_t worker, const watched_task& task);
  [[nodiscard]] const watched_task& subject() const { return subject_ != nullptr ? *subject_ : watched_.back(); }
  void verify_room();
  void verify_rest();

  const bool spins_;
  shared<stage> stage_;
  process_world world_;
  std::vector<std::optional<tracee>> tracees_;
  std::vector<bool> asleep_;
  std::vector<exit_status> ends_;
  std::list<watched_task> watched_;
  const watched_task* subject_ = nullptr;
  std::vector<std::uint64_t> rings_before_;  // tails, by worker
  dispatcher::statistics before_;
  dispatcher::statistics foreseen_;
  std::map<phase, unsigned> tally_;
  std::size_t points_ = 0;
};

}  // namespace muster::test
