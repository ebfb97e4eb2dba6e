// SPDX-License-Identifier: BSL-1.0
#include <muster/process/crew.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/detail/futex.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/error.hpp>

#include "held_up_call.hpp"
#include "processes.hpp"
#include "refused_calls.hpp"
#include "temporary_directory.hpp"

namespace muster::crew_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

void discard(log_level, std::string_view) {}

// ---- what the workers do

// Sleeps like a worker without tasks until it is told to leave.
int obey(worker_environment& environment) {
  static_cast<void>(environment.report_ready());
  auto& tasks = environment.tasks();
  auto& line = tasks.line(environment.who().index);
  while (line.order == 0) {
    line.parked = 1;
    tasks.sleeping().insert(environment.who().index);
    if (line.order == 0) futex_wait(futex_address(line.parked), 1, futex_scope::shared);
  }
  line.leaving = 1;
  return 0;
}

int spin_with_signals_blocked(worker_environment& environment) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  static_cast<void>(environment.report_ready());
  std::atomic<bool> for_ever = true;
  while (for_ever) continue;
  return 0;
}

int fail_to_initialize(worker_environment& environment) {
  environment.report_failure(error_info(errc::start_failed, "there is no model"));
  return 1;
}

int fail_at_length(worker_environment& environment) {
  environment.report_failure(error_info(errc::start_failed, "there is no model " + std::string(1'000'000, 'x')));
  return 1;
}

int exit_at_once(worker_environment&) { ::_exit(7); }

int never_end(worker_environment& environment) {
  static_cast<void>(environment.report_ready());
  std::atexit([] {
    ::prctl(PR_SET_NAME, "at_exit");
    for (;;) ::pause();
  });
  return 0;
}

int never_ready(worker_environment&) {
  for (;;) ::pause();
}

int write_then_be_silent_once(worker_environment& environment) {
  if (environment.who().incarnation > 1) return obey(environment);
  std::puts("silent from now on");
  std::fflush(stdout);
  return never_ready(environment);
}

int ready_then_abort_once(worker_environment& environment) {
  static_cast<void>(environment.report_ready());
  if (environment.who().incarnation == 1) ::raise(SIGABRT);
  return obey(environment);
}

// Writes what it inherited into the first block of the arena that the payload names.
struct inheritance {
  std::uint64_t descriptors = 0;
  bool handles_interrupts = false;
  bool blocks_signals = false;
  bool has_mark = false;
  bool stdin_is_empty = false;
  char threads[8] = {};
};

int look_around(worker_environment& environment) {
  block_ref ref;
  std::memcpy(&ref, environment.who().payload.data(), sizeof ref);
  inheritance found;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(each);
    ++found.descriptors;
  }
  struct sigaction action{};
  ::sigaction(SIGINT, nullptr, &action);
  found.handles_interrupts = action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL;
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  for (int signal = 1; signal < 32; ++signal)
    found.blocks_signals = found.blocks_signals || ::sigismember(&mask, signal) == 1;
  found.has_mark = std::getenv("MUSTER_WORKER") != nullptr;
  char byte = 0;
  found.stdin_is_empty = ::read(STDIN_FILENO, &byte, 1) == 0;
  const char* threads = std::getenv("OMP_NUM_THREADS");
  std::snprintf(found.threads, sizeof found.threads, "%s", threads != nullptr ? threads : "none");
  std::memcpy(environment.shared().blocks().view(ref).data(), &found, sizeof found);
  return obey(environment);
}

// ---- a client that notes what it is told

class notes final : public crew_client {
public:
  void worker_started(std::size_t, pid_t) noexcept override { add(started_); }
  void worker_ended(std::size_t, const exit_status& how, const last_words&) noexcept override {
    const scoped_lock lock(mutex_);
    ends_.push_back(how);
    changed_.notify_all();
  }
  void crew_broken(const error_info& why) noexcept override {
    const scoped_lock lock(mutex_);
    broken_ = why;
    changed_.notify_all();
  }
  void bell_rang() noexcept override { add(rings_); }

