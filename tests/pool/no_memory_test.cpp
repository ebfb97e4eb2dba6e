// SPDX-License-Identifier: BSL-1.0
// Each allocation of each call fails once, on the caller's thread, on the supervisor's, and on the library's others.
// Then a call throws without an effect, or what it has accepted ends and is told of once. Nothing ends the program.
#include <array>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <muster/async/std_future.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/pool/async.hpp>
#include <muster/pool/ctx_pool.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>

#include "allocations.hpp"

namespace muster::no_memory_test {
namespace {

using namespace std::chrono_literals;
using test::allocating_threads;

constexpr std::string_view long_text = "a text that is far too long to have its place inside of a string object";

int twice(int x) { return 2 * x; }
std::string echo(const std::string& x) { return x; }
std::string fail(int /*unused*/) { throw std::runtime_error(std::string(long_text)); }
int die(int /*unused*/) { ::_exit(3); }

/// The ends that callbacks were registered for, and those that were told.
///
/// Thread safety: safe.
class ends {
public:
  /// Makes a call that registers one callback.
  template <class Call>
  void registers(const Call& call) {
    try {
      call();
    } catch (const std::bad_alloc&) {
      return;
    } catch (const error&) {  // a pool that is broken; or no shared memory
      return;
    }
    const scoped_lock lock(mutex_);
    ++registered_;
  }
  void note() noexcept {
    const scoped_lock lock(mutex_);
    ++told_;
    changed_.notify_all();
  }
  /// Whether as many were told as were registered, and no more.
  [[nodiscard]] bool all_are_told() {
    scoped_lock lock(mutex_);
    while (told_ < registered_) changed_.wait(lock);
    return told_ == registered_;
  }

