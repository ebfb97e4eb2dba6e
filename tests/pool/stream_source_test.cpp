// SPDX-License-Identifier: BSL-1.0
// What streams are made of: when they ask an input that makes wait, and how long they have patience with a result.
#include <muster/pool/detail/stream_source.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/pool/detail/local_stream.hpp>
#include <muster/pool/detail/stream_engine.hpp>
#include <muster/pool/detail/task_stream.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/thread_pool.hpp>

#include "waiting_tasks.hpp"

namespace muster::detail::stream_source_test {
namespace {

using namespace std::chrono_literals;

int square(int x) { return x * x; }

/// An input that says how long its elements took.
struct timed_input {
  static constexpr bool may_be_slow = true;

  template <class Take>
  bool next(input_pace& pace, const Take& take) {
    pace.observe(takes);
    take((*asked)++);
    return true;
  }

  std::shared_ptr<int> asked = std::make_shared<int>(0);
  std::chrono::nanoseconds takes = 100h;
};

/// Tasks that end when the test says so.
struct pending_tasks {
  future<int> operator()(int /*element*/) const {
    states->push_back(std::make_shared<local_state<int>>());
    return future_access::of_source<int>(home, states->back());
  }
  void finish(std::size_t which, int value) const { (*states)[which]->complete(outcome<int>::of_value(value)); }

  std::shared_ptr<future_home> home;
  std::shared_ptr<std::vector<std::shared_ptr<local_state<int>>>> states =
      std::make_shared<std::vector<std::shared_ptr<local_state<int>>>>();
};

struct ordered {
  static auto make(const timed_input& input, const pending_tasks& tasks, std::size_t window) {
    return std::make_unique<task_stream<int, timed_input, pending_tasks>>(tasks.home, input, tasks, window);
  }
};
struct unordered {
  static auto make(const timed_input& input, const pending_tasks& tasks, std::size_t window) {
    return std::make_unique<unordered_task_stream<int, timed_input, pending_tasks>>(tasks.home, input, tasks, window,
                                                                                    [] { return false; });
  }
};

template <class Kind>
class SourceOfTasks : public testing::Test {
protected:
  [[nodiscard]] int asked() const { return *input_.asked; }
  auto make(std::size_t window) { return Kind::make(input_, tasks_, window); }
  [[nodiscard]] std::function<void()> tell() {
    return [this] { ++told_; };
  }

  const thread_pool pool_{{.workers = 1}};
  timed_input input_;
  const pending_tasks tasks_{.home = future_access::home_of(pool_.apply_async([] {}))};
  int told_ = 0;
};
using kinds = testing::Types<ordered, unordered>;
TYPED_TEST_SUITE(SourceOfTasks, kinds);

TYPED_TEST(SourceOfTasks, WantsAnElementAtOnceWhileThereIsNone) {
  const auto source = this->make(4);
  EXPECT_EQ(source->when_ready(this->tell()), 0ns);
  EXPECT_EQ(this->asked(), 0);
  EXPECT_EQ(this->told_, 0);
}

TYPED_TEST(SourceOfTasks, GivesAResultAsMuchTimeAsTheLastElementTook) {
  const auto source = this->make(4);
  source->pull_one();
  EXPECT_EQ(source->when_ready(this->tell()), 100h);
  EXPECT_EQ(this->asked(), 1) << "only when the time is over";
  EXPECT_EQ(this->told_, 0);
  this->tasks_.finish(0, 5);
  EXPECT_EQ(this->told_, 1);
  EXPECT_EQ(source->next()->value(), 5);
  EXPECT_EQ(this->asked(), 1);
}

TYPED_TEST(SourceOfTasks, DoesNotAskForMoreWhileAResultIsReady) {
  this->input_.takes = 1us;
  const auto source = this->make(4);
  for (int each = 0; each < 3; ++each) source->pull_one();
  EXPECT_EQ(source->when_ready(this->tell()), 0ns) << "the input is quick";
  for (std::size_t each = 0; each < 3; ++each) this->tasks_.finish(each, 5);
  for (int each = 0; each < 3; ++each) {
    this->told_ = 0;
    static_cast<void>(source->when_ready(this->tell()));
    EXPECT_EQ(this->told_, 1);
    EXPECT_EQ(source->next()->value(), 5);
  }
  EXPECT_EQ(this->asked(), 3);
}

TYPED_TEST(SourceOfTasks, WantsNoMoreThanAWindow) {
  const auto source = this->make(2);
  source->pull_one();
  source->pull_one();
  EXPECT_EQ(source->when_ready(this->tell()), std::nullopt);
  for (std::size_t each = 0; each < 2; ++each) this->tasks_.finish(each, 5);
}

// ---- batches

class batches_of_one final : public stream_input {
public:
  batches_of_one(pool_core& core, int& asked) : core_(core), asked_(asked) {}

  taken pull(std::size_t most) override {
    EXPECT_EQ(most, 1U);
    const std::vector<int> elements = {asked_++};
    return {.batch = make_batch<int, int>(core_.memory(), elements.begin(), 1, transfer::reference), .count = 1};
  }
  [[nodiscard]] bool may_be_slow() const noexcept override { return true; }
  [[nodiscard]] std::chrono::nanoseconds patience() const noexcept override { return 100h; }

private:
  pool_core& core_;
  int& asked_;
};

TEST(StreamEngine, GivesAResultAsMuchTimeAsTheInputSays) {
  const pool where(test::quiet(1));
  const auto core = std::static_pointer_cast<pool_core>(future_access::home_of(where.apply_async(square, 1)));
  for (const bool in_order : {true, false}) {
    int asked = 0;
    stream_engine::settings how;
    how.ordered = in_order;
    how.chunk = 7;
    stream_engine engine(core, make_job<false, int (*)(int), int>(*core, &square, false, {}),
                         std::make_unique<batches_of_one>(*core, asked), how);
    std::promise<void> ready;
    {
      const test::occupied worker(where);
      EXPECT_EQ(engine.when_next(0, [] { FAIL() << "there is nothing"; }), 0ns);
      engine.pull_one();
      EXPECT_EQ(engine.when_next(0, [&] { ready.set_value(); }), 100h);
      EXPECT_EQ(asked, 1);
    }
    ready.get_future().wait();
    EXPECT_EQ(engine.next_batch(0)->count(), 1U);
    EXPECT_EQ(asked, 1);
  }
}

}  // namespace
}  // namespace muster::detail::stream_source_test
