// SPDX-License-Identifier: BSL-1.0
// Another program (tests/programs/guest.cpp) joins the domain of this one.
#include <muster/memory/domain.hpp>
#include <muster/process/join.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/post.hpp>

#include <muster/base/error.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/text.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/base/version.hpp>
#include <muster/device/tensor.hpp>
#include <muster/process/listener.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/shared_queue.hpp>

#include "build_stamp.hpp"
#include "descriptor_messages.hpp"
#include "join_messages.hpp"
#include "processes.hpp"
#include "refused_calls.hpp"
#include "seed.hpp"
#include "supervisor_impl.hpp"
#include "temporary_directory.hpp"
#include "tracer.hpp"
#include "unix_socket.hpp"

namespace muster::join_test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

class Join : public testing::Test {
protected:
  Join() {
    new (number_.data()) std::atomic<std::uint64_t>(0);
    new (mailbox_.data()) std::atomic<std::uint64_t>(0);
    door_->offer("number", number_);
    door_->offer("mailbox", mailbox_);
    door_->offer("done", done_);
    door_->offer("taken", taken_);
    door_->offer("more", 42);
  }

  void TearDown() override {
    const std::scoped_lock lock(mutex_);
    if (HasFailure()) std::printf("the host's log:\n%s", log_.c_str());
  }

  static std::unique_ptr<test::processes> start_at(const std::string& path, const std::string& command,
                                                   const std::string& argument = "", std::size_t count = 1,
                                                   const char* program = MUSTER_GUEST) {
    return test::spawn(count, [&](std::size_t) {
      ::execl(program, program, path.c_str(), command.c_str(), argument.c_str(), nullptr);
      return 127;
    });
  }
  [[nodiscard]] std::unique_ptr<test::processes> start(const std::string& command, const std::string& argument = "") {
    return start_at(path_, command, argument);
  }
  void run(const std::string& command, const std::string& argument = "") {
    EXPECT_EQ(start(command, argument)->wait(0), exit_status::exited(0)) << command;
  }
  void expect_nobody_is_there() {
    EXPECT_TRUE(test::eventually([&] { return door_->guests().empty(); }));
    EXPECT_EQ(domain_->participants().count(), 1U);
  }
  // What is in use besides what is cached.
  struct usage {
    std::size_t live_blocks = 0;
    std::size_t holds = 0;
    std::size_t bytes = 0;
    friend bool operator==(const usage&, const usage&) = default;
    friend void PrintTo(const usage& what, std::ostream* out) {
      *out << what.live_blocks << " blocks, " << what.holds << " holds, " << what.bytes << " bytes";
    }
  };
  [[nodiscard]] usage in_use() const {
    const auto found = domain_->blocks().read_statistics();
    return {.live_blocks = found.live_blocks, .holds = found.holds, .bytes = found.held_bytes - found.cached_bytes};
  }
  static std::atomic<std::uint64_t>& number_in(const shared_block& block) {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(block.data());
  }
  // Messages of the listener.
  [[nodiscard]] listener_options options() {
    return {.log = [this](log_level, std::string_view message) {
      const std::scoped_lock lock(mutex_);
      log_.append(message).append("\n");
    }};
  }
  // The log's sink is called on a thread of its own.
  [[nodiscard]] bool comes_to_be_logged(std::string_view what) {
    return test::eventually([&] {
      const std::scoped_lock lock(mutex_);
      return log_.find(what) != std::string::npos;
    });
  }

  const test::temporary_directory directory_;
  const std::string path_ = directory_.path() / "socket";
  std::mutex mutex_;
  std::string log_;
  std::optional<listener> door_{std::in_place, path_, options()};
  const std::shared_ptr<domain> domain_ = door_->watcher()->shared();
  const shared_block number_ = domain_->blocks().allocate_shared(8);
  const shared_block mailbox_ = domain_->blocks().allocate_shared(8);
  const event done_;
  const event taken_;
};

TEST_F(Join, AnotherProgramGetsByNameWhatIsOffered) {
  run("add");
  EXPECT_TRUE(done_.is_set());
  EXPECT_EQ(number_in(number_), 42U);
  expect_nobody_is_there();
}