  bool wait_for_ends(std::size_t count) {
    scoped_lock lock(mutex_);
    const auto until = deadline::after(30s);
    while (ends_.size() < count && !until.expired()) changed_.wait_until(lock, until);
    return ends_.size() >= count;
  }
  std::optional<error_info> wait_until_broken() {
    scoped_lock lock(mutex_);
    const auto until = deadline::after(30s);
    while (!broken_ && !until.expired()) changed_.wait_until(lock, until);
    return broken_;
  }
  std::optional<error_info> broken() {
    const scoped_lock lock(mutex_);
    return broken_;
  }
  std::vector<exit_status> ends() {
    const scoped_lock lock(mutex_);
    return ends_;
  }

private:
  void add(int& counter) {
    const scoped_lock lock(mutex_);
    ++counter;
    changed_.notify_all();
  }

  mutex mutex_;
  condition changed_;
  int started_ = 0;
  int rings_ = 0;
  std::vector<exit_status> ends_;
  std::optional<error_info> broken_;
};

constexpr auto short_start = 500ms;

/// Has the first process die and its start time out while the supervisor is busy here: it hears of both at once.
class busy_client final : public crew_client {
public:
  void worker_started(std::size_t, pid_t) noexcept override { started_ = clock::now(); }
  void worker_ended(std::size_t, const exit_status&, const last_words&) noexcept override {
    if (ends_++ > 0) shortest_start_ = std::min(shortest_start_, clock::now() - started_);
  }
  void crew_broken(const error_info&) noexcept override {}
  void bell_rang() noexcept override {}
  void worker_wrote(const worker_output& line) noexcept override {
    ::kill(line.pid, SIGKILL);
    siginfo_t how;
    ::waitid(P_PID, static_cast<id_t>(line.pid), &how, WEXITED | WNOWAIT);
    std::this_thread::sleep_for(short_start);  // its time passes
  }

  /// How long a later process that ended was alive. To be read when the crew is gone.
  [[nodiscard]] std::chrono::nanoseconds shortest_start() const { return shortest_start_; }

private:
  clock::time_point started_;
  int ends_ = 0;
  std::chrono::nanoseconds shortest_start_ = std::chrono::nanoseconds::max();
};

/// Wants its worker killed whenever it is asked, and counts how often that is.
class severe_client final : public crew_client {
public:
  void worker_started(std::size_t, pid_t) noexcept override {}
  void worker_ended(std::size_t, const exit_status&, const last_words&) noexcept override {}
  void crew_broken(const error_info&) noexcept override { broken_ = true; }
  void bell_rang() noexcept override {}
  audit_report audit() noexcept override {
    ++audits_;
    return {.more = true, .suspects = {0}, .repeated = false};
  }
  overdue_report check_times() noexcept override {
    ++checks_;
    return {.workers = {{.index = 0}}, .next = clock::now() + 1ms};
  }

  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] int audits() const { return audits_; }
  [[nodiscard]] int checks() const { return checks_; }

private:
  std::atomic<bool> broken_ = false;
  std::atomic<int> audits_ = 0;
  std::atomic<int> checks_ = 0;
};

/// Holds up the supervisor's thread until it is let go, and notes the pause that is told.
class sleepy_client final : public crew_client {
public:
  void worker_started(std::size_t, pid_t) noexcept override {}
  void worker_ended(std::size_t, const exit_status&, const last_words&) noexcept override {}
  void crew_broken(const error_info&) noexcept override {}
  void bell_rang() noexcept override {}
  audit_report audit() noexcept override {
    is_held_up_ = true;
    is_held_up_.notify_all();
    is_let_go_.wait(false);
    return {};
  }
  overdue_report check_times() noexcept override {
    overdue_report report;
    report.next = clock::now() + 1h;
    return report;
  }
  void host_paused(const host_pause& which) noexcept override {
    lost_ = (which.end - which.due).count();
    lost_.notify_all();
  }

  void wait_until_held_up() const { is_held_up_.wait(false); }
  void let_go() {
    is_let_go_ = true;
    is_let_go_.notify_all();
  }
  [[nodiscard]] clock::duration lost() const {
    lost_.wait(0);
    return clock::duration(lost_);
  }

private:
  std::atomic<bool> is_held_up_ = false;
  std::atomic<bool> is_let_go_ = false;
  std::atomic<clock::rep> lost_ = 0;
};

