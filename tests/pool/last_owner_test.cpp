// SPDX-License-Identifier: BSL-1.0
// What the program has given is called and destroyed on threads that may do so, and a pool may have its last owner
// anywhere.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include <muster/async/std_future.hpp>
#include <muster/pool/async.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/serial_pool.hpp>
#include <muster/pool/thread_pool.hpp>

namespace muster::last_owner_test {
namespace {

int twice(int x) { return 2 * x; }

std::string name_of_this_thread() {
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return name.data();
}

/// Says in which thread it was destroyed, if that was the supervisor.
class watched {
public:
  explicit watched(std::atomic<int>& on_supervisor) : on_supervisor_(&on_supervisor) {}
  watched(const watched&) = default;
  watched& operator=(const watched&) = default;
  ~watched() {
    if (name_of_this_thread() == "muster") on_supervisor_->fetch_add(1);
  }

private:
  std::atomic<int>* on_supervisor_;
};

/// Waits until the last owner of what it gave is gone.
template <class Pool>
class end_of_pool {
public:
  explicit end_of_pool(std::function<std::unique_ptr<Pool>()> make) {
    pool_ = std::shared_ptr<Pool>(make().release(), [gone = gone_](Pool* last) {
      delete last;
      gone->set_value();
    });
  }
  [[nodiscard]] std::shared_ptr<Pool> take() { return std::move(pool_); }
  void wait() { end_.wait(); }

private:
  std::shared_ptr<std::promise<void>> gone_ = std::make_shared<std::promise<void>>();
  std::future<void> end_ = gone_->get_future();
  std::shared_ptr<Pool> pool_;
};

constexpr int rounds = 200;  // a callback that is faster than the thread that posts it is rare

template <class Pool>
std::unique_ptr<Pool> make_pool() {
  if constexpr (std::is_same_v<Pool, pool>) {
    return std::make_unique<pool>(pool_options{.workers = 1});
  } else {
    return std::make_unique<thread_pool>(thread_pool_options{.workers = 2});
  }
}

template <class Pool>
class LastOwner : public testing::Test {};
using pools = testing::Types<pool, thread_pool>;
TYPED_TEST_SUITE(LastOwner, pools);

TYPED_TEST(LastOwner, IsACallbackAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<TypeParam> end(make_pool<TypeParam>);
    auto p = end.take();
    p->apply_async(twice, 1).on_complete([p](int) {}, [p](const error_info&) {});
    p.reset();
    end.wait();
  }
}

TYPED_TEST(LastOwner, IsWhatThenWasGivenOrGaveAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<TypeParam> end(make_pool<TypeParam>);
    auto p = end.take();
    static_cast<void>(p->apply_async(twice, 1).then([p](int) { return p; }));
    p.reset();
    end.wait();
  }
}

TYPED_TEST(LastOwner, IsAValueThatNobodyTakesAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<TypeParam> end(make_pool<TypeParam>);
    auto p = end.take();
    static_cast<void>(p->apply_async(twice, 1).then([p](int) { return p; }).std());
    p.reset();
    end.wait();
  }
}

TYPED_TEST(LastOwner, IsACallbackOfWhenAllAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<TypeParam> end(make_pool<TypeParam>);
    auto p = end.take();
    std::vector<future<int>> all;
    for (int each = 0; each < 3; ++each) all.push_back(p->apply_async(twice, each));
    when_all(std::move(all)).on_complete([p](const std::vector<int>&) {}, [p](const error_info&) {});
    p.reset();
    end.wait();
  }
}

TYPED_TEST(LastOwner, IsACallbackOfAMapAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<TypeParam> end(make_pool<TypeParam>);
    auto p = end.take();
    p->map_async(twice, std::vector<int>{1, 2, 3})
        .on_complete([p](const std::vector<int>&) {}, [p](const error_info&) {});
    p.reset();
    end.wait();
  }
}

TYPED_TEST(LastOwner, IsAnArgumentOfACallThatWaitsAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<TypeParam> end(make_pool<TypeParam>);
    auto p = end.take();
    auto first = p->apply_async(twice, 1).then([p](int x) { return x; });
    p->apply_async(twice, std::move(first)).on_complete([p](int) {}, [p](const error_info&) {});
    p.reset();
    end.wait();
  }
}

TYPED_TEST(LastOwner, IsAHandlerOfAsioAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<TypeParam> end(make_pool<TypeParam>);
    auto p = end.take();
    p->apply_async(twice, 1)([p](const std::exception_ptr&, int) {});
    p.reset();
    end.wait();
  }
}