TEST_F(Join, DescriptorsGoBothWays) {
  constexpr const char* label = "join-test";
  auto& exchange = domain_->descriptors();
  const auto wanted = exchange.make_name();
  door_->offer("wanted", wanted.bits());
  auto guest = start("pass_descriptor_on", "waits");
  EXPECT_TRUE(test::eventually([&] { return domain_->deposits().read_statistics().waiting == 1; }));
  exchange.deposit(wanted, make_memfd(label, 12'345), {});
  done_.wait();
  exchange.withdraw(wanted);
  const descriptor_name name(number_in(mailbox_));
  for (const bool lives : {true, false}) {
    const auto found = exchange.fetch(name, deadline::never());
    ASSERT_TRUE(found);
    EXPECT_EQ(::lseek(found->get(), 0, SEEK_END), 12'345);
    if (!lives) break;
    guest->kill(0);
    expect_nobody_is_there();
  }
  EXPECT_EQ(domain_->deposits().read_statistics().kept, 1U) << "the program has the anchor";
}

TEST_F(Join, WhatAGuestWithdrawsBeforeItEndsIsWithdrawn) {
  const auto wanted = domain_->descriptors().make_name();
  door_->offer("wanted", wanted.bits());
  domain_->descriptors().deposit(wanted, make_memfd("join-test", 1), {});
  run("pass_descriptor_on", "withdraws");
  expect_nobody_is_there();
  EXPECT_EQ(domain_->deposits().read_statistics().kept, 1U) << "the program's own";
}

TEST_F(Join, OneThreadAsksForValuesWhileAnotherWaitsForADescriptor) {
  door_->offer("wanted", domain_->descriptors().make_name().bits());
  run("ask_and_fetch");
  EXPECT_EQ(number_in(number_), 100U);
  expect_nobody_is_there();
  EXPECT_TRUE(test::eventually([&] { return domain_->deposits().read_statistics().waiting == 0; }));
}

TEST_F(Join, TensorsAndBlocksGoBothWaysByReference) {
  auto numbers = tensor::ones<float>({1000});
  door_->offer("numbers", numbers);
  const auto guest = start("tensors");
  done_.wait();
  EXPECT_EQ(numbers.span<float>()[999], 2.0F);
  const auto made = domain_->blocks().receive(number_in(mailbox_));
  taken_.set();
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
  expect_nobody_is_there();
  ASSERT_GE(made.size(), 1U << 20U);
  EXPECT_EQ(static_cast<char>(made.bytes()[1000]), 'g');
}

TEST_F(Join, TensorsKeepTheDomainOfAProgramWhoseHandleIsGone) {
  const auto numbers = tensor::ones<float>({1000});
  door_->offer("numbers", numbers);
  run("keep_tensors");
  EXPECT_EQ(numbers.span<const float>()[999], 2.0F);
  expect_nobody_is_there();
}

TEST_F(Join, TensorsGoThroughQueuesThatItGetsByName) {
  shared_queue<tensor> jobs(4);
  shared_queue<tensor> results(4);
  door_->offer("jobs", jobs);
  door_->offer("results", results);
  const auto guest = start("serve");
  for (int each = 0; each < 20; ++each) {
    const auto sent = tensor::full<float>({1000}, static_cast<float>(each));
    jobs.push(sent);
    const auto back = results.pop();
    ASSERT_TRUE(back);
    EXPECT_EQ(back->span<const float>()[999], 2.0F * static_cast<float>(each));
    EXPECT_EQ(sent.span<const float>()[999], 2.0F * static_cast<float>(each)) << "the same memory";
  }
  jobs.close();
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
  expect_nobody_is_there();
}

TEST_F(Join, WhoIsKilledWithAQueueLosesWhatItHadTakenAndNoMore) {
  const auto before = in_use();
  {
    shared_queue<tensor> jobs(4);
    door_->offer("jobs", jobs);
    for (const float each : {1.0F, 2.0F, 3.0F}) jobs.push(tensor::full<float>({100'000}, each));
    const auto guest = start("take_two");
    done_.wait();
    guest->kill(0);
    EXPECT_EQ(guest->wait(0), exit_status::killed(SIGKILL));
    expect_nobody_is_there();
    EXPECT_EQ(jobs.pop()->span<const float>()[0], 2.0F) << "was on lease";
    EXPECT_EQ(jobs.pop()->span<const float>()[0], 3.0F);
    EXPECT_EQ(jobs.size(), 0U);
    EXPECT_TRUE(door_->withdraw("jobs"));
  }
  EXPECT_EQ(in_use(), before);
  EXPECT_EQ(domain_->keepsakes().size(), 0U);
}

// A tensor that says which it is.
tensor numbered(std::size_t number) { return tensor::full<std::int64_t>({1000}, static_cast<std::int64_t>(number)); }

// Which of the numbers came back, and how often, while guests pass them on.
class circulation {
public:
  static constexpr std::size_t most = 1 << 20U;

  circulation(const shared_queue<tensor>& jobs, const shared_queue<tensor>& results)
      : jobs_(jobs), results_(results), sender_([this] { send(); }), receiver_([this] { receive(); }) {}
  circulation(const circulation&) = delete;
  circulation& operator=(const circulation&) = delete;
  ~circulation() {
    finish_sending();
    finish_receiving();
  }

  void finish_sending() {
    stop_ = true;
    if (sender_.joinable()) sender_.join();
    jobs_.close();
  }
  void finish_receiving() {
    results_.close();
    if (receiver_.joinable()) receiver_.join();
  }
  [[nodiscard]] std::size_t sent() const { return sent_; }
  [[nodiscard]] std::size_t lost() const {
    return static_cast<std::size_t>(std::count(seen_.begin(), seen_.begin() + static_cast<std::ptrdiff_t>(sent()), 0));
  }
  [[nodiscard]] std::size_t doubled() const { return came_ + lost() - sent_; }
  [[nodiscard]] bool has_damage() const { return damaged_; }

private:
  void send() {
    while (!stop_ && sent_ < most && jobs_.push(numbered(sent_))) ++sent_;
  }
  void receive() {
    while (const auto back = results_.pop()) {
      const auto numbers = back->span<const std::int64_t>();
      const auto number = static_cast<std::size_t>(numbers[0]);
      if (number >= most || std::ranges::any_of(numbers, [&](auto each) { return each != numbers[0]; })) {
        damaged_ = true;
      } else {
        ++seen_[number];
        ++came_;
      }
    }
  }

  shared_queue<tensor> jobs_;
  shared_queue<tensor> results_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> sent_ = 0;  // by the sender
  std::size_t came_ = 0;               // the receiver's, and so what follows
  std::vector<unsigned char> seen_ = std::vector<unsigned char>(most);
  bool damaged_ = false;
  std::thread sender_;
  std::thread receiver_;
};

TEST_F(Join, GuestsKilledInsidePushAndPopLoseOrDoubleWhatTheyWereAtAndLeaveNothing) {
  std::mt19937 random(test::seed());
  const auto before = in_use();
  {
    const shared_queue<tensor> jobs(4);
    const shared_queue<tensor> results(4);
    door_->offer("jobs", jobs);
    door_->offer("results", results);
    const std::array how = {"pop", "pop", "lease", "lease"};
    std::array<unsigned, 2> killed{};  // who pop, who lease
    circulation tensors(jobs, results);
    std::vector<std::unique_ptr<test::processes>> guests;
    for (const auto* each : how) guests.push_back(start("pass_on", each));
    for (int kills = 0; kills < 100; ++kills) {
      test::work_for(std::chrono::microseconds(1000 + random() % 10'000));
      const auto victim = random() % guests.size();
      guests[victim]->kill(0);
      static_cast<void>(guests[victim]->wait(0));
      ++killed[victim / 2];
      guests[victim] = start("pass_on", how[victim]);
    }
    EXPECT_TRUE(test::eventually([&] { return tensors.sent() > 100; })) << "where starting takes long, in peace";
    tensors.finish_sending();
    for (const auto& each : guests) EXPECT_EQ(each->wait(0), exit_status::exited(0));
    expect_nobody_is_there();
    tensors.finish_receiving();
    std::printf("%zu tensors sent, %zu lost, %zu doubled\n", tensors.sent(), tensors.lost(), tensors.doubled());
    EXPECT_FALSE(tensors.has_damage());
    EXPECT_LE(tensors.lost(), killed[0]);
    EXPECT_LE(tensors.doubled(), killed[1]);
    EXPECT_TRUE(door_->withdraw("jobs"));
    EXPECT_TRUE(door_->withdraw("results"));
  }
  EXPECT_EQ(in_use(), before);
  EXPECT_EQ(domain_->keepsakes().size(), 0U);
}

TEST_F(Join, OneThatIsKilledLeavesNothingBehind) {
  const auto before = domain_->blocks().read_statistics();
  for (int times = 0; times < 3; ++times) {
    const auto guest = start("hold");
    done_.wait();
    done_.clear();
    EXPECT_GT(domain_->blocks().read_statistics().held_bytes, before.held_bytes);
    const auto there = door_->guests();
    ASSERT_EQ(there.size(), 1U);
    EXPECT_EQ(there[0].pid, guest->pid(0));
    EXPECT_EQ(there[0].participant, participant_id{2}) << "its number is free again";
    guest->kill(0);
    static_cast<void>(guest->wait(0));
    expect_nobody_is_there();
    const auto now = domain_->blocks().read_statistics();
    EXPECT_EQ(now.held_bytes - now.cached_bytes, before.held_bytes - before.cached_bytes);
    EXPECT_EQ(now.holds, before.holds);
  }
}

TEST_F(Join, OnesThatAreKilledWhileTheyActHarmNobody) {
  const auto before = domain_->blocks().read_statistics();
  for (int times = 0; times < 30; ++times) {
    const auto guests = start_at(path_, "toggle", "", 2);
    done_.wait();
    test::work_for(std::chrono::microseconds(137 * times));
    guests->kill(0);
    guests->kill(1);
    static_cast<void>(guests->wait(0));
    static_cast<void>(guests->wait(1));
    ASSERT_TRUE(test::eventually([&] { return door_->guests().empty(); }));
    done_.clear();
  }
  expect_nobody_is_there();
  const auto now = domain_->blocks().read_statistics();
  EXPECT_EQ(now.held_bytes - now.cached_bytes, before.held_bytes - before.cached_bytes);
  run("add");
}

TEST_F(Join, AHundredInARowLeaveNothing) {
  for (int times = 0; times < 100; ++times) run("join_and_leave");
  expect_nobody_is_there();
}

TEST_F(Join, WhoLeavesAndLivesOnIsForgotten) {
  const auto guest = start("leave_and_live");
  done_.wait();
  expect_nobody_is_there();
}

TEST_F(Join, MayBeDoneAgainAfterLeaving) {
  run("join_again_after_leaving");
  expect_nobody_is_there();
}

TEST_F(Join, WhoseConnectionEndsWithoutAWordStaysUntilItIsDead) {
  const auto guest = start("close_all");
  done_.wait();
  EXPECT_EQ(door_->guests().size(), 1U);
  taken_.set();
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
  expect_nobody_is_there();
}

// Its pidfd is not readable before the tracer has taken notice of each thread.
TEST_F(Join, OneThatDiesUnderATracerIsForgottenBeforeTheTracerLetsGo) {
  const auto guest = start("wait_in_two_threads");
  done_.wait();
  test::tracer tracer(guest->pid(0), test::tracer::notice::of_none);
  if (!tracer.works()) GTEST_SKIP() << "this machine does not let one process trace another";
  guest->kill(0);
  expect_nobody_is_there();
  EXPECT_TRUE(test::is_zombie(guest->pid(0))) << "the tracer keeps it";
  tracer.let_go();
  EXPECT_EQ(guest->wait(0), exit_status::killed(SIGKILL));
}

TEST_F(Join, AHostThatWasKilledIsSeenByWhoHasJoined) {
  const std::string other = directory_.path() / "other";
  const auto host = start_at(other, "host", other);
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(other + "listens"); }));
  const auto guest = start_at(other, "await_the_end_of_the_host");
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(other + "joined"); }));
  host->kill(0);
  static_cast<void>(host->wait(0));
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
  EXPECT_THROW(static_cast<void>(join(other)), error) << "nobody listens there";
}

TEST_F(Join, AHostThatWasKilledIsSeenThoughAForkedChildOfItsLivesOn) {
  const std::string other = directory_.path() / "other";
  const auto host = start_at(other, "host_with_a_child", other);
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(other + "listens"); }));
  const auto guest = start_at(other, "await_the_end_of_the_host");
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(other + "child"); }));
  host->kill(0);
  static_cast<void>(host->wait(0));
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
  EXPECT_NO_THROW(listener(door_->watcher(), other)) << "nobody listens there";
  pid_t child = 0;
  std::ifstream(other + "child") >> child;
  ASSERT_GT(child, 1);
  EXPECT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_TRUE(test::eventually([&] { return ::waitpid(child, nullptr, WNOHANG) == child; }));
}

