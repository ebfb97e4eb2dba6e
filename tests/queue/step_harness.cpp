// SPDX-License-Identifier: BSL-1.0
#include "step_harness.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include <muster/queue/slot_protocol.hpp>

namespace muster::test {

using namespace std::chrono_literals;

namespace {

stage* the_stage = nullptr;  // of the test that runs; forked workers find it where their parent had it

const char* name_of(phase where) {
  constexpr std::array names = {"queued",     "claimed", "running",    "done",   "entered",
                                "bell taken", "after",   "lying down", "asleep", "leaving"};
  return names[static_cast<std::size_t>(where)];
}

}  // namespace

void enter_stage(int task) {
  const auto index = static_cast<std::size_t>(task);
  ++the_stage->runs[index];
  if (the_stage->lands[index].exchange(false)) ::raise(SIGTRAP);
}

int plain(int task, int value) {
  enter_stage(task);
  return value + 1;
}

// ---- a task

watched_task::watched_task(process_world& world, task_request request, const how& what, check is_right)
    : world_(world), how_(what), is_right_(std::move(is_right)) {
  request.lane = how_.lane;
  request.retries = how_.retries;
  request.chunk = how_.chunk;
  if (how_.by == reader::sink) request.sink = this;
  the_stage->lands[static_cast<std::size_t>(how_.number)] = how_.lands;
  record_ = &world_.tasks().post(std::move(request));
  where_ = record_->where();
  if (how_.by == reader::nobody) world_.tasks().detach(*record_);
  if (how_.by != reader::sleeps && how_.by != reader::waits) return;
  waiter_ = std::thread([this] {
    if (world_.tasks().wait(*record_, deadline::after(30s))) settled(*record_);
  });
  if (how_.by == reader::waits) return;
  const auto& word = world_.shared_board().slot(where_.slot).word;
  EXPECT_TRUE(eventually([&] { return slot_protocol::read(word).has(slot_flag::waiter); }));
}

watched_task::~watched_task() {
  if (waiter_.joinable()) waiter_.join();
}

void watched_task::settled(task_record& record) noexcept {
  if (record.phase() == task_phase::settled) element_ = record.element();
  reply_ = world_.tasks().take(record);
  ++told_;
}

bool watched_task::cancel() {
  const bool withdrawn = world_.tasks().cancel(*record_);
  if (withdrawn) error_ = errc::cancelled;
  asked_ = true;  // to stop: it is not tried again
  return withdrawn;
}

task_record::location watched_task::where() const noexcept {
  return how_.by == reader::nobody || told_ != 0 ? where_ : record_->where();
}

bool watched_task::is_held_by(std::size_t worker) const {
  const auto at = where();
  const auto found = slot_protocol::read(world_.shared_board().slot(at.slot).word);
  return at.phase == task_phase::posted && found.short_generation() == at.generation && found.owner() == worker + 1 &&
         found.state() == slot_state::claimed;
}

bool watched_task::is_queued() const {
  const auto at = where();
  const auto found = slot_protocol::read(world_.shared_board().slot(at.slot).word);
  return at.phase == task_phase::posted && found.short_generation() == at.generation &&
         found.state() == slot_state::queued;
}

void watched_task::foresee_death(std::size_t victim, dispatcher::statistics& deaths) {
  if (!is_held_by(victim)) return;
  auto& board = world_.shared_board();
  if (board.line(victim).current == 0) {
    ++deaths.requeued;
    return;
  }
  if (deaths_++ < how_.retries && !asked_) {
    ++deaths.retried;
  } else {
    deaths.lost += how_.chunk ? 0 : 1;
    error_ = errc::worker_died;
  }
}

void watched_task::verify() {
  switch (how_.by) {
    case reader::takes_later:
      ASSERT_TRUE(world_.tasks().wait(*record_, deadline::after(30s)));
      settled(*record_);
      break;
    case reader::waits:
    case reader::sleeps: waiter_.join(); break;
    case reader::sink: ASSERT_TRUE(eventually([&] { return told_ != 0; })); break;
    case reader::nobody: return;
  }
  ASSERT_EQ(told_, 1) << "a reply that nobody got, or two";
  judge();
}

void watched_task::judge() {
  EXPECT_EQ(reply_.succeeded(), !error_.has_value());
  if (!reply_.succeeded()) {
    EXPECT_EQ(reply_.error(), error_.value_or(errc{})) << reply_.error().message();
  }
  if (reply_.succeeded() || how_.chunk) {
    EXPECT_TRUE(is_right_(reply_, element_));
  }
  reply_ = {};
}

void watched_task::verify_counts() const {
  const auto runs = the_stage->runs[static_cast<std::size_t>(how_.number)].load();
  EXPECT_LE(runs, error_ == errc::cancelled ? 0 : 1 + deaths_);
  EXPECT_GE(runs, error_ ? 0U : 1U);
  EXPECT_LE(told_, 1) << "told again";
}

// ---- parts of a scenario

step_test::step_test(std::size_t workers, std::chrono::nanoseconds spin, std::size_t room)
    : spins_(spin.count() > 0),
      world_((the_stage = &*stage_, workers), {.budget = spin, .processors = 2}, {}, slots, room),
      tracees_(workers),
      asleep_(workers),
      ends_(workers),
      rings_before_(workers) {}

step_test::~step_test() {
  watched_.clear();
  the_stage = nullptr;
}

void step_test::begin_attempt() {
  watched_.clear();
  subject_ = nullptr;
  for (auto& each : tracees_) each.reset();
  asleep_.assign(asleep_.size(), false);
  for (auto& each : stage_->runs) each = 0;
  for (auto& each : stage_->lands) each = false;
  for (std::size_t worker = 0; worker < rings_before_.size(); ++worker) {
    rings_before_[worker] = shared_board().line(worker).ring_tail;
  }
  before_ = tasks().read_statistics();
  foreseen_ = {};
}

watched_task& step_test::post(const watched_task::how& what, task_request request, watched_task::check is_right) {
  return watched_.emplace_back(world_, std::move(request), what, std::move(is_right));
}

watched_task& step_test::post_plain(const watched_task::how& what) {
  return post(
      what, world_.request<plain>(what.number, what.number + 100),
      [number = what.number](task_reply& reply, std::uint64_t) { return value_of<int>(reply) == number + 101; });
}

void step_test::await_landing(std::size_t worker) {
  ASSERT_EQ(traced(worker).run_to_landing(), tracee::outcome::stopped);
}

void step_test::land(std::size_t worker, int number) {
  trace(worker);
  post_plain({.number = number, .lane = lane_of(worker), .retries = 1, .lands = true});
  await_landing(worker);
}

void step_test::freeze(std::size_t worker) {
  trace(worker);
  ASSERT_EQ(traced(worker).interrupt(), tracee::outcome::stopped);
}

void step_test::resume_sleep(std::size_t worker) {
  while (step(worker)) continue;
}

void step_test::await_wake(std::size_t worker) {
  ASSERT_EQ(traced(worker).await_stop(), tracee::outcome::stopped);
  asleep_[worker] = false;
}

bool step_test::step(std::size_t worker, unsigned instructions) {
  for (; instructions > 0 && !asleep_[worker]; --instructions) {
    const bool may_sleep = shared_board().line(worker).parked != 0;
    const auto found = traced(worker).step(may_sleep);
    EXPECT_NE(found, tracee::outcome::gone);
    asleep_[worker] = found != tracee::outcome::stopped;
  }
  return !asleep_[worker];
}

phase step_test::phase_of(std::size_t worker) { return phase_of(worker, subject()); }

void step_test::step_to(std::size_t worker, phase where, unsigned most) {
  while (most-- > 0 && phase_held_by(worker) != where && step(worker)) continue;
}

phase step_test::phase_held_by(std::size_t worker) {
  for (const auto& each : watched_) {
    const auto where = phase_of(worker, each);
    if (where != phase::queued && where != phase::after) return where;
  }
  return phase::queued;
}

phase step_test::phase_of(std::size_t worker, const watched_task& task) {
  auto& line = shared_board().line(worker);
  if (line.leaving != 0) return phase::leaving;
  if (asleep_[worker]) return phase::asleep;
  if (line.parked != 0) return phase::lying_down;
  const auto where = task.where();
  const auto found = slot_protocol::read(shared_board().slot(where.slot).word);
  if (found.short_generation() != where.generation) return phase::after;
  if (found.state() == slot_state::queued) return phase::queued;
  if (found.owner() != worker + 1) return phase::after;
  if (found.state() == slot_state::claimed) return line.current == 0 ? phase::claimed : phase::running;
  if (found.state() != slot_state::done || line.current == 0) return phase::after;
  if (line.ring_tail == rings_before_[worker]) return phase::done;
  return shared_board().bell_armed() == 0 ? phase::bell_taken : phase::entered;
}

// ---- the end of an attempt

void step_test::kill(std::size_t worker) {
  for (auto& each : watched_) each.foresee_death(worker, foreseen_);
  world_.kill(worker);
  ends_[worker] = world_.reap(worker);
  ASSERT_EQ(ends_[worker].signal(), SIGKILL);
}

void step_test::check_that_others_go_on() {
  auto request = world_.request<plain>(someone, 1);
  request.lane = board::shared_lanes + shared_board().active() - 1;
  auto& record = tasks().post(std::move(request));
  ASSERT_TRUE(tasks().wait(record, deadline::after(30s)));
  ASSERT_EQ(value_of<int>(tasks().take(record)), 2);
}

void step_test::recover(std::size_t worker) {
  world_.recover(worker, ends_[worker]);
  verify_recovered(worker);
}

void step_test::verify_recovered(std::size_t worker) {
  const auto& line = shared_board().line(worker);
  EXPECT_FALSE(shared_board().sleeping().remove(worker));
  EXPECT_FALSE(shared_board().spinning().remove(worker));
  EXPECT_EQ(line.parked, 0U);
  EXPECT_EQ(line.current, 0U);
  EXPECT_EQ(line.leaving, 0U);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const auto found = slot_protocol::read(shared_board().slot(slot).word);
    EXPECT_NE(found.owner(), worker + 1) << "slot " << slot << " is still the dead worker's";
  }
}