TEST(LastOwnerOnALoop, IsACallbackThereAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    boost::asio::io_context loop;
    auto p = std::make_shared<pool>(loop, pool_options{.workers = 1});
    bool ran = false;
    p->apply_async(twice, 1).on_complete([p, &ran](int) { ran = true; }, [p](const error_info&) {});
    p->apply_async(twice, 1)([p](const std::exception_ptr&, int) {});
    p.reset();
    loop.run();
    EXPECT_TRUE(ran);
  }
}

TEST(LastOwnerInAThread, IsATaskOfItsOwnAndThePoolEnds) {
  for (int round = 0; round < rounds; ++round) {
    end_of_pool<thread_pool> end(make_pool<thread_pool>);
    auto p = end.take();
    std::promise<void> only_owner;
    static_cast<void>(p->apply_async([p, alone = only_owner.get_future().share()] { alone.wait(); }));
    p.reset();
    only_owner.set_value();
    end.wait();
  }
}

TEST(LastOwnerInAThread, TasksThatWaitWhenATaskDestroysThePoolStillRun) {
  std::atomic<int> runs = 0;
  std::promise<void> all_ran;
  {
    auto p =
        std::make_shared<thread_pool>(thread_pool_options{.workers = 1, .destructor_grace = std::chrono::hours(1)});
    std::promise<void> posted;
    static_cast<void>(p->apply_async([p, all = posted.get_future().share()]() mutable {
      all.wait();
      p.reset();
    }));
    for (int each = 0; each < 10; ++each) {
      static_cast<void>(p->apply_async([&] {
        if (++runs == 10) all_ran.set_value();
      }));
    }
    p.reset();
    posted.set_value();
  }
  all_ran.get_future().wait();
  EXPECT_EQ(runs, 10);
}

TEST(LastOwnerInAThread, IsATaskOfASerialPoolInsideOfOneAndThePoolEnds) {
  end_of_pool<thread_pool> end(make_pool<thread_pool>);
  auto p = end.take();
  std::promise<void> only_owner;
  static_cast<void>(p->apply_async([p, alone = only_owner.get_future().share()]() mutable {
    alone.wait();
    serial_pool inside;
    inside.apply([&] { p.reset(); });
  }));
  p.reset();
  only_owner.set_value();
  end.wait();
}

TEST(LastOwnerInAThread, AFeedThatItsOwnElementDestroysDoesNotWaitForIt) {
  thread_pool p({.workers = 2});
  using feed = decltype(p.feed<int>(std::function<int(int)>()));
  auto held = std::make_shared<std::optional<feed>>();
  std::promise<void> only_owner;
  std::promise<void> ended;
  auto f = [weak = std::weak_ptr(held), kept = std::make_shared<std::shared_ptr<std::optional<feed>>>(held),
            alone = only_owner.get_future().share(), &ended](int x) {
    alone.wait();
    kept->reset();
    ended.set_value();
    return x;
  };
  held->emplace(p.feed<int>(f));
  EXPECT_TRUE((*held)->push(1));
  held.reset();
  only_owner.set_value();
  ended.get_future().wait();
}

TEST(Supervisor, DestroysNothingThatTheProgramHasGiven) {
  std::atomic<int> on_supervisor = 0;
  constexpr int count = 5000;
  std::atomic<int> ended = 0;
  {
    pool p({.workers = 2});
    for (int each = 0; each < count; ++each) {
      const watched given(on_supervisor);
      p.apply_async(twice, each).on_complete([given, &ended](int) { ++ended; }, [given](const error_info&) {});
      static_cast<void>(p.apply_async(twice, each).then([given](int) { return given; }));
      p.apply_async(twice, each)([given](const std::exception_ptr&, int) {});
    }
    auto map = p.map_async(twice, std::vector<int>(100, 1));
    map.on_complete([given = watched(on_supervisor)](const std::vector<int>&) {}, [](const error_info&) {});
    p.drain();
  }
  EXPECT_EQ(on_supervisor, 0);
}

TEST(Supervisor, DestroysNothingThatTheProgramHasGivenWhenWorkersDie) {
  std::atomic<int> on_supervisor = 0;
  {
    pool p({.workers = 2});
    for (int each = 0; each < 20; ++each) {
      const watched given(on_supervisor);
      p.apply_async([] { ::_exit(1); }).on_complete([given] {}, [given](const error_info&) {});
      static_cast<void>(p.apply_async(twice, 1).then([given](int) { return given; }));
    }
    p.drain();
  }
  EXPECT_EQ(on_supervisor, 0);
}

}  // namespace
}  // namespace muster::last_owner_test