TEST_F(Join, AHostThatWasKilledIsSeenThoughAChildMadeByRawCloneLivesOn) {
  for (const auto* const command : {"await_the_end_of_the_host", "await_a_descriptor"}) {
    const std::string other = directory_.path() / command;
    const auto host = start_at(other, "host_with_a_clone", other);
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(other + "listens"); }));
    const auto guest = start_at(other, command);
    ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(other + "child"); }));
    host->kill(0);
    static_cast<void>(host->wait(0));
    EXPECT_EQ(guest->wait(0), exit_status::exited(0)) << command;
    try {
      static_cast<void>(join(other));
      ADD_FAILURE() << "nobody listens there";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), std::errc::connection_refused);
    }
    EXPECT_NO_THROW(listener(door_->watcher(), other)) << "nobody listens there";
    pid_t child = 0;
    std::ifstream(other + "child") >> child;
    ASSERT_GT(child, 1);
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    EXPECT_TRUE(test::eventually([&] { return ::waitpid(child, nullptr, WNOHANG) == child; }));
  }
}

TEST_F(Join, AHostThatHasClosedIsSeenByWhoHasJoined) {
  auto watcher = std::make_shared<supervisor>(domain_options{.arena_bytes = 1 << 24});
  const std::string other = directory_.path() / "other";
  std::optional<listener> door(std::in_place, watcher, other);
  const event there(watcher->shared());
  door->offer("done", there);
  const auto guest = start_at(other, "await_the_end_of_the_host");
  there.wait();
  door.reset();
  watcher.reset();
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
}

