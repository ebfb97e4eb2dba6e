// SPDX-License-Identifier: BSL-1.0
// Calls as asynchronous operations of Boost.Asio.
#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <muster/async/asio.hpp>
#include <muster/queue/event.hpp>
#include <muster/rpc.hpp>

namespace muster::rpc_asio_test {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using boost::asio::use_awaitable;

int add(int a, int b) { return a + b; }
int fail() { throw std::invalid_argument("a wrong number"); }

/// Two members in this process, and a loop.
struct two_members {
  rpc_ticket ticket{"asio", {"a", "b"}, {.timeout = 60s}};
  rpc_group a{ticket, "a"};
  rpc_group b{ticket, "b"};
  boost::asio::io_context loop;

  auto run(awaitable<int> what) {
    auto found = boost::asio::co_spawn(loop, std::move(what), boost::asio::use_future);
    loop.run();
    return found.get();
  }
};

TEST(RpcAsio, CallsAreAwaited) {
  two_members here;
  here.b.serve("double", [](int number) { return 2 * number; });
  const auto far = here.a.remote("b", add, 20, 20);
  const auto all = [&]() -> awaitable<int> {
    const int three = co_await here.a.call_async("b", add, 1, 2)(use_awaitable);
    const int six = co_await here.a.service<int(int)>("double").call_async(three)(use_awaitable);
    co_return six + co_await far.call_async([](int& value) { return value; })(use_awaitable);
  };
  EXPECT_EQ(here.run(all()), 46);
}

TEST(RpcAsio, AHandlerRunsOnItsLoop) {
  two_members here;
  std::thread::id ran;
  int got = 0;
  here.a.call_async("b", add, 1, 2)(boost::asio::bind_executor(here.loop, [&](std::exception_ptr, int three) {
    ran = std::this_thread::get_id();
    got = three;
  }));
  here.loop.run();
  EXPECT_EQ(got, 3);
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(RpcAsio, AFailureIsThrownOrData) {
  two_members here;
  const auto both = [&]() -> awaitable<int> {
    const auto what = co_await here.a.call_async("b", fail).as_result(use_awaitable);
    EXPECT_FALSE(what.has_value());
    co_return co_await here.a.call_async("b", fail)(use_awaitable);
  };
  EXPECT_THROW(here.run(both()), std::invalid_argument);
}

TEST(RpcAsio, TerminalCancellationEndsTheCallAndNoMember) {
  two_members here;
  const event has_begun;
  std::atomic<bool> has_stopped = false;
  here.b.serve("wait", [&] {
    has_begun.set();
    while (!this_call::stop_requested()) std::this_thread::yield();
    has_stopped = true;
  });
  boost::asio::cancellation_signal stop;
  std::exception_ptr why;
  here.a.service<void()>("wait").call_async()(boost::asio::bind_cancellation_slot(
      stop.slot(), boost::asio::bind_executor(here.loop, [&](std::exception_ptr failure) { why = failure; })));
  has_begun.wait();
  stop.emit(boost::asio::cancellation_type::terminal);
  here.loop.run();
  EXPECT_THROW(std::rethrow_exception(why), std::exception);
  EXPECT_EQ(here.a.call("b", add, 1, 2), 3) << "behind it, at the same thread";
  EXPECT_TRUE(has_stopped);
}

}  // namespace
}  // namespace muster::rpc_asio_test