void step_test::restart(std::size_t worker) {
  shared_board().line(worker).order = static_cast<std::uint32_t>(worker_order::work);
  world_.start(worker);
}

void step_test::verify_all() {
  for (auto& each : watched_) each.verify();
  verify_room();
  for (const auto& each : watched_) each.verify_counts();
  verify_rest();
}

// As many tasks at once as there are slots: none has to wait for one.
void step_test::verify_room() {
  ASSERT_TRUE(tasks().wait_until_empty(deadline::after(30s)));  // and no call that a task had let go is on its way
  std::vector<task_record*> records;
  for (std::size_t each = 0; each < slots; ++each)
    records.push_back(&world_.post<plain>(someone, static_cast<int>(each)));
  EXPECT_EQ(tasks().read_statistics().waiting, 0U);
  for (std::size_t each = 0; each < slots; ++each) {
    ASSERT_TRUE(tasks().wait(*records[each], deadline::after(30s)));
    EXPECT_EQ(value_of<int>(tasks().take(*records[each])), static_cast<int>(each) + 1);
  }
}

void step_test::verify_rest() {
  const auto workers = shared_board().active();
  EXPECT_TRUE(eventually([&] { return spins_ || shared_board().sleeping().count() == workers; }));
  for (std::size_t index = 0; index < board::shared_lanes + workers; ++index) {
    EXPECT_TRUE(eventually([&] { return !shared_board().lane_at(index).has_entry(); })) << "lane " << index;
  }
  EXPECT_TRUE(eventually([&] { return shared_board().bell_armed() == 1; }));
  EXPECT_TRUE(eventually([&] { return world_.memory().read_statistics().live_blocks == 0; }));
  const auto now = tasks().read_statistics();
  EXPECT_EQ(now.requeued - before_.requeued, foreseen_.requeued);
  EXPECT_EQ(now.retried - before_.retried, foreseen_.retried);
  EXPECT_EQ(now.lost - before_.lost, foreseen_.lost);
  EXPECT_EQ(now.corrupted, 0U);
  EXPECT_EQ(now.ended, now.accepted);
}

