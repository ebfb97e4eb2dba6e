// SPDX-License-Identifier: BSL-1.0
// Every line of code of docs/services.md, as it stands there; and that none is missing here.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>

#include "page.hpp"
#include "processes.hpp"
#include "waiting_tasks.hpp"

namespace muster::services_page_test {

namespace {

int square(int x) { return x * x; }

const event* under_way = nullptr;
const event* may_end = nullptr;
std::optional<future<bool>> accepted;

// One request, and everybody is told to end while it runs.
void accept_requests(muster::pool& pool, boost::asio::io_context& loop) {
  accepted = pool.apply_async(test::run_until, *under_way, *may_end);
  boost::asio::post(loop, [&pool] {
    under_way->wait();
    for (const auto& each : pool.workers()) ::kill(each.pid, SIGTERM);
    ::kill(::getpid(), SIGTERM);
    may_end->set();
  });
}

// clang-format off
void serve(muster::pool& pool, boost::asio::io_context& loop) {
  boost::asio::signal_set signals(loop, SIGTERM, SIGINT);
  signals.async_wait([&](const boost::system::error_code&, int) { loop.stop(); });
  accept_requests(pool, loop);
  loop.run();                            // until somebody says that it is enough
  pool.drain(std::chrono::seconds(20));  // what was accepted finishes
}
// clang-format on

TEST(ServicesPage, WhatWasAcceptedFinishesThoughAllProcessesAreToldToEnd) {
  const event began;
  const event end;
  under_way = &began;
  may_end = &end;
  pool pool({.workers = 2});
  boost::asio::io_context loop;
  serve(pool, loop);
  EXPECT_FALSE(accepted->get()) << "nobody has asked it to stop";
  accepted.reset();
}

TEST(ServicesPage, Starting) {
  const auto child = test::spawn(1, [](std::size_t) {
    muster::init(0, nullptr);
    return muster::pool({.workers = 1}).apply(square, 3) == 9 ? 0 : 1;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
  muster::pool early({.workers = 2, .wait_for_start = false});
  early.started().get();
  muster::pool patient({.workers = 2, .start_patience = std::chrono::minutes(1)});
  EXPECT_EQ(patient.apply(square, 3), 9);
}

// The test program's main begins with it:
[[maybe_unused]] void begin(int argc, char** argv) { muster::init(argc, argv); }

TEST(ServicesPage, SourcesThatMakeWait) {
  const muster::pool pool({.workers = 2});
  std::vector<int> seen;
  auto squares = pool.feed<int>(square);
  squares.push(3);
  squares.close();
  for (int each : squares) seen.push_back(each);
  int given = 0;
  const auto next = [&]() -> std::optional<int> { return given < 2 ? std::optional(given++) : std::nullopt; };
  for (int each : pool.imap(square, next)) seen.push_back(each);
  given = 0;
  for (int each : pool.imap(square, muster::slow(next))) seen.push_back(each);
  const auto doubled = std::views::iota(2, 4) | std::views::transform([](int x) { return 2 * x; });
  for (int each : pool.imap(square, muster::quick(doubled))) seen.push_back(each);
  EXPECT_EQ(seen, (std::vector{9, 0, 1, 0, 1, 16, 36}));
}

TEST(ServicesPage, Bounds) {
  muster::pool bounded({.workers = 2, .max_pending = 1000, .overflow = muster::overflow_policy::fail_task});
  EXPECT_EQ(bounded.with({.deadline = std::chrono::minutes(1)}).apply(square, 3), 9);
  EXPECT_EQ(bounded.with({.timeout = std::chrono::minutes(1)}).apply(square, 3), 9);
  const auto kept = bounded.stats().memory.warm_bytes;
  EXPECT_LE(kept, muster::domain::of_program()->blocks().size_bytes());
  muster::pool small({.workers = 2, .worker_memory = std::size_t{8} << 30U});
  EXPECT_EQ(small.apply(square, 3), 9);
}

int fork_in_a_task() {
  if (::fork() == 0) ::_exit(0);
  return std::system("true");
}

void to_journal(log_level, std::string_view) {}

struct picture {
  std::array<std::array<float, 1000>, 1000> rows;
};
std::size_t width(const std::unique_ptr<picture>& given) { return given->rows[0].size(); }

TEST(ServicesPage, ProcessorsAndMemory) {
  const auto kept = muster::domain::of_program({.inherited = true});
  muster::pool here({.pin = muster::pinning::as_caller()});
  EXPECT_EQ(here.apply(square, 3), 9);
}

TEST(ServicesPage, ForksRightsCallbacks) {
  ::setenv("LEVEL", "2", 1);
  muster::pool noted({.workers = 2, .log = to_journal});
  ::setenv("LEVEL", "3", 1);
  const auto level = [] { return std::string(::getenv("LEVEL")); };
  EXPECT_EQ(noted.apply(level), "2");
  EXPECT_EQ(noted.apply(fork_in_a_task), 0);
  const auto& pool = noted;
  EXPECT_EQ(pool.apply_async(square, 3).then([&](int nine) { return pool.apply_async(square, nine).get(); }).get(), 81);
  EXPECT_EQ(pool.with({.timeout = std::chrono::nanoseconds::max()}).apply(square, 3), 9);
  const muster::thread_pool threads({.workers = 1});
  std::vector<muster::future<int>> both;
  both.push_back(pool.apply_async(square, 3));
  both.push_back(threads.apply_async(square, 4));
  int sum = 0;
  for (auto& each : muster::as_completed(both)) sum += each.get();
  EXPECT_EQ(sum, 25);
  static_assert(muster::transportable<std::vector<int>>);
  EXPECT_EQ(pool.apply(width, std::make_unique<picture>()), 1000U);
}

int write_to_nobody(int rows) {
  std::printf("%d rows\n", rows);
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  ::close(ends[0]);
  const auto failed = ::write(ends[1], "x", 1) == -1 ? errno : 0;
  ::close(ends[1]);
  return failed;
}

TEST(ServicesPage, WhatWorkersTakeFromTheProgram) {
  const auto child = test::spawn(1, [](std::size_t) {
    ::umask(0077);
    ::signal(SIGPIPE, SIG_IGN);
    muster::pool_options options{.workers = 1};
    // clang-format off
    options.ignored_signals = {SIGUSR2};
    // clang-format on
    boost::asio::io_context loop;
    loop.notify_fork(boost::asio::io_context::fork_child);
    muster::init(0, nullptr);
    return muster::pool(options).apply(write_to_nobody, 3) == EPIPE ? 0 : 1;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
}

// As whoever it is already, which everybody may.
TEST(ServicesPage, UserAndGroupAreSetBeforePoolsAreMade) {
  const auto child = test::spawn(1, [](std::size_t) {
    if (const auto user = ::getegid(); ::setresgid(user, user, user) != 0) return 1;
    if (const auto user = ::geteuid(); ::setresuid(user, user, user) != 0) return 2;
    muster::init(0, nullptr);
    return muster::pool({.workers = 1}).apply(square, 3) == 9 ? 0 : 3;
  });
  EXPECT_EQ(child->wait(0), exit_status::exited(0));
}

TEST(ServicesPage, IsAllHere) {
  test::expect_compiled(MUSTER_DOCS "services.md", __FILE__, 28);
  test::expect_blocks_compiled(MUSTER_DOCS "services.md", __FILE__, 1);
}

}  // namespace
}  // namespace muster::services_page_test
