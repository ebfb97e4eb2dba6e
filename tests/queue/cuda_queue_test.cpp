// SPDX-License-Identifier: BSL-1.0
// Tensors on a GPU, or on what stands in for one, in queues, on lease, and behind events: what a process has asked its
// device to do with another's memory has been done when the other is told.
#include <array>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/pool/pool.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "error_code.hpp"
#include "gpu_fixture.hpp"

namespace muster::cuda_queue_test {
namespace {

constexpr auto gpu = device::cuda(0);

using tensors = shared_queue<tensor>;
using numbers = p2p_queue<std::uint64_t>;

tensor make(float value) { return tensor::full<float>({1000}, value, gpu); }

// ---- what workers do

// Twice as much, by work that takes its time where streams are late.
void double_slowly(const tensor& what) {
  for (int times = 0; times < 8; ++times) scale(what, 2);
  for (int times = 0; times < 7; ++times) scale(what, 0.5);
}

bool is_all(const tensor& what, float value) { return equal(what, tensor::full<float>(what.shape(), value)); }

// Whenever it is asked, and asks the other then. Returns how often it found what the turns before had not made yet.
// `beside` keeps the program's memory open: closing it waits for the device, too.
std::size_t double_on_lease(const tensors& queue, const numbers& turns, const numbers& others, const tensor& beside) {
  std::size_t wrong = beside.device_address() == 0 ? 1 : 0;
  while (const auto turn = turns.pop()) {
    {
      const auto mine = queue.lease();
      if (!is_all(**mine, std::ldexp(1.0F, static_cast<int>(*turn)))) ++wrong;
      double_slowly(**mine);
    }
    others.push(*turn + 1);
  }
  return wrong;
}

// Says that each is done by a message that has nothing to do with it.
void double_and_acknowledge(const tensors& jobs, const numbers& done) {
  for (std::uint64_t count = 0;; ++count) {
    auto mine = jobs.lease();
    if (!mine) return;
    double_slowly(**mine);
    mine->ack();
    done.push(count);
  }
}

void double_when_asked(const tensor& what, const event& begin, const event& done, std::size_t count) {
  for (std::size_t each = 0; each < count; ++each) {
    begin.wait();
    begin.clear();
    double_slowly(what);
    done.set();
  }
}

// ---- what the program does

class CudaQueue : public test::gpu_test {
protected:
  void SetUp() override {
    test::gpu_test::SetUp();
    if (IsSkipped()) return;
    const test::late_streams of_workers(7);
    workers_ = std::make_unique<pool>(pool_options{.workers = 2, .quarantine_after = 0, .log = discard});
    for (const std::size_t each : {0U, 1U}) workers_->on(each).apply([] { static_cast<void>(cuda_device::open(gpu)); });
  }
  void TearDown() override {
    workers_.reset();
    test::gpu_test::TearDown();
  }
  static void discard(log_level /*level*/, std::string_view /*text*/) {}

