// SPDX-License-Identifier: BSL-1.0
// A worker is killed after every few instructions of a call that its task makes to its own pool: asking, running it in
// place, reading the answer. What else is checked: step_harness.hpp.
#include <optional>

#include <muster/queue/nested_end.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "step_harness.hpp"

namespace muster::nested_step_test {
namespace {

using test::enter_stage;
using test::phase;
using test::plain;
using test::value_of;
using test::watched_task;

constexpr int child = 2;  // on the stage

template <auto Function, class... Args>
nested_call call_async(const Args&... args) {
  auto& here = nested_end::require_current();
  return here.submit(here.functions().encode(&test::thunk_of<Function, Args...>),
                     outgoing_frame::of(here.memory(), args...));
}

template <class R>
R get(nested_call call) {
  call.wait();
  const auto reply = call.take();
  return std::get<0>(codec<R>::decode(reply.bytes()));
}

// What only the first call of a process does is not stepped: it looks at its modules and at the machine's memory.
void warm_up() {
  auto& here = nested_end::require_current();
  static_cast<void>(here.functions().encode(&warm_up));
  static_cast<void>(here.memory().allocate(400));
}

int call_plain(int task, int value) {
  warm_up();
  enter_stage(task);
  return get<int>(call_async<plain>(child, value));
}

int call_plain_before(int task, int value) {
  warm_up();
  auto call = call_async<plain>(child, value);
  enter_stage(task);
  return get<int>(std::move(call));
}

std::string echo(int task, std::string text) {
  enter_stage(task);
  return text;
}

int call_echo(int task, int bytes) {
  warm_up();
  const std::string text(static_cast<std::size_t>(bytes), 'x');
  enter_stage(task);
  return static_cast<int>(get<std::string>(call_async<echo>(child, text)).size()) + 1;
}

int call_echo_before(int task, int bytes) {
  warm_up();
  auto call = call_async<echo>(child, std::string(static_cast<std::size_t>(bytes), 'x'));
  enter_stage(task);
  return static_cast<int>(get<std::string>(std::move(call)).size()) + 1;
}

int let_go(int task, int bytes) {
  warm_up();
  const std::string text(static_cast<std::size_t>(bytes), 'x');
  enter_stage(task);
  {
    const auto call = call_async<echo>(child, text);
  }
  return bytes + 1;
}

// The victim's ring has an entry for the request already, and nobody wants the bell rung.
const std::vector all_phases{phase::running, phase::bell_taken, phase::after};

// With blocks a victim's way depends a little on the heap that it has inherited: a narrow phase may be missed.
const std::vector wide_phases{phase::running, phase::after};

class NestedStep : public test::step_test {
protected:
  explicit NestedStep(std::size_t workers = 1) : step_test(workers) {}

  // Posts a task that calls, and lets it come to where it lands. From there on the parent does nothing by itself.
  template <auto Function>
  std::function<void()> begin(int value, cell_state until = cell_state::free) {
    return [this, value, until] {
      if (until == cell_state::free) frozen_.emplace(tasks());
      trace(victim);
      look_at(post({.lane = lane_of(victim), .retries = 1, .lands = true}, world().request<Function>(1, value),
                   [value](task_reply& reply, std::uint64_t) { return value_of<int>(reply) == value + 1; }));
      await_landing(victim);
      if (until == cell_state::free) return;
      ASSERT_TRUE(test::eventually([&] { return has_cell_in(until); }));
      frozen_.emplace(tasks());
    };
  }

  bool has_cell_in(cell_state state) {
    for (std::size_t cell = 0; cell < requests_per_worker; ++cell) {
      if (cell_protocol::read(shared_board().request(victim, cell).word).state() == state) return true;
    }
    return false;
  }

  // The parent may read the rings before it learns of the death, or with it.
  void end_one() {
    foresee_calls();
    kill(victim);
    if (++ends_ % 2 == 0) frozen_.reset();
    if (shared_board().sizes().workers > 1) check_that_others_go_on();
    recover(victim);
    frozen_.reset();
    for (std::size_t cell = 0; cell < requests_per_worker; ++cell) {
      const auto found = cell_protocol::read(shared_board().request(victim, cell).word);
      EXPECT_EQ(found.state(), cell_state::free) << "cell " << cell;
    }
    restart(victim);
    verify_all();
  }

  // A call that runs in its slot dies with the task around it.
  void foresee_calls() {
    const auto current = shared_board().line(victim).current.load();
    if (current == 0) return;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const auto found = slot_protocol::read(shared_board().slot(slot).word);
      if (found.state() != slot_state::claimed || found.owner() != victim + 1) continue;
      if (slot != (current >> 32U & 0xffffU)) ++foreseen().lost, ++in_place_;
    }
  }

  void sweep_call(const std::string& name, std::function<void()> begin, unsigned sparse) {
    sweep({.name = name,
           .begin = std::move(begin),
           .until = phase::after,
           .beyond = 40,
           .sparse = sparse,
           .near = 8,
           .end = [this] { end_one(); }});
  }

  std::optional<dispatcher::helper> frozen_;
  unsigned ends_ = 0;
  unsigned in_place_ = 0;  // deaths inside of a call that was claimed from its slot
};

TEST_F(NestedStep, ACallThatIsTakenBackFromItsCell) {
  sweep_call("taken back", begin<call_plain>(7), 12);
  report("taken back", 100, all_phases);
}

TEST_F(NestedStep, ACallThatIsRunFromItsSlot) {
  sweep_call("run in its slot", begin<call_plain_before>(7, cell_state::posted), 8);
  EXPECT_GT(in_place_, 20U);
  report("run in its slot", 100, all_phases);
}

TEST_F(NestedStep, ACallWithBlocksThatIsTakenBackFromItsCell) {
  sweep_call("blocks, taken back", begin<call_echo>(400), 96);
  report("blocks, taken back", 100, wide_phases);
}

TEST_F(NestedStep, ACallWithBlocksThatIsRunFromItsSlot) {
  sweep_call("blocks, run in its slot", begin<call_echo_before>(400, cell_state::posted), 48);
  EXPECT_GT(in_place_, 20U);
  report("blocks, run in its slot", 100, wide_phases);
}

TEST_F(NestedStep, ACallThatIsLetGo) {
  sweep_call("let go", begin<let_go>(400), 24);
  report("let go", 50, wide_phases);
}

class NestedStepOfTwo : public NestedStep {
protected:
  NestedStepOfTwo() : NestedStep(2) {}
};

TEST_F(NestedStepOfTwo, AnAnswerInALine) {
  sweep_call("answered", begin<call_plain_before>(7, cell_state::answered), 4);
  report("answered", 50, all_phases);
}

TEST_F(NestedStepOfTwo, AnAnswerInABlock) {
  sweep_call("answered in a block", begin<call_echo_before>(400, cell_state::answered), 8);
  report("answered in a block", 50, wide_phases);
}

}  // namespace
}  // namespace muster::nested_step_test