TEST_F(Join, WhoHasJoinedIsLookedAfterWhenTheListenerIsGone) {
  const auto watcher = door_->watcher();
  const auto guest = start("hold");
  done_.wait();
  door_.reset();
  EXPECT_EQ(domain_->participants().count(), 2U);
  guest->kill(0);
  static_cast<void>(guest->wait(0));
  EXPECT_TRUE(test::eventually([&] { return domain_->participants().count() == 1; }));
}

// A host that answers when the test says so: it has one guest, in a domain of its own.
class slow_host {
public:
  explicit slow_host(const std::string& path) : door_(path) {}

  void let_in() {
    EXPECT_TRUE(test::eventually([&] { return static_cast<bool>(guest_ = door_.accept()); }));
    EXPECT_EQ(hear().kind, detail::message_kind::join);
    const detail::joined_message welcome{.participant = static_cast<std::uint16_t>(domain_.participants().enrol())};
    const auto& files = domain_.files();
    detail::send_message(guest_.get(), detail::message_kind::joined, detail::body_of(welcome),
                         std::array{files.control.get(), files.arena.get()});
  }
  [[nodiscard]] detail::message hear() const {
    for (;;) {
      if (auto heard = detail::receive_message_until(guest_.get(), deadline::never())) return std::move(*heard);
    }
  }
  template <class T>
  void say(detail::message_kind what, const T& content) const {
    detail::send_message(guest_.get(), what, detail::body_of(content));
  }

private:
  domain domain_{{.arena_bytes = 1 << 22, .max_participants = 4}};
  detail::listening_socket door_;
  unique_fd guest_;
};

// Asks for the names, which come too late, and then for a number, while another of its threads waits for a descriptor.
int ask_again(const std::string& path, std::atomic<bool>& is_late) {
  const auto host = join(path, {.timeout = 2s});
  bool was_answered = false;
  std::thread fetches([&] {
    const descriptor_name name(participant_id::host, 1, 0);
    was_answered = !host.shared()->descriptors().fetch(name, deadline::never());
  });
  int code = 1;
  try {
    static_cast<void>(host.names());
  } catch (const error& failure) {
    code = failure.code() == errc::timed_out ? 0 : 2;
  }
  is_late = true;
  if (code == 0 && host.get<int>("number") != 7) code = 3;
  if (code == 0 && !host.is_hosted()) code = 4;
  fetches.join();
  return was_answered ? code : 5;
}

TEST_F(Join, AHostThatAnswersTooLateMayBeAskedAgain) {
  const std::string other = directory_.path() / "other";
  slow_host host(other);
  const test::shared<std::atomic<bool>> is_late;
  const auto guest = test::spawn(1, [&](std::size_t) { return ask_again(other, *is_late); });
  host.let_in();
  const std::array heard = {host.hear(), host.hear()};  // in any order
  const auto& fetch = heard[heard[0].kind == detail::message_kind::fetch ? 0 : 1];
  ASSERT_EQ(fetch.kind, detail::message_kind::fetch);
  ASSERT_TRUE(test::eventually([&] { return is_late->load(); }));
  host.say(detail::message_kind::names, detail::names_message{.names = {"number"}, .next = {}});
  host.say(detail::message_kind::answer,
           detail::descriptor_answer{.number = fetch.read<detail::descriptor_request>().number, .why = {}});
  EXPECT_EQ(host.hear().kind, detail::message_kind::ask);
  host.say(detail::message_kind::found, detail::found_value{.frame = detail::offer_of(7).frame, .blocks = {}});
  EXPECT_EQ(host.hear().kind, detail::message_kind::leave);
  EXPECT_EQ(guest->wait(0), exit_status::exited(0));
}

TEST_F(Join, AProgramTakesPartInOneDomainOnly) { run("join_twice"); }

TEST_F(Join, TheHostItselfIsRefused) {
  try {
    static_cast<void>(join(path_));
    FAIL() << "joined itself";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::invalid_argument);
    EXPECT_THAT(problem.what(), HasSubstr("itself"));
  }
  EXPECT_TRUE(comes_to_be_logged("turned away"));
}

TEST_F(Join, AnUnknownNameIsAnErrorThatListsTheOthers) {
  const std::string file = directory_.path() / "text";
  door_->offer("withdrawn", 1);
  EXPECT_TRUE(door_->withdraw("withdrawn"));
  EXPECT_FALSE(door_->withdraw("withdrawn"));
  run("get_unknown", file);
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_THAT(text.str(), AllOf(HasSubstr("done mailbox more number taken "), HasSubstr("'nothing'"),
                                HasSubstr("'mailbox' (muster::shared_block)"), HasSubstr("'more' (int)"),
                                HasSubstr("'done' is a muster::event, and was asked for as a int"),
                                testing::Not(HasSubstr("withdrawn"))));
}