void step_test::end_attempt() {
  kill(victim);
  check_that_others_go_on();
  recover(victim);
  restart(victim);
  verify_all();
}

// ---- sweeps

void step_test::sweep(const scenario& what) {
  survey(what);  // later ways are those of a world in which a worker has died
  const auto path = survey(what);
  for (const auto instructions : choose(what, path)) {
    SCOPED_TRACE(what.name + ", killed after " + std::to_string(instructions) + " instructions, " +
                 name_of(path[instructions].where));
    if (HasFailure()) return;
    attempt(what, path, instructions);
  }
}

step_test::place step_test::place_of(std::size_t worker) {
  place found{.where = phase_of(worker), .held_bytes = world_.memory().read_statistics().held_bytes};
  std::memcpy(found.slot.data(), &shared_board().slot(subject().where().slot), found.slot.size());
  std::memcpy(found.line.data(), &shared_board().line(worker), found.line.size());
  return found;
}

std::vector<step_test::place> step_test::survey(const scenario& what) {
  constexpr std::size_t longest = 100'000;  // not optimised it is some times as long
  std::vector<place> path;
  begin_attempt();
  what.begin();
  unsigned beyond = 0;
  do {
    path.push_back(place_of(victim));
    if (beyond > 0 || path.back().where == what.until || (what.over && what.over())) ++beyond;
  } while (beyond <= what.beyond && path.size() < longest && step(victim));
  if (is_asleep(victim)) path.push_back(place_of(victim));
  EXPECT_TRUE(beyond > 0 || is_asleep(victim)) << "it never came to its end";
  finish(what);
  return path;
}