  [[nodiscard]] auto on_value() {
    return [this](auto&&...) { note(); };
  }
  [[nodiscard]] auto on_error() {
    return [this](const error_info&) { note(); };
  }

private:
  mutex mutex_;
  condition changed_;
  int registered_ MUSTER_GUARDED_BY(mutex_) = 0;
  int told_ MUSTER_GUARDED_BY(mutex_) = 0;
};

// Whatever the call throws: what counts is that it returns.
template <class Call>
void tries(const Call& call) {
  try {
    call();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

template <class Pool>
std::unique_ptr<Pool> make_pool() {
  const auto quiet = [](log_level, std::string_view) {};
  if constexpr (std::is_same_v<Pool, pool>) {
    return std::make_unique<pool>(pool_options{.workers = 2, .quarantine_after = 0, .log = quiet});
  } else {
    return std::make_unique<thread_pool>(thread_pool_options{.workers = 2, .log = quiet});
  }
}

template <class Pool>
bool is_broken(Pool& p) {
  try {
    return p.apply(twice, 1) != 2;
  } catch (const error&) {
    return true;
  }
}

template <class Pool, class Scenario>
void fail_each(allocating_threads of, const Scenario& scenario) {
  auto p = make_pool<Pool>();
  bool some = true;
  for (std::size_t index = 0; some; ++index) {
    SCOPED_TRACE(index);
    ends all;
    {
      const test::failing_allocation scope(of, index);
      tries([&] { scenario(*p, all); });
      EXPECT_TRUE(all.all_are_told());
      some = scope.has_failed();
    }
    if (is_broken(*p)) p = make_pool<Pool>();
    ASSERT_LT(index, 20000U);
  }
  p->drain();
  EXPECT_EQ(p->stats().pending, 0U);
}

constexpr std::array<allocating_threads, 3> all_threads = {allocating_threads::caller, allocating_threads::supervisor,
                                                           allocating_threads::others};

template <class Pool>
class NoMemory : public testing::Test {
protected:
  template <class Scenario>
  void fail_each_on_all_threads(const Scenario& scenario) {
    for (const auto of : all_threads) {
      SCOPED_TRACE(static_cast<int>(of));
      fail_each<Pool>(of, scenario);
    }
  }
};
using pools = testing::Types<pool, thread_pool>;
TYPED_TEST_SUITE(NoMemory, pools);

TYPED_TEST(NoMemory, ForASingleCall) {
  this->fail_each_on_all_threads([](auto& p, ends&) {
    tries([&] { static_cast<void>(p.apply(twice, 1)); });
    tries([&] { static_cast<void>(p.apply(echo, std::string(long_text))); });
    tries([&] { static_cast<void>(p.apply(fail, 1)); });
    tries([&] { static_cast<void>(p.with({.retries = 1, .label = long_text}).apply(twice, 1)); });
  });
}

TYPED_TEST(NoMemory, ForAFutureThatIsDropped) {
  this->fail_each_on_all_threads([](auto& p, ends&) {
    tries([&] { static_cast<void>(p.apply_async(echo, std::string(long_text))); });
    tries([&] { p.apply_async(fail, 1).cancel(); });
  });
}

TYPED_TEST(NoMemory, ForACallback) {
  this->fail_each_on_all_threads([](auto& p, ends& all) {
    all.registers([&] { p.apply_async(twice, 1).on_complete(all.on_value(), all.on_error()); });
    all.registers([&] { p.apply_async(echo, std::string(long_text)).on_complete(all.on_value(), all.on_error()); });
    all.registers([&] { p.apply_async(fail, 1).on_complete(all.on_value(), all.on_error()); });
  });
}

TYPED_TEST(NoMemory, ForThen) {
  this->fail_each_on_all_threads([](auto& p, ends& all) {
    all.registers([&] { p.apply_async(twice, 1).then(twice).on_complete(all.on_value(), all.on_error()); });
    tries([&] {
      static_cast<void>(p.apply_async(echo, std::string(long_text)).then([](std::string text) { return text; }).get());
    });
    tries([&] { p.apply_async(fail, 1).then([](const std::string& text) { return text; }).wait(); });
    tries([&] { p.apply_async(twice, 1).std().wait(); });
  });
}

TYPED_TEST(NoMemory, ForCombinedFutures) {
  this->fail_each_on_all_threads([](auto& p, ends& all) {
    const auto some = [&] {
      std::vector<future<int>> made;
      for (int each = 0; each < 3; ++each) made.push_back(p.apply_async(twice, each));
      return made;
    };
    all.registers([&] { when_all(some()).on_complete(all.on_value(), all.on_error()); });
    all.registers([&] { when_any(some()).on_complete(all.on_value(), all.on_error()); });
    all.registers(
        [&] { when_all(p.apply_async(twice, 1), p.apply_async(fail, 1)).on_complete(all.on_value(), all.on_error()); });
    tries([&] {
      for (auto& each : as_completed(some())) each.wait();
    });
  });
}

TYPED_TEST(NoMemory, ForACallThatWaitsForItsArguments) {
  this->fail_each_on_all_threads([](auto& p, ends& all) {
    all.registers([&] { p.apply_async(twice, p.apply_async(twice, 1)).on_complete(all.on_value(), all.on_error()); });
    tries([&] { p.apply_async(echo, p.apply_async(fail, 1)).wait(); });
  });
}

TYPED_TEST(NoMemory, ForAMap) {
  const std::vector<int> numbers(50, 1);
  const std::vector<std::string> texts(20, std::string(long_text));
  this->fail_each_on_all_threads([&](auto& p, ends& all) {
    all.registers([&] { p.map_async(twice, numbers).on_complete(all.on_value(), all.on_error()); });
    all.registers([&] { p.map_async(fail, numbers).on_complete(all.on_value(), all.on_error()); });
    all.registers([&] { p.collect_errors().map_async(fail, numbers).on_complete(all.on_value(), all.on_error()); });
    tries([&] { static_cast<void>(p.map(echo, texts)); });
    tries([&] { p.map_async(echo, texts).cancel(); });
  });
}

TYPED_TEST(NoMemory, ForAStream) {
  const std::vector<int> numbers(20, 1);
  this->fail_each_on_all_threads([&](auto& p, ends&) {
    const auto take_all = [](auto results) {
      for (int more = 0; more < 40; ++more) {
        tries([&] {
          while (results.next()) continue;
          more = 40;
        });
      }
    };
    tries([&] { take_all(p.imap(twice, numbers)); });
    tries([&] { take_all(p.imap_unordered(twice, numbers)); });
    tries([&] { take_all(p.imap(twice, slow(numbers))); });
    tries([&] { take_all(p.imap(fail, numbers | std::views::filter([](int) { return true; }))); });
  });
}

TYPED_TEST(NoMemory, ForAFeed) {
  this->fail_each_on_all_threads([](auto& p, ends&) {
    tries([&] {
      auto results = p.template feed<int>(twice);
      for (int each = 0; each < 5; ++each) tries([&] { results.push(each); });
      results.close();
      for (int each = 0; each < 5; ++each) {
        tries([&] {
          while (results.next()) continue;
        });
      }
    });
  });
}

TYPED_TEST(NoMemory, ForAHandlerOfAsio) {
  boost::asio::io_context loop;
  this->fail_each_on_all_threads([&](auto& p, ends& all) {
    const auto handler = [&] { return [&all](auto&&...) { all.note(); }; };
    all.registers([&] { p.apply_async(twice, 1)(handler()); });
    all.registers([&] { p.apply_async(fail, 1).as_result(boost::asio::bind_executor(loop, handler())); });
    all.registers(
        [&] { p.map_async(twice, std::vector<int>(5, 1)).as_result(boost::asio::bind_executor(loop, handler())); });
    all.registers([&] {
      p.apply_async(twice, 1)(boost::asio::bind_executor(boost::asio::any_io_executor(loop.get_executor()), handler()));
    });
    loop.restart();
    for (bool again = true; again;) {
      again = false;
      try {
        loop.run();
      } catch (const std::exception&) {
        again = true;
      }
    }
  });
}

TEST(NoMemoryInAPoolOfProcesses, ForADeath) {
  for (const auto of : {allocating_threads::caller, allocating_threads::others}) {
    SCOPED_TRACE(static_cast<int>(of));
    fail_each<pool>(of, [](pool& p, ends& all) {
      all.registers([&] { p.apply_async(die, 1).on_complete(all.on_value(), all.on_error()); });
      tries([&] { static_cast<void>(p.with({.label = long_text}).apply(die, 1)); });
      all.registers([&] { p.map_async(die, std::vector<int>(2, 1)).on_complete(all.on_value(), all.on_error()); });
    });
  }
}

TEST(NoMemoryInAPoolOfProcesses, ForADeathOnTheSupervisor) {
  fail_each<pool>(allocating_threads::supervisor, [](pool& p, ends& all) {
    all.registers([&] { p.apply_async(die, 1).on_complete(all.on_value(), all.on_error()); });
    all.registers([&] { p.apply_async(twice, 1).on_complete(all.on_value(), all.on_error()); });
  });
}

TEST(NoMemoryInAPoolOfProcesses, ForTimeoutsDeadlinesAndRetries) {
  for (const auto of : all_threads) {
    SCOPED_TRACE(static_cast<int>(of));
    fail_each<pool>(of, [](pool& p, ends& all) {
      const auto sleep = [] { ::pause(); };
      all.registers([&] { p.with({.timeout = 1ms}).apply_async(sleep).on_complete(all.on_value(), all.on_error()); });
      all.registers([&] {
        p.with({.retries = 1, .retry_on = retry::exceptions<std::runtime_error>(), .retry_delay = 1ms})
            .apply_async(fail, 1)
            .on_complete(all.on_value(), all.on_error());
      });
      all.registers([&] {
        auto cancelled = p.apply_async(sleep);
        tries([&] { cancelled.cancel(cancellation::kill); });
        tries([&] { cancelled.cancel(cancellation::kill); });
        cancelled.on_complete(all.on_value(), all.on_error());
      });
    });
  }
}

class NoMemoryOfAPool : public testing::TestWithParam<allocating_threads> {};

TEST_P(NoMemoryOfAPool, ForItsBeginningItsSizesAndItsEnd) {
  bool some = true;
  for (std::size_t index = 0; some; ++index) {
    SCOPED_TRACE(index);
    ends all;
    const test::failing_allocation scope(GetParam(), index);
    tries([&] {
      pool p({.workers = 1, .log = [](log_level, std::string_view) {}});
      all.registers([&] { p.apply_async(twice, 1).on_complete(all.on_value(), all.on_error()); });
      all.registers([&] { p.resize_async(2).on_complete(all.on_value(), all.on_error()); });
      all.registers([&] { p.apply_async([] { ::pause(); }).on_complete(all.on_value(), all.on_error()); });
      all.registers([&] { p.started().on_complete(all.on_value(), all.on_error()); });
      all.registers([&] { p.drain_async().on_complete(all.on_value(), all.on_error()); });
    });
    EXPECT_TRUE(all.all_are_told());
    some = scope.has_failed();
    ASSERT_LT(index, 20000U);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, NoMemoryOfAPool, testing::ValuesIn(all_threads), [](const auto& which) {
  return which.param == allocating_threads::caller       ? "Caller"
         : which.param == allocating_threads::supervisor ? "Supervisor"
                                                         : "Others";
});

TEST(NoMemoryInAPoolOfThreads, ForATaskThatIsWithdrawn) {
  thread_pool p({.workers = 1});
  bool some = true;
  for (std::size_t index = 0; some; ++index) {
    std::promise<void> over;
    auto busy = p.apply_async([until = over.get_future().share()] { until.wait(); });
    auto waits = p.apply_async(twice, 1);
    {
      const test::failing_allocation scope(allocating_threads::caller, index);
      tries([&] { EXPECT_TRUE(waits.cancel()); });
      some = scope.has_failed();
    }
    over.set_value();
    busy.get();
    EXPECT_FALSE(waits.get_result().has_value());  // cancelled, or without memory to say so
    ASSERT_LT(index, 20000U);
  }
  p.drain();
  EXPECT_EQ(p.stats().pending, 0U);
}

}  // namespace
}  // namespace muster::no_memory_test