TEST_F(Join, ThousandsOfOffersAreListedAndAnUnknownNameAmongThemIsAnErrorThatListsSome) {
  const std::string file = directory_.path() / "text";
  constexpr int many = 10'000;
  for (int each = 0; each < many; ++each) door_->offer(text("offer with a long name ", 10'000 + each), each);
  run("get_unknown", file);
  std::ostringstream said;
  said << std::ifstream(file).rdbuf();
  const auto whole = said.str();
  for (int each = 0; each < many; ++each) {
    ASSERT_NE(whole.find(text("offer with a long name ", 10'000 + each, " ")), std::string::npos) << each;
  }
  EXPECT_THAT(whole,
              AllOf(HasSubstr("done mailbox more number offer with"), HasSubstr("taken nothing is offered"),
                    HasSubstr("'offer with a long name 10000' (int), "), testing::ContainsRegex("and 9[0-9]+ more"),
                    HasSubstr("'done' is a muster::event, and was asked for as a int")));
}

TEST_F(Join, AnOfferTakesThePlaceOfTheOneBefore) {
  door_->offer("more", 1);
  run("add");
  door_->offer("more", 100);
  run("add");
  EXPECT_EQ(number_in(number_), 101U);
}

TEST_F(Join, WhatCannotBeOfferedIsRefused) {
  const event elsewhere(std::make_shared<domain>(domain_options{.arena_bytes = 1 << 22}));
  EXPECT_THROW(door_->offer("elsewhere", elsewhere), error);
  EXPECT_THROW(door_->offer("long", std::string(100'000, 'x')), error);
  EXPECT_NO_THROW(door_->offer("short", std::string(60'000, 'x')));
  EXPECT_THROW(door_->offer(std::string(1001, 'x'), 1), error);
  EXPECT_NO_THROW(door_->offer(std::string(1000, 'x'), 1));
}

// ---- who is not let in

// The answer to one message of a stranger.
detail::message answer_to(const std::string& path, std::uint32_t kind, std::span<const std::byte> body) {
  const auto socket = detail::connect_to(path, 100s);
  detail::send_message(socket.get(), static_cast<detail::message_kind>(kind), body);
  return std::move(*detail::receive_message(socket.get(), detail::wait_mode::block));
}

detail::join_message greeting() { return {.build = detail::build_stamp::of_process()}; }

class Stranger : public Join {
protected:
  [[nodiscard]] std::string refusal_of(std::uint32_t kind, const std::vector<std::byte>& body) {
    const test::shared<std::array<char, 1000>> said;
    const auto stranger = test::spawn(1, [&](std::size_t) {  // the host itself is turned away for another reason
      const auto answer = answer_to(path_, kind, body);
      if (answer.kind != detail::message_kind::refusal || !answer.descriptors.empty()) return 1;
      std::snprintf(said->data(), said->size(), "%s", answer.read<error_info>().describe().c_str());
      return 0;
    });
    EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
    return said->data();
  }
};

TEST_F(Stranger, OfAnotherVersionIsToldSo) {
  const auto said = refusal_of(static_cast<std::uint32_t>(detail::message_kind::join),
                               detail::body_of(detail::join_message{.version = 99}));
  EXPECT_THAT(
      said, AllOf(HasSubstr("version 99"), HasSubstr(text("version ", detail::join_version)), HasSubstr("build both")));
  EXPECT_TRUE(comes_to_be_logged("version 99"));
  expect_nobody_is_there();
}

// The version before had nothing else in its message, and a later one may have anything.
TEST_F(Stranger, OfAnotherVersionIsToldSoWhateverFollows) {
  for (std::size_t more : {0U, 1U, 100U}) {
    std::vector<std::byte> body(4 + more, std::byte{0xee});
    const std::uint32_t version = more == 0 ? 1 : 4;
    std::memcpy(body.data(), &version, sizeof version);
    EXPECT_THAT(refusal_of(static_cast<std::uint32_t>(detail::message_kind::join), body),
                AllOf(HasSubstr("joins by version " + std::to_string(version)), HasSubstr("by version 3")));
  }
  expect_nobody_is_there();
}

TEST_F(Stranger, WithAnotherBuildOfMusterIsRefusedWithTheModulesOfBoth) {
  const std::string file = directory_.path() / "text";
  const auto guest = start_at(path_, "be_refused", file, 1, MUSTER_GUEST_OF_ANOTHER_BUILD);
  ASSERT_EQ(guest->wait(0), exit_status::exited(0));
  std::ostringstream said;
  said << std::ifstream(file).rdbuf();
  const auto mine = detail::build_stamp::of_process();
  EXPECT_THAT(said.str(),
              AllOf(HasSubstr("another build of muster: it has muster " MUSTER_VERSION_STRING
                              " of sources 0123456789abcdef0123456789abcdef, built with libstdcxx, and the host"),
                    HasSubstr(text("(process ", ::getpid(), ") has ", mine.muster)),
                    HasSubstr("modules of the host:\n" + describe(mine.modules)),
                    testing::ContainsRegex("modules of the program:\n  [0-9a-f]+  .executable.\n"),
                    HasSubstr("link both with one build")));
  EXPECT_TRUE(comes_to_be_logged("another build of muster"));
  expect_nobody_is_there();
  run("add");  // another program of the same build
}

TEST_F(Stranger, WhoSendsGarbageIsTurnedAway) {
  for (const std::uint32_t kind : {0U, 1U, 5U, 8U, 9U, 77U}) {
    EXPECT_THAT(refusal_of(kind, std::vector<std::byte>(100, std::byte{0xee})), HasSubstr("before it had joined"));
  }
  EXPECT_THAT(refusal_of(static_cast<std::uint32_t>(detail::message_kind::join), {}), HasSubstr("bytes"));
  expect_nobody_is_there();
  run("add");
}

TEST_F(Stranger, WhoSendsNextToNothingIsTurnedAway) {
  const auto stranger = test::spawn(1, [&](std::size_t) {
    const auto socket = detail::connect_to(path_, 100s);
    static_cast<void>(::send(socket.get(), "x", 1, 0));
    const auto answer = detail::receive_message(socket.get(), detail::wait_mode::block);
    const bool is_over =
        answer && (answer->kind == detail::message_kind::refusal || answer->kind == detail::message_kind::closed);
    return is_over ? 0 : 1;
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
  run("add");
}

TEST_F(Stranger, WhoAsksForAnotherHelloIsHungUpOnAndBuriedWhenDead) {
  const auto stranger = test::spawn(1, [&](std::size_t) {
    const auto socket = detail::connect_to(path_, 100s);
    for (const auto wanted : {detail::message_kind::joined, detail::message_kind::refusal}) {
      detail::send_message(socket.get(), detail::message_kind::join, detail::body_of(greeting()));
      const auto answer = detail::receive_message(socket.get(), detail::wait_mode::block);
      if (!answer || answer->kind != wanted) return 1;
    }
    for (;;) ::pause();
  });
  ASSERT_TRUE(comes_to_be_logged("after it had joined"));
  EXPECT_EQ(domain_->participants().count(), 2U);
  stranger->kill(0);
  static_cast<void>(stranger->wait(0));
  expect_nobody_is_there();
}

TEST_F(Stranger, WhoSaysNothingIsToldSoAndHungUpOn) {
  const std::string other = directory_.path() / "other";
  const listener impatient(door_->watcher(), other, {.hello_timeout = 1ms});
  const auto stranger = test::spawn(1, [&](std::size_t) {
    const auto socket = detail::connect_to(other, 100s);
    const auto answer = detail::receive_message(socket.get(), detail::wait_mode::block);
    if (!answer || answer->kind != detail::message_kind::refusal) return 1;
    if (answer->read<error_info>().code() != errc::timed_out) return 2;
    return detail::receive_message(socket.get(), detail::wait_mode::block)->kind == detail::message_kind::closed ? 0
                                                                                                                 : 3;
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
}

std::size_t count_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_F(Stranger, OfManyWhoSayNothingTheFirstGoAndWhoSpeaksIsLetIn) {
  constexpr std::size_t many = 200;
  constexpr std::size_t most = 64;
  const std::string other = directory_.path() / "other";
  const listener patient(door_->watcher(), other, {.hello_timeout = 1h, .log = options().log});
  const test::shared<std::atomic<bool>> all_are_there;
  const auto before = count_descriptors();
  const auto stranger = test::spawn(1, [&](std::size_t) {
    std::vector<unique_fd> sockets;
    const auto hear = [&](std::size_t which) {
      return std::move(*detail::receive_message(sockets[which].get(), detail::wait_mode::block));
    };
    while (sockets.size() < many) sockets.push_back(detail::connect_to(other, 100s));
    for (std::size_t each = 0; each < many - most; ++each) {
      const auto answer = hear(each);
      if (answer.kind != detail::message_kind::refusal || answer.read<error_info>().code() != errc::timed_out) return 1;
    }
    for (const auto speaks : {many - most, many - 1}) {
      detail::send_message(sockets[speaks].get(), detail::message_kind::join, detail::body_of(greeting()));
      if (hear(speaks).kind != detail::message_kind::joined) return 2;
    }
    *all_are_there = true;
    for (;;) ::pause();
  });
  EXPECT_TRUE(test::eventually([&] { return all_are_there->load(); }));
  EXPECT_LE(count_descriptors(), before + 2 * most + 1) << "and the pidfd of the test's own";
  stranger->kill(0);
  EXPECT_TRUE(test::eventually([&] { return patient.guests().empty(); }));
}

TEST_F(Stranger, WhileManyConnectAtOnceTheLoopDoesOtherThingsToo) {
  constexpr std::size_t many = 40;
  auto& hub = door_->watcher()->internals();
  const test::shared<std::atomic<bool>> all_are_there;
  std::unique_ptr<test::processes> strangers;
  std::size_t before = 0;
  std::set<std::size_t> seen;  // by a handler that comes again and again
  std::promise<void> done;
  std::function<void()> look = [&] {
    const auto more = count_descriptors() - before;
    seen.insert(more);
    if (more >= 2 * many) return done.set_value();
    boost::asio::post(hub.loop(), look);
  };
  hub.run_on_loop([&] {
    strangers = test::spawn(1, [&](std::size_t) {
      std::vector<unique_fd> sockets;
      while (sockets.size() < many) sockets.push_back(detail::connect_to(path_, 100s));
      *all_are_there = true;
      for (;;) ::pause();
      return 0;
    });
    EXPECT_TRUE(test::eventually([&] { return all_are_there->load(); }));
    before = count_descriptors();
    boost::asio::post(hub.loop(), look);
  });
  done.get_future().wait();
  EXPECT_TRUE(std::ranges::any_of(seen, [&](std::size_t more) { return more > 0 && more < 2 * many; }));
}

// What the one says last is read when the other can say nothing any more.
TEST_F(Stranger, WhoIsHungUpOnBeforeItSaysHelloHearsWhy) {
  const std::string other = directory_.path() / "other";
  const listener impatient(door_->watcher(), other, {.hello_timeout = 1ms});
  const auto stranger = test::spawn(1, [&](std::size_t) {
    const test::refused_calls scope("sendmsg", EPIPE);
    try {
      static_cast<void>(join(other, {.timeout = 100s}));
    } catch (const error& failure) {
      if (failure.code() == errc::timed_out &&
          std::string_view(failure.what()).find("hello_timeout") != std::string_view::npos)
        return 0;
      std::fprintf(stderr, "%s\n", failure.what());
    }
    return 1;
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
}

TEST_F(Stranger, WhoCannotBeSentTheFilesHearsSoAndKeepsNoNumber) {
  const test::shared<std::atomic<int>> step;
  const test::refused_calls full("sendmsg", ETOOMANYREFS, 1);  // the host's
  const auto stranger = test::spawn(1, [&](std::size_t) {
    detail::refused_calls = nullptr;
    const auto hear = [&](const unique_fd& socket) {
      return std::move(*detail::receive_message(socket.get(), detail::wait_mode::block));
    };
    for (const auto wanted : {detail::message_kind::refusal, detail::message_kind::joined}) {
      const auto socket = detail::connect_to(path_, 100s);
      detail::send_message(socket.get(), detail::message_kind::join, detail::body_of(greeting()));
      const auto answer = hear(socket);
      if (answer.kind != wanted) return 1;
      if (wanted == detail::message_kind::joined) return answer.read<detail::joined_message>().participant == 2 ? 0 : 2;
      if (hear(socket).kind != detail::message_kind::closed) return 3;
      *step = 1;
      if (!test::eventually([&] { return step->load() == 2; })) return 4;
    }
    return 5;
  });
  ASSERT_TRUE(test::eventually([&] { return step->load() == 1; }));
  EXPECT_TRUE(door_->guests().empty());
  EXPECT_EQ(domain_->participants().count(), 1U);
  *step = 2;
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
  expect_nobody_is_there();
}

TEST_F(Stranger, WhoCannotBeWatchedForWantOfDescriptorsHearsSo) {
  const test::refused_calls scope("getsockopt SO_PEERPIDFD", EMFILE);
  const auto stranger = test::spawn(1, [&](std::size_t) {
    const auto socket = detail::connect_to(path_, 100s);
    const auto answer = detail::receive_message(socket.get(), detail::wait_mode::block);
    if (!answer || answer->kind != detail::message_kind::refusal) return 1;
    return answer->read<error_info>().describe().find("SO_PEERPIDFD") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
}

// Both are there when the host looks: it hears the hello first, and cannot take back any more that time is over.
TEST_F(Stranger, WhoSaysHelloJustWhenItsTimeIsOverIsNotHungUpOn) {
  const std::string other = directory_.path() / "other";
  const listener impatient(door_->watcher(), other, {.hello_timeout = 1ns});
  const test::shared<std::atomic<bool>> said;
  std::unique_ptr<test::processes> stranger;
  door_->watcher()->internals().run_on_loop([&] {
    stranger = test::spawn(1, [&](std::size_t) {
      const auto socket = detail::connect_to(other, 100s);
      detail::send_message(socket.get(), detail::message_kind::join, detail::body_of(greeting()));
      *said = true;
      const auto answer = detail::receive_message(socket.get(), detail::wait_mode::block);
      if (!answer || answer->kind != detail::message_kind::joined) return 1;
      detail::send_message(socket.get(), detail::message_kind::list, detail::body_of(detail::list_message()));
      const auto names = detail::receive_message(socket.get(), detail::wait_mode::block);
      return names && names->kind == detail::message_kind::names ? 0 : 2;
    });
    EXPECT_TRUE(test::eventually([&] { return said->load(); }));
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
  EXPECT_TRUE(test::eventually([&] { return impatient.guests().empty(); }));
}

// All is there when the host looks: that the first leaves, the second, and the first one's end, whose event went to the
// second, who was dropped without a word.
TEST_F(Stranger, WhoComesWhileAnotherLeavesAndEndsIsLetIn) {
  const test::shared<std::atomic<int>> step;
  const auto until = [&](int wanted) { return test::eventually([&] { return step->load() == wanted; }); };
  const auto greet = [&](int socket) {
    detail::send_message(socket, detail::message_kind::join, detail::body_of(greeting()));
  };
  const auto first = test::spawn(1, [&](std::size_t) {
    const auto socket = detail::connect_to(path_, 100s);
    greet(socket.get());
    if (detail::receive_message(socket.get(), detail::wait_mode::block)->kind != detail::message_kind::joined) return 1;
    *step = 1;
    if (!until(2)) return 2;
    detail::send_message(socket.get(), detail::message_kind::leave, {});
    *step = 3;
    return until(4) ? 0 : 3;
  });
  ASSERT_TRUE(until(1));
  std::unique_ptr<test::processes> second;
  door_->watcher()->internals().run_on_loop([&] {
    *step = 2;
    EXPECT_TRUE(until(3));
    second = test::spawn(1, [&](std::size_t) {
      const auto socket = detail::connect_to(path_, 100s);
      greet(socket.get());
      *step = 4;
      const auto answer = detail::receive_message(socket.get(), detail::wait_mode::block);
      return answer && answer->kind == detail::message_kind::joined ? 0 : 1;
    });
    EXPECT_EQ(first->wait(0), exit_status::exited(0));
  });
  EXPECT_EQ(second->wait(0), exit_status::exited(0));
  expect_nobody_is_there();
}

// What follows its hello is none that anybody could read: `body` as a message of `kind`.
TEST_F(Stranger, WhoSendsBrokenQuestionsAfterItHasJoinedIsRefusedAndTheOthersGoOn) {
  const auto other = start("hold");
  done_.wait();
  const std::array bodies = {std::vector<std::byte>(), std::vector<std::byte>(1, std::byte{0xee}),
                             std::vector<std::byte>(100, std::byte{0xff}),
                             std::vector<std::byte>(60'000, std::byte{0x01})};
  for (const auto kind : {detail::message_kind::ask, detail::message_kind::list}) {
    for (const auto& body : bodies) {
      const auto stranger = test::spawn(1, [&](std::size_t) {
        const auto socket = detail::connect_to(path_, 100s);
        const auto answer_to = [&](detail::message_kind what, std::span<const std::byte> with) {
          detail::send_message(socket.get(), what, with);
          return detail::receive_message(socket.get(), detail::wait_mode::block)->kind;
        };
        if (answer_to(detail::message_kind::join, detail::body_of(greeting())) != detail::message_kind::joined)
          return 1;
        return answer_to(kind, body) == detail::message_kind::refusal ? 0 : 2;
      });
      EXPECT_EQ(stranger->wait(0), exit_status::exited(0)) << static_cast<unsigned>(kind) << ", " << body.size();
    }
  }
  EXPECT_TRUE(test::eventually([&] { return door_->guests().size() == 1; })) << "who holds";
  run("add");
}

TEST_F(Stranger, WhoAsksForWhatTheSystemHasNoMessagesForIsRefusedAndGoesOn) {
  door_->offer("long", std::string(10'000, 'x'));
  const test::refused_calls small("sendmsg", EMSGSIZE, 1, 1);  // the host's: it lets it in first
  const auto stranger = test::spawn(1, [&](std::size_t) {
    detail::refused_calls = nullptr;
    const auto host = join(path_);
    try {
      static_cast<void>(host.get<std::string>("long"));
      return 1;
    } catch (const error& failure) {
      if (failure.code() != errc::out_of_memory) return 2;
    }
    return host.get<std::string>("long").size() == 10'000 ? 0 : 3;
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
}

// While it asks, no more than a third of the answers have room.
TEST_F(Stranger, WhoReadsLateHearsTheAnswersToAllThatItHasAskedFor) {
  constexpr std::size_t many = 900;
  const auto stranger = test::spawn(1, [&](std::size_t) {
    const auto socket = detail::connect_to(path_, 100s);
    const auto hear = [&] { return detail::receive_message(socket.get(), detail::wait_mode::block)->kind; };
    detail::send_message(socket.get(), detail::message_kind::join, detail::body_of(greeting()));
    if (hear() != detail::message_kind::joined) return 1;
    const std::array questions = {detail::body_of(detail::ask_message{.name = "more", .type = "int"}),
                                  detail::body_of(detail::ask_message{.name = "nothing", .type = "int"})};
    const std::array answers = {detail::message_kind::found, detail::message_kind::refusal};
    for (std::size_t each = 0; each < many; ++each) {
      detail::send_message(socket.get(), detail::message_kind::ask, questions[each % 2]);
    }
    for (std::size_t each = 0; each < many; ++each) {
      if (hear() != answers[each % 2]) return 2;
    }
    return 0;
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
}

TEST_F(Stranger, OfAnotherUserIsTurnedAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  const auto stranger = test::spawn(1, [&](std::size_t) {
    if (::setresuid(65534, 65534, 65534) != 0) return 2;
    const auto answer =
        answer_to(path_, static_cast<std::uint32_t>(detail::message_kind::join), detail::body_of(greeting()));
    return answer.kind == detail::message_kind::refusal && answer.descriptors.empty() ? 0 : 1;
  });
  EXPECT_EQ(stranger->wait(0), exit_status::exited(0));
  EXPECT_TRUE(comes_to_be_logged("user 65534 may not join"));
  expect_nobody_is_there();
}

TEST_F(Stranger, AHostOfAnotherUserIsNotJoined) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  const std::string other = directory_.path() / "other";
  const test::shared<std::atomic<bool>> ready;
  const auto host = test::spawn(1, [&](std::size_t) {
    if (::setresuid(65534, 65534, 65534) != 0) return 2;
    const detail::listening_socket door(other);
    *ready = true;
    for (;;) ::pause();
  });
  ASSERT_TRUE(test::eventually([&] { return ready->load(); }));
  try {
    static_cast<void>(join(other));
    FAIL() << "joined";
  } catch (const error& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("is of user 65534"));
  }
}

TEST_F(Stranger, AHostThatDoesNotAnswerIsNotWaitedForForEver) {
  const std::string other = directory_.path() / "other";
  const detail::listening_socket silent(other);
  try {
    static_cast<void>(join(other, {.timeout = 10ms}));
    FAIL() << "joined";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::timed_out);
  }
}

TEST_F(Join, MoreThanTheDomainHasNumbersForAreRefused) {
  const std::string other = directory_.path() / "other";
  const auto watcher = std::make_shared<supervisor>(domain_options{.arena_bytes = 1 << 24, .max_participants = 3});
  const listener small(watcher, other, options());
  const auto first = test::spawn(1, [&](std::size_t) {
    const auto host = join(other);
    for (;;) ::pause();
    return 0;
  });
  ASSERT_TRUE(test::eventually([&] { return small.guests().size() == 1; }));
  const auto second = start_at(other, "join_and_leave");
  EXPECT_EQ(second->wait(0), exit_status::exited(99));
  EXPECT_TRUE(comes_to_be_logged("all numbers are taken"));
  first->kill(0);
  ASSERT_TRUE(test::eventually([&] { return small.guests().empty(); }));
  EXPECT_EQ(start_at(other, "join_and_leave")->wait(0), exit_status::exited(0));
}

// ---- the socket's file

TEST_F(Join, TheSocketIsForItsUserAndGoesWithTheListener) {
  struct stat found{};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  door_.reset();
  EXPECT_EQ(::stat(path_.c_str(), &found), -1);
  EXPECT_THROW(static_cast<void>(join(path_)), error);
}

TEST_F(Join, ASocketThatADeadListenerLeftIsReplaced) {
  const std::string other = directory_.path() / "other";
  const auto dead = test::spawn(1, [&](std::size_t) {
    new detail::listening_socket(other);
    return 0;
  });
  ASSERT_EQ(dead->wait(0), exit_status::exited(0));
  struct stat found{};
  ASSERT_EQ(::stat(other.c_str(), &found), 0);
  {
    const listener next(door_->watcher(), other);
  }
  EXPECT_EQ(::stat(other.c_str(), &found), -1);
  const std::filesystem::directory_iterator files(directory_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "nothing was left aside";
}

TEST_F(Join, APathWhereSomebodyListensIsRefused) {
  try {
    const listener second(path_);
    FAIL() << "two listen";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::invalid_argument);
    EXPECT_THAT(problem.what(), HasSubstr("a living process listens there"));
  }
  run("add");
}

TEST_F(Join, APathOfSomethingElseIsRefused) {
  directory_.write("file", "precious");
  EXPECT_THROW(const listener door(directory_.path() / "file"), error);
  std::string text;
  std::ifstream(directory_.path() / "file") >> text;
  EXPECT_EQ(text, "precious");
  EXPECT_THROW(const listener door(directory_.path() / std::string(120, 'x')), error);
  EXPECT_THROW(const listener door(directory_.path() / "no" / "such"), error);
}

TEST_F(Join, OfManyListenersAtOneStaleSocketOneWins) {
  const std::string other = directory_.path() / "other";
  for (int times = 0; times < 10; ++times) {
    const auto dead = test::spawn(1, [&](std::size_t) { return new detail::listening_socket(other), 0; });
    ASSERT_EQ(dead->wait(0), exit_status::exited(0));
    const test::shared<std::atomic<int>> outcomes;
    const test::shared<std::atomic<int>> winners;
    const auto rivals = test::spawn(4, [&](std::size_t) {
      try {
        const detail::listening_socket door(other);
        ++*winners;
        ++*outcomes;
        for (;;) ::pause();
      } catch (const error&) {
        ++*outcomes;
      }
      return 0;
    });
    ASSERT_TRUE(test::eventually([&] { return *outcomes == 4; }));
    EXPECT_EQ(*winners, 1);
  }
}

TEST_F(Join, ALongPathIsListenedAt) {
  const auto folder = directory_.path().native() + '/';
  const std::string longest = folder + std::string(sizeof(sockaddr_un::sun_path) - 1 - folder.size(), 'x');
  const detail::listening_socket door(longest);
  EXPECT_TRUE(std::filesystem::exists(longest));
}

// What it has bound and does not listen at yet is not taken for deserted.
TEST_F(Join, WhileAnotherBeginsToListenItsSocketIsLeftAlone) {
  const auto other = directory_.path() / "other";
  const auto bound = [&](std::string name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, name.size());
    unique_fd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(made.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    return made;
  };
  struct stat folder{};
  ASSERT_EQ(::stat(directory_.path().c_str(), &folder), 0);
  auto turn = bound(std::string(1, '\0') + text("muster.listen.", folder.st_dev, '.', folder.st_ino, ".other"));
  const auto begun = bound(other.native());
  try {
    const detail::listening_socket door(other);
    ADD_FAILURE() << "two listen";
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::invalid_argument);
    EXPECT_THAT(problem.what(), HasSubstr("just beginning"));
  }
  EXPECT_TRUE(std::filesystem::exists(other));
  turn.reset();
  const detail::listening_socket door(other);  // its owner is dead, as far as anybody can tell
}

TEST_F(Join, AForkedChildMayDestroyItsCopyOfTheListener) {
  const auto child = test::spawn(1, [&](std::size_t) { return door_.reset(), 0; });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  run("add");
}

}  // namespace
}  // namespace muster::join_test