std::vector<unsigned> step_test::choose(const scenario& what, const std::vector<place>& path) {
  std::vector<unsigned> chosen;
  auto change = path.begin();  // the next place that is another
  for (unsigned at = 0; at < path.size(); ++at) {
    if (change == path.begin() + at) {
      change = std::find_if(change, path.end(), [&](const place& each) { return each != path[at]; });
    }
    auto stride = what.stride;
    if (path[at].where == phase::running) stride = what.sparse;
    if (path[at].where == phase::after || path[at].where == phase::leaving) stride = what.behind;
    if (change != path.end() && change - path.begin() - at <= what.near) stride = what.stride;
    const bool first = at == 0 || path[at] != path[at - 1];
    const bool last = at + 1 == path.size() || path[at] != path[at + 1];
    if (first || last || at - chosen.back() >= stride) chosen.push_back(at);
  }
  return chosen;
}

// How many instructions there are before a phase differs from survey to attempt, with where the kernel puts the worker
// and how long it was away. So what is gone to is the phase, and the point in it. The way to sleep is gone to its end.
void step_test::attempt(const scenario& what, const std::vector<place>& path, unsigned point) {
  begin_attempt();
  what.begin();
  unsigned phases = 0;  // to pass
  unsigned offset = 0;  // of the point in the last
  for (unsigned at = 1; at <= point; ++at) {
    const bool is_next = path[at].where != path[at - 1].where;
    phases += is_next ? 1 : 0;
    offset = is_next ? 0 : offset + 1;
  }
  const auto most = 4 * path.size();
  for (std::size_t taken = 0; phases > 0 && taken < most; ++taken) {
    const auto before = phase_of(victim);
    if (!step(victim)) break;
    if (phase_of(victim) != before) --phases;
  }
  const auto reached = phase_of(victim);
  while (offset-- > 0 && phase_of(victim) == reached && step(victim)) continue;
  constexpr unsigned most_further = 1000;
  if (path[point].where == phase::asleep) step(victim, most_further);
  count_point(phase_of(victim));
  finish(what);
}

void step_test::finish(const scenario& what) {
  if (HasFatalFailure()) return;
  if (what.at_point) what.at_point();
  what.end ? what.end() : end_attempt();
}

void step_test::report(const std::string& name, std::size_t least, const std::vector<phase>& hits,
                       std::size_t host_extents) {
  static std::size_t so_far = 0;
  so_far += points_;
  std::printf("%s: %zu points:", name.c_str(), points_);
  for (const auto& [where, times] : tally_) std::printf(" %s %u", name_of(where), times);
  std::printf("; %zu so far in this process\n", so_far);
  EXPECT_GE(points_, least);
  for (const auto where : hits) EXPECT_GT(tally_[where], 0U) << name_of(where);
  if (HasFailure()) return;
  watched_.clear();
  for (std::size_t worker = 0; worker < ends_.size(); ++worker) {
    kill(worker);
    recover(worker);
  }
  const auto memory = world_.memory().read_statistics();
  EXPECT_EQ(memory.live_blocks, 0U);
  EXPECT_EQ(memory.held_bytes, memory.cached_bytes + host_extents * extent_bytes);
}

}  // namespace muster::test