class Crew : public testing::Test {
protected:
  crew& make(worker_entry* entry, std::size_t workers, crew_options options = {}) {
    board_.emplace(board_sizes{.workers = workers}, spin_policy{});
    functions_.emplace(board_->modules());
    options.entry = functions_->encode(entry);
    options.log = discard;
    return crew_.emplace(watcher_, *board_, std::move(options), notes_);
  }

  bool all_are(worker_lifecycle::state state) {
    return test::eventually([&] {
      const auto workers = crew_->workers();
      return std::all_of(workers.begin(), workers.end(), [&](const worker_info& each) { return each.state == state; });
    });
  }

  std::shared_ptr<supervisor> watcher_ =
      std::make_shared<supervisor>(domain_options{.arena_bytes = std::size_t{8} << 20U}, discard);
  notes notes_;
  std::optional<board> board_;
  std::optional<token_encoder> functions_;
  std::optional<crew> crew_;
};

TEST_F(Crew, WorkersStartBecomeReadyAndLeave) {
  auto& workers = make(&obey, 3);
  workers.wait_until_greeted();
  EXPECT_TRUE(all_are(worker_lifecycle::state::working));
  EXPECT_EQ(watcher_->shared()->participants().count(), 4U);
  workers.begin_stop(worker_order::leave);
  EXPECT_TRUE(workers.wait_until_gone(deadline::after(30s)));
  EXPECT_THAT(notes_.ends(), testing::Each(exit_status::exited(0)));
  EXPECT_EQ(watcher_->shared()->participants().count(), 1U);
  EXPECT_EQ(workers.read_statistics().killed, 0U);
}

TEST_F(Crew, AWorkerThatIsNotToBeReplacedIsGoneForGood) {
  auto& workers = make(&obey, 2, {.replaces = false});
  workers.wait_until_greeted();
  EXPECT_TRUE(workers.send(0, SIGKILL));
  ASSERT_TRUE(notes_.wait_for_ends(1));
  EXPECT_TRUE(test::eventually([&] { return workers.workers()[0].pid == 0; }));
  EXPECT_FALSE(workers.send(0, SIGKILL));
  EXPECT_NE(workers.workers()[1].pid, 0) << "the other stays";
  EXPECT_TRUE(workers.send(1, SIGTERM));
  EXPECT_TRUE(workers.wait_until_gone(deadline::after(30s)));
  EXPECT_EQ(notes_.ends()[1], exit_status::killed(SIGTERM));
  EXPECT_EQ(workers.read_statistics().started, 2U);
  EXPECT_FALSE(notes_.broken());
}

TEST_F(Crew, AWrongSignalIsAnError) {
  auto& workers = make(&obey, 1);
  workers.wait_until_greeted();
  EXPECT_THROW(workers.send(0, 12345), error);
  EXPECT_TRUE(workers.send(0, 0));
}

TEST_F(Crew, AKilledWorkerIsReportedAndReplaced) {
  auto& workers = make(&obey, 2);
  ASSERT_TRUE(all_are(worker_lifecycle::state::working));
  const auto victim = workers.workers()[1].pid;
  ::kill(victim, SIGKILL);
  ASSERT_TRUE(notes_.wait_for_ends(1));
  EXPECT_EQ(notes_.ends().front(), exit_status::killed(SIGKILL));
  ASSERT_TRUE(test::eventually([&] { return workers.workers()[1].incarnation == 2; }));
  ASSERT_TRUE(all_are(worker_lifecycle::state::working));
  EXPECT_NE(workers.workers()[1].pid, victim);
  EXPECT_EQ(workers.workers()[0].incarnation, 1U);
  EXPECT_EQ(workers.read_statistics().killed, 1U);
}

TEST_F(Crew, ACrashIsReportedWithItsSignal) {
  make(&ready_then_abort_once, 1);
  ASSERT_TRUE(notes_.wait_for_ends(1));
  EXPECT_EQ(notes_.ends().front().signal(), SIGABRT);
  EXPECT_TRUE(all_are(worker_lifecycle::state::working));
}

