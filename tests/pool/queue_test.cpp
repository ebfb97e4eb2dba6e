// SPDX-License-Identifier: BSL-1.0
// Queues between a program and the workers of its pools.
#include <csignal>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "processes.hpp"

namespace muster::queue_test {
namespace {

using namespace std::chrono_literals;

using numbers = shared_queue<std::uint64_t>;
using tensors = shared_queue<tensor>;

// What a worker keeps from one task to the next.
std::optional<numbers> kept;
std::optional<tensor> kept_tensor;

class PoolQueue : public testing::Test {
protected:
  void TearDown() override {
    EXPECT_TRUE(test::eventually([&] {
      const auto found = domain_->blocks().read_statistics();
      return found.holds == 0 && found.live_blocks == 0 && domain_->keepsakes().size() == 0;
    }));
  }

  std::shared_ptr<domain> domain_ = domain::of_program();
};

std::uint64_t sum_of(const numbers& given) {
  std::uint64_t sum = 0;
  while (const auto each = given.pop()) sum += *each;
  return sum;
}

TEST_F(PoolQueue, WorkersTakeFromTheProgramsQueue) {
  pool workers({.workers = 2});
  const numbers queue(8);
  auto first = workers.apply_async(sum_of, queue);
  auto second = workers.apply_async(sum_of, queue);
  for (std::uint64_t each = 1; each <= 2000; ++each) EXPECT_TRUE(queue.push(each));
  queue.close();
  EXPECT_EQ(first.get() + second.get(), 2001000U);
}

TEST_F(PoolQueue, WorkersPassMessagesToOneAnother) {
  pool workers({.workers = 2});
  const p2p_queue<std::string> between(4);
  auto producer = workers.apply_async(
      [](const p2p_queue<std::string>& out) {
        for (int each = 0; each < 500; ++each) out.push(std::string(static_cast<std::size_t>(each), 'x'));
        out.close();
      },
      between);
  auto consumer = workers.apply_async(
      [](const p2p_queue<std::string>& in) {
        std::size_t bytes = 0;
        while (const auto each = in.pop()) bytes += each->size();
        return bytes;
      },
      between);
  producer.get();
  EXPECT_EQ(consumer.get(), 499U * 500 / 2);
}

TEST_F(PoolQueue, TensorsGoThroughItByReference) {
  pool workers({.workers = 1});
  const tensors there(2);
  const tensors back(2);
  auto doubler = workers.apply_async(
      [](const tensors& in, const tensors& out) {
        while (auto each = in.pop()) {
          for (auto& element : each->span<float>()) element *= 2;
          out.push(*each);
        }
      },
      there, back);
  for (int round = 1; round <= 20; ++round) {
    const auto sent = tensor::full<float>({10'000}, static_cast<float>(round));
    there.push(sent);
    const auto received = back.pop();
    ASSERT_TRUE(received);
    EXPECT_EQ(received->data<float>(), sent.data<float>());
    EXPECT_EQ(*sent.data<float>(), static_cast<float>(2 * round));
  }
  there.close();
  doubler.get();
}

TEST_F(PoolQueue, TensorsGoThroughItByCopyWhereThatIsAskedFor) {
  const tensors through(3);
  const auto sent = tensor::full<float>({10'000}, 1.0F);
  through.push(sent, transfer::copy);
  EXPECT_TRUE(through.try_push(sent, transfer::copy));
  EXPECT_TRUE(through.push_for(sent, std::chrono::seconds(1)));
  sent.fill(2.0F);
  EXPECT_EQ(*through.pop()->data<float>(), 1.0F);
  EXPECT_EQ(*through.pop()->data<float>(), 1.0F);
  const auto same = through.pop();
  EXPECT_EQ(same->data<float>(), sent.data<float>());
}

TEST_F(PoolQueue, OneTensorMayBeInManyCellsAndQueuesAtOnce) {
  const tensors one(8);
  const tensors other(8);
  auto sent = tensor::full<float>({10'000}, 1.0F);
  const auto* const first = sent.data<float>();
  for (int each = 0; each < 8; ++each) {
    one.push(sent);
    other.push(sent);
  }
  sent = tensor();
  for (int each = 0; each < 8; ++each) {
    EXPECT_EQ(one.pop()->data<float>(), first);
    EXPECT_EQ(other.pop()->data<float>(), first);
  }
}

TEST_F(PoolQueue, AWorkerThatDiesWithALeaseHasGivenItBackWhenItsTaskEnds) {
  pool workers({.workers = 1});
  const tensors queue(4);
  queue.push(tensor::full<float>({1000}, 1.0F));
  queue.push(tensor::full<float>({1000}, 2.0F));
  for (int round = 0; round < 3; ++round) {
    auto crash = workers.apply_async(
        [](const tensors& in) {
          const auto held = in.lease();
          ::raise(SIGKILL);
        },
        queue);
    EXPECT_THROW(crash.get(), worker_died);
    const auto again = queue.try_lease();
    ASSERT_TRUE(again);
    EXPECT_EQ(*(*again)->data<float>(), 1.0F);
  }
  static_cast<void>(queue.pop());
  EXPECT_EQ(*queue.pop()->data<float>(), 2.0F);
}

TEST_F(PoolQueue, ATensorThatAWorkerKeepsOfALeaseIsItsOwn) {
  pool workers({.workers = 1});
  const tensors queue(2);
  queue.push(tensor::full<float>({1000}, 3.0F));
  workers.apply([](const tensors& in) { kept_tensor = **in.lease(); }, queue);
  EXPECT_EQ(*queue.pop()->data<float>(), 3.0F);
  const auto another = tensor::full<float>({1000}, 4.0F);  // perhaps in the same place
  EXPECT_EQ(workers.apply([] { return *kept_tensor->data<float>(); }), 3.0F);
  workers.apply([] { kept_tensor.reset(); });
}

TEST_F(PoolQueue, OneThatAWorkerKeepsOutlivesTheCallAndTheProgramsObject) {
  pool workers({.workers = 1});
  {
    const numbers queue(4);
    queue.push(5);
    workers.apply([](const numbers& given) { kept = given; }, queue);
  }
  EXPECT_EQ(workers.apply([] {
    kept->push(6);
    return *kept->pop() * 10 + *kept->pop();
  }),
            56U);
  workers.apply([] { kept.reset(); });
  const numbers another(1);  // asks those that are kept
  EXPECT_EQ(domain_->keepsakes().size(), 1U);
}

TEST_F(PoolQueue, OneThatAWorkerGivesBackIsTheSame) {
  pool workers({.workers = 1});
  const numbers queue(4);
  const auto back = workers.apply(
      [](const numbers& given) {
        given.push(7);
        return given;
      },
      queue);
  EXPECT_EQ(back.pop(), 7U);
}

TEST_F(PoolQueue, ARequestMayBringTheQueueForItsAnswer) {
  pool workers({.workers = 1});
  using request = std::pair<std::uint64_t, numbers>;
  const shared_queue<request> requests(2);
  auto server = workers.apply_async(
      [](const shared_queue<request>& in) {
        while (const auto each = in.pop()) each->second.push(each->first + 1);
      },
      requests);
  for (std::uint64_t each = 0; each < 20; ++each) {
    const numbers answers(1, {.spin = 0ns});
    requests.push({each, answers});
    EXPECT_EQ(answers.pop(), each + 1);
  }
  requests.close();
  server.get();
}

TEST_F(PoolQueue, APoolOfItsOwnDomainRefusesItWithTheReason) {
  pool workers({.workers = 1, .arena_bytes = std::size_t{64} << 20U, .isolated = true});
  const numbers queue(1);
  try {
    workers.apply([](const numbers& given) { given.close(); }, queue);
    FAIL();
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::invalid_argument);
    EXPECT_THAT(found.what(), testing::HasSubstr("another domain"));
  }
}

TEST_F(PoolQueue, AWorkerIsToldWhereToMakeOne) {
  pool workers({.workers = 1});
  try {
    workers.apply([] { const numbers mine(1); });
    FAIL();
  } catch (const error& found) {
    EXPECT_EQ(found.code(), errc::invalid_argument);
    EXPECT_THAT(found.what(), testing::HasSubstr("make it in the program"));
  }
}

TEST_F(PoolQueue, WorkersThatDieAgainAndAgainLeaveNothing) {
  pool workers({.workers = 2});
  const tensors queue(4);
  for (int round = 0; round < 20; ++round) {
    auto producer = workers.apply_async(
        [](const tensors& out, bool dies) {
          out.push(tensor::full<float>({1000}, 1.0F));
          if (dies) ::raise(SIGKILL);
        },
        queue, round % 2 == 0);
    auto consumer = workers.apply_async(
        [](const tensors& in, bool dies) {
          const auto found = in.pop();
          if (dies) ::raise(SIGKILL);
        },
        queue, round % 3 == 0);
    producer.wait();
    consumer.wait();
  }
  EXPECT_EQ(queue.size(), 0U);
}

}  // namespace
}  // namespace muster::queue_test