  std::unique_ptr<pool> workers_;
};

TEST_F(CudaQueue, ATensorGoesByReferenceToWorkersAndBack) {
  const tensors there(2);
  const tensors back(2);
  auto passed_on = workers_->apply_async(
      [](const tensors& in, const tensors& out) {
        while (const auto each = in.pop()) {
          double_slowly(*each);
          out.push(*each);
        }
      },
      there, back);
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    const auto sent = make(value);
    there.push(sent);
    const auto received = back.pop();
    ASSERT_TRUE(received);
    EXPECT_EQ(received->device(), gpu);
    EXPECT_TRUE(is_all(*received, 2 * value));
    EXPECT_TRUE(is_all(sent, 2 * value)) << "the same memory";
  }
  there.close();
  passed_on.get();
}

TEST_F(CudaQueue, AsACopyItArrivesOnTheHostAsItWas) {
  const tensors queue(2);
  const auto there = make(3);
  queue.push(there, transfer::copy);
  there.fill(4.0F);
  const auto received = queue.pop();
  EXPECT_TRUE(received->device().is_cpu());
  EXPECT_TRUE(is_all(*received, 3));
}

TEST_F(CudaQueue, OneThatCannotBeSharedIsDroppedLikeAnyOther) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  const auto device = cuda_device::open(gpu);
  const tensors queue(2);
  device->trim();  // so that it lies in memory of which nothing was shared
  const auto before = device->memory().held_bytes;
  {
    const auto there = make(1);
    fake.fail("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(test::code_of([&] { queue.push(there); }), errc::out_of_memory);
  }
  device->trim();
  EXPECT_EQ(device->memory().held_bytes, before);
  queue.push(make(2));
  EXPECT_TRUE(is_all(*queue.pop(), 2));
}

TEST_F(CudaQueue, GivenAwayItIsTheReceivers) {
  const tensors queue(2);
  auto given = make(5);
  EXPECT_TRUE(queue.push(std::move(given), transfer::move));
  EXPECT_EQ(given.size(), 0U);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_TRUE(workers_->apply([](const tensors& in) { return is_all(*in.pop(), 5); }, queue));
}

TEST_F(CudaQueue, WhatIsKeptOfALeaseThatGoesBackIsStillThere) {
  const tensors queue(2);
  queue.push(make(6));
  EXPECT_TRUE(workers_->on(0).apply(
      [](const tensors& in) {
        tensor kept;
        {
          const auto first = in.lease();
          kept = **first;
          double_slowly(kept);
        }
        return is_all(kept, 12);
      },
      queue));
  EXPECT_TRUE(workers_->on(1).apply([](const tensors& in) { return is_all(*in.pop(), 12); }, queue));
}

TEST_F(CudaQueue, WhatIsDoneToALeasedTensorHasBeenDoneWhenItGoesBack) {
  const tensors queue(1);
  const auto beside = make(0);
  const std::array turns{numbers(2), numbers(2), numbers(2)};
  queue.push(make(1));
  auto one = workers_->on(0).apply_async(double_on_lease, queue, turns[0], turns[1], beside);
  auto other = workers_->on(1).apply_async(double_on_lease, queue, turns[1], turns[2], beside);
  std::uint64_t turn = 0;
  while (turn < 60) {
    turns[0].push(turn);
    turn = *turns[2].pop();
  }
  for (const auto& each : turns) each.close();
  EXPECT_EQ(one.get(), 0U);
  EXPECT_EQ(other.get(), 0U);
  EXPECT_TRUE(is_all(*queue.pop(), std::ldexp(1.0F, static_cast<int>(turn))));
}

TEST_F(CudaQueue, WhatIsDoneToALeasedTensorHasBeenDoneWhenItIsAcknowledged) {
  const tensors jobs(2);
  const numbers done(2);
  auto doubler = workers_->apply_async(double_and_acknowledge, jobs, done);
  for (const float value : {1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F, 8.0F}) {
    const auto sent = make(value);
    jobs.push(sent);
    EXPECT_TRUE(done.pop());
    EXPECT_TRUE(is_all(sent, 2 * value));
  }
  jobs.close();
  doubler.get();
}

TEST_F(CudaQueue, WhatIsDoneToALentTensorHasBeenDoneWhenAnEventIsSet) {
  constexpr std::size_t count = 8;
  const event begin;
  const event done;
  const auto there = make(1);
  auto doubler = workers_->apply_async(double_when_asked, there, begin, done, count);
  for (std::size_t each = 1; each <= count; ++each) {
    begin.set();
    done.wait();
    done.clear();
    EXPECT_TRUE(is_all(there, std::ldexp(1.0F, static_cast<int>(each))));
  }
  doubler.get();
}

using CudaQueueKills = test::gives_memory_back<CudaQueue>;

TEST_F(CudaQueueKills, OfAKilledWorkerALeaseIsThereAgainAndCanBeWrittenAnew) {
  const auto device = cuda_device::open(gpu);
  const tensors queue(1);
  {
    const auto there = make(1);
    queue.push(there);
    for (int times = 0; times < 3; ++times) {
      const auto died = workers_
                            ->apply_async(
                                [](const tensors& in) {
                                  const auto mine = in.lease();
                                  double_slowly(**mine);
                                  ::raise(SIGKILL);
                                },
                                queue)
                            .get_result();
      EXPECT_EQ(died.error(), errc::worker_died);
      there.fill(7.0F);
      const auto again = queue.lease();
      ASSERT_TRUE(again);
      EXPECT_TRUE(is_all(**again, 7)) << "nothing that the dead one has asked for comes later";
    }
  }
  EXPECT_TRUE(is_all(*queue.pop(), 7));
}

}  // namespace
}  // namespace muster::cuda_queue_test