TEST_F(Crew, AWorkerInheritsNothingButWhatItIsGiven) {
  const unique_fd stray(::open("/dev/null", O_RDONLY));  // not close-on-exec
  const auto answer = watcher_->shared()->blocks().allocate(sizeof(inheritance));
  std::vector<std::byte> payload(sizeof(block_ref));
  const auto ref = answer.ref();
  std::memcpy(payload.data(), &ref, sizeof ref);
  make(&look_around, 1, {.payload = payload});
  ASSERT_TRUE(test::eventually([&] { return board_->sleeping().count() == 1; }));
  inheritance found;
  std::memcpy(&found, answer.data(), sizeof found);
  // stdin, stdout, stderr, control socket, lifeline, two domain files, board, bell, and the directory being read.
  EXPECT_EQ(found.descriptors, 10U);
  EXPECT_TRUE(found.handles_interrupts);
  EXPECT_FALSE(found.blocks_signals);
  EXPECT_FALSE(found.has_mark);
  EXPECT_TRUE(found.stdin_is_empty);
  EXPECT_STRNE(found.threads, "none");
}

TEST_F(Crew, AWorkerThatCannotStartBreaksTheCrewAfterThreeTries) {
  auto& workers = make(&exit_at_once, 1);
  const auto why = notes_.wait_until_broken();
  ASSERT_TRUE(why);
  EXPECT_EQ(*why, errc::start_failed);
  EXPECT_THAT(why->message(), HasSubstr("exited with code 7"));
  EXPECT_EQ(workers.read_statistics().started, 3U);
  EXPECT_EQ(workers.read_statistics().failed_starts, 3U);
}

TEST_F(Crew, AFailingInitializerBreaksTheCrewWithItsError) {
  make(&fail_to_initialize, 2);
  const auto why = notes_.wait_until_broken();
  ASSERT_TRUE(why);
  EXPECT_EQ(why->message(), "there is no model");
}

TEST_F(Crew, AnInitializersErrorThatIsTooLongForAMessageIsToldAsFarAsItFits) {
  make(&fail_at_length, 1);
  const auto why = notes_.wait_until_broken();
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message(), testing::AllOf(HasSubstr("there is no model xxx"), HasSubstr("more bytes)")));
}

TEST_F(Crew, AProgramThatIsNotThereIsAnErrorOfTheCall) {
  auto& workers = make(&obey, 1, {.program = "/no/such/program"});
  try {
    workers.wait_until_greeted();
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.code(), errc::start_failed);
    EXPECT_THAT(failure.what(),
                testing::AllOf(HasSubstr("posix_spawn"), HasSubstr("/no/such/program"), HasSubstr("No such file")));
  }
}

TEST_F(Crew, AProgramThatNeverGetsToInitIsAnErrorThatSaysSo) {
  auto& workers = make(&obey, 1, {.start_tries = 2, .program = "/bin/false"});
  try {
    workers.wait_until_greeted();
    FAIL();
  } catch (const error& failure) {
    EXPECT_THAT(failure.what(), testing::AllOf(HasSubstr("exited with code 1"), HasSubstr("muster::init")));
  }
  EXPECT_EQ(workers.read_statistics().failed_starts, 2U);
}

/// While it lives, control groups of version 1 can be made in a directory of its own; but whoever is to enter one has
/// ended when it is tried, and that fails.
class group_of_the_dead {
public:
  group_of_the_dead() {
    directory_.write("memory.limit_in_bytes", "");
    path_ = directory_.path();
    has_started_ = false;
    detail::refused_calls = &play;
  }
  group_of_the_dead(const group_of_the_dead&) = delete;
  group_of_the_dead& operator=(const group_of_the_dead&) = delete;
  ~group_of_the_dead() { detail::refused_calls = nullptr; }

  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }

private:
  static int play(std::string_view name) {
    if (name == "posix_spawn") has_started_ = true;
    if (name != "open") return 0;
    if (has_started_) {
      siginfo_t ended;
      ::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
      return EACCES;
    }
    for (const auto& each : std::filesystem::directory_iterator(path_)) {
      if (each.is_directory()) std::ofstream(each.path() / "memory.limit_in_bytes").flush();
    }
    return 0;
  }

  static inline std::filesystem::path path_;
  static inline std::atomic<bool> has_started_;
  test::temporary_directory directory_;
};

TEST_F(Crew, WhyAProcessThatHasEndedCouldNotBeTakenOverIsTheError) {
  const group_of_the_dead group;
  make(&obey, 1, {.start_tries = 1, .program = "/bin/true", .memory_group = group.path()});
  const auto why = notes_.wait_until_broken();
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message(), testing::AllOf(HasSubstr("open("), HasSubstr("cgroup.procs"), HasSubstr("Permission")));
}

TEST_F(Crew, ASilentWorkerIsKilledAfterTheStartTimeout) {
  make(&never_ready, 1, {.start_tries = 1, .start_timeout = 50ms});
  const auto why = notes_.wait_until_broken();
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message(), HasSubstr("silent for too long"));
}

TEST_F(Crew, TheStartTimeOfADeadProcessIsNotThatOfTheNext) {
  busy_client told;
  board tasks(board_sizes{.workers = 1}, spin_policy{});
  token_encoder functions(tasks.modules());
  std::optional<crew> workers(std::in_place, watcher_, tasks,
                              crew_options{.entry = functions.encode(&write_then_be_silent_once),
                                           .start_tries = 1000,
                                           .start_timeout = short_start,
                                           .capture = output_capture::lines,
                                           .log = discard},
                              told);
  EXPECT_TRUE(test::eventually([&] { return workers->workers()[0].state == worker_lifecycle::state::working; }));
  const auto starts = workers->read_statistics().started;
  workers.reset();
  if (starts > 2) {
    EXPECT_GE(told.shortest_start(), short_start) << "each has all of its own";
  }
}

TEST_F(Crew, StoppingKillsAWorkerThatDoesNotListen) {
  auto& workers = make(&spin_with_signals_blocked, 2);
  ASSERT_TRUE(all_are(worker_lifecycle::state::working));
  workers.stop(1ms);
  EXPECT_THAT(notes_.ends(), testing::ElementsAre(exit_status::killed(SIGKILL), exit_status::killed(SIGKILL)));
}

TEST_F(Crew, AFrozenWorkerCanBeStopped) {
  auto& workers = make(&obey, 1);
  ASSERT_TRUE(all_are(worker_lifecycle::state::working));
  ::kill(workers.workers()[0].pid, SIGSTOP);
  workers.stop(1ms);
  EXPECT_THAT(notes_.ends(), testing::ElementsAre(exit_status::killed(SIGKILL)));
}

TEST_F(Crew, AKillThatIsRefusedLeavesAuditsAndTimersArmed) {
  for (const int refused : {1, -1}) {
    severe_client told;
    board tasks(board_sizes{.workers = 2}, spin_policy{});
    token_encoder functions(tasks.modules());
    crew workers(watcher_, tasks, {.entry = functions.encode(&obey), .log = discard}, told);
    workers.wait_until_greeted();
    const test::refused_calls scope("pidfd_send_signal", EPERM, refused);
    workers.watch();
    workers.watch_time(clock::now());
    EXPECT_TRUE(test::eventually([&] { return told.broken(); })) << "who cannot be killed may go on for ever";
    const int audits = told.audits();
    const int checks = told.checks();
    EXPECT_TRUE(test::eventually([&] { return told.audits() > audits && told.checks() > checks + 1; }));
  }
}

// As SIGSTOP does; long before the time that is watched for.
TEST_F(Crew, TheClientIsToldThatTheSupervisorDidNotRun) {
  sleepy_client told;
  board tasks(board_sizes{.workers = 1}, spin_policy{});
  token_encoder functions(tasks.modules());
  crew workers(watcher_, tasks, {.entry = functions.encode(&obey), .log = discard}, told);
  workers.wait_until_greeted();
  workers.watch_time(clock::now() + 1h);
  workers.watch();
  told.wait_until_held_up();
  const auto begin = clock::now();
  std::this_thread::sleep_until(begin + 1500ms);  // longer than a step
  told.let_go();
  EXPECT_GE(told.lost(), 400ms);
}

// Whoever wants a number has it as soon as the dead worker's is free, if he is quicker than the one who replaces it.
TEST_F(Crew, AReplacementWaitsForANumberThatAnotherHasMeanwhile) {
  watcher_ = std::make_shared<supervisor>(domain_options{.arena_bytes = std::size_t{8} << 20U, .max_participants = 3},
                                          discard);
  std::atomic<bool> waits = false;
  board tasks(board_sizes{.workers = 1}, spin_policy{});
  token_encoder functions(tasks.modules());
  const auto log = [&](log_level, std::string_view what) {
    if (what.find("cannot be started at present") != std::string_view::npos) waits = true;
  };
  crew workers(watcher_, tasks, {.entry = functions.encode(&obey), .log = log}, notes_);
  const auto works = [&] { return workers.workers()[0].state == worker_lifecycle::state::working; };
  auto& numbers = watcher_->shared()->participants();
  ASSERT_TRUE(test::eventually(works));
  test::held_up_call start("socketpair");
  workers.send(0, SIGKILL);
  start.wait();  // the dead one's number is free, and the next one has none
  const auto taken = numbers.enrol();
  start.let_go();
  EXPECT_TRUE(test::eventually([&] { return waits.load(); }));
  numbers.retire(taken);
  EXPECT_TRUE(test::eventually(works));
  EXPECT_FALSE(notes_.broken());
}

TEST_F(Crew, AForkedChildDoesNotHarmTheWorkers) {
  auto& workers = make(&obey, 1);
  ASSERT_TRUE(all_are(worker_lifecycle::state::working));
  const auto ranks = test::spawn(1, [&](std::size_t) {
    crew_.reset();
    watcher_.reset();
    return 0;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
  EXPECT_EQ(workers.workers()[0].incarnation, 1U);
  EXPECT_EQ(::kill(workers.workers()[0].pid, 0), 0);
}

/// A crew of one, for parents that are ranks.
class lone_worker {
public:
  explicit lone_worker(worker_entry* entry)
      : crew_(watcher_, tasks_, {.entry = functions_.encode(entry), .log = discard}, told_) {}

  bool works(std::uint32_t incarnation) const {
    return test::eventually([&] {
      const auto found = crew_.workers()[0];
      return found.state == worker_lifecycle::state::working && found.incarnation == incarnation;
    });
  }
  [[nodiscard]] pid_t pid() const { return crew_.workers()[0].pid; }

private:
  std::shared_ptr<supervisor> watcher_ =
      std::make_shared<supervisor>(domain_options{.arena_bytes = std::size_t{1} << 20U}, discard);
  notes told_;
  board tasks_{{.workers = 1}, {}};
  token_encoder functions_{tasks_.modules()};
  crew crew_;
};

// The parent is a rank here, so that it can be killed; its worker spins with all signals blocked.
TEST(Lifeline, WorkersDieWithTheirParentWhateverTheyDo) {
  const test::shared<std::atomic<pid_t>> worker_pid;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    lone_worker worker(&spin_with_signals_blocked);
    if (!worker.works(1)) return 1;
    *worker_pid = worker.pid();
    for (;;) ::pause();
  });
  ASSERT_TRUE(test::eventually([&] { return *worker_pid != 0; }));
  ranks->kill(0);
  EXPECT_EQ(ranks->wait(0), exit_status::killed(SIGKILL));
  // Orphans come to this process, which is a subreaper: the worker is gone once it can be reaped or is a zombie.
  EXPECT_TRUE(test::eventually([&] { return ::waitpid(*worker_pid, nullptr, WNOHANG) == *worker_pid; }));
}

TEST(Lifeline, WorkersDieWithTheirParentThoughItHasAForkedChild) {
  const test::shared<std::atomic<pid_t>> worker_pid;
  const test::shared<std::atomic<pid_t>> child_pid;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    lone_worker worker(&spin_with_signals_blocked);
    if (!worker.works(1)) return 1;
    const auto child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    *child_pid = child;
    *worker_pid = worker.pid();
    for (;;) ::pause();
  });
  ASSERT_TRUE(test::eventually([&] { return *worker_pid != 0; }));
  ranks->kill(0);
  EXPECT_EQ(ranks->wait(0), exit_status::killed(SIGKILL));
  EXPECT_TRUE(test::eventually([&] { return ::waitpid(*worker_pid, nullptr, WNOHANG) == *worker_pid; }));
  ::kill(*child_pid, SIGKILL);
  EXPECT_TRUE(test::eventually([&] { return ::waitpid(*child_pid, nullptr, WNOHANG) == *child_pid; }));
}

std::string name_of(pid_t process) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/comm"), name);
  return name;
}

TEST(Lifeline, WorkersDieWithTheirParentAlsoWhileTheirStaticObjectsAreDestroyed) {
  const test::shared<std::atomic<pid_t>> worker_pid;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    lone_worker worker(&never_end);
    if (!worker.works(1)) return 1;
    *worker_pid = worker.pid();
    for (;;) ::pause();
  });
  ASSERT_TRUE(test::eventually([&] { return *worker_pid != 0 && name_of(*worker_pid) == "at_exit"; }));
  ranks->kill(0);
  EXPECT_EQ(ranks->wait(0), exit_status::killed(SIGKILL));
  EXPECT_TRUE(test::eventually([&] { return ::waitpid(*worker_pid, nullptr, WNOHANG) == *worker_pid; }));
}

std::size_t sockets_here() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::count_if(begin(all), end(all), [](const auto& each) {
    std::error_code gone;  // the iterator's own
    return std::filesystem::read_symlink(each.path(), gone).native().starts_with("socket:");
  }));
}

TEST(Lifeline, AForkedChildHasNoEndOfAConnectionToAWorker) {
  const auto ranks = test::spawn(1, [&](std::size_t) {
    const auto before = sockets_here();
    const lone_worker worker(&obey);
    if (!worker.works(1) || sockets_here() == before) return 1;
    const auto child = test::spawn(1, [&](std::size_t) { return sockets_here() == before ? 0 : 1; });
    return child->wait(0) == exit_status::exited(0) ? 0 : 2;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

// A replacement opens the pipe that was made when the program was root. Another rank, which stays root, kills the
// worker once the program has given that up: a start in between may fail, and is then tried again.
TEST(Lifeline, AReplacementIsStartedAfterTheProgramHasGivenUpRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be given up";
  const test::shared<std::atomic<pid_t>> victim;
  const auto ranks = test::spawn(2, [&](std::size_t rank) {
    if (rank == 1) {
      if (!test::eventually([&] { return *victim != 0; })) return 1;
      return ::kill(*victim, SIGKILL) == 0 ? 0 : 1;
    }
    lone_worker worker(&obey);
    if (!worker.works(1)) return 1;
    const auto pid = worker.pid();
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return 2;
    *victim = pid;
    return worker.works(2) ? 0 : 3;
  });
  EXPECT_EQ(ranks->wait(1), exit_status::exited(0));
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
}

// Its worker is still root's: it can neither be told to leave, since it does not listen, nor be killed. It ends with
// the program.
TEST(Lifeline, ACrewEndsAfterItsProgramHasGivenUpRootAndItsWorkersWithTheProgram) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be given up";
  const test::shared<std::atomic<pid_t>> worker_pid;
  const auto ranks = test::spawn(1, [&](std::size_t) {
    {
      lone_worker worker(&spin_with_signals_blocked);
      if (!worker.works(1)) return 1;
      *worker_pid = worker.pid();
      if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) return 2;
    }
    return ::kill(*worker_pid, 0) == -1 && errno == EPERM ? 0 : 3;
  });
  EXPECT_EQ(ranks->wait(0), exit_status::exited(0));
  // The program may have buried it itself, if it took its time to end.
  EXPECT_TRUE(test::eventually([&] {
    ::waitpid(*worker_pid, nullptr, WNOHANG);
    return ::kill(*worker_pid, 0) == -1 && errno == ESRCH;
  }));
}

}  // namespace
}  // namespace muster::crew_test
