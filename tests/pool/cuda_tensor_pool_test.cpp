// SPDX-License-Identifier: BSL-1.0
// Tensors on a GPU, or on what stands in for one, as arguments and results of tasks: by reference.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/pinned_memory.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/copy_lane.hpp>
#include <muster/device/dlpack.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/pool/pool.hpp>
#include <muster/pool/this_worker.hpp>

#include "../fake_cuda/fake_cuda.hpp"
#include "gpu_fixture.hpp"
#include "gpus_here.hpp"
#include "processes.hpp"

namespace muster::cuda_tensor_pool_test {
namespace {

constexpr auto gpu = device::cuda(0);
constexpr auto cpu = device::cpu();

// ---- what workers do

tensor make(float value) { return tensor::full<float>({1000}, value, gpu); }

tensor doubled_in_place(tensor given) {
  scale(given, 2);
  return given;
}

double sum(const tensor& of) {
  double total = 0;
  for (const auto each : of.to(cpu).to_vector<float>()) total += static_cast<double>(each);
  return total;
}

bool is_on_gpu(const tensor& of) { return of.device() == gpu && of.device_address() != 0; }

// The driver that stands in is told to find that: it would be this process that writes there.
void write_where_nothing_is() {
  auto theirs = to_dlpack(make(1));
  if (test::fake_cuda().is_there()) {
    test::fake_cuda().fail("kernel", CUDA_ERROR_ILLEGAL_ADDRESS);
  } else {
    theirs->dl_tensor.data = reinterpret_cast<void*>(std::uintptr_t{4096});  // NOLINT(performance-no-int-to-ptr)
  }
  scale(from_dlpack(std::move(theirs)), 2);
  cuda_device::open(gpu)->synchronize();
}

pid_t own_pid() { return ::getpid(); }
std::uint32_t incarnation() { return this_worker::incarnation(); }

// ---- what the program does

std::string problem_of(const auto& what) {
  try {
    what();
  } catch (const error& found) {
    EXPECT_EQ(found.code(), make_error_code(errc::peer_lost)) << found.what();
    return found.what();
  }
  return "nothing was thrown";
}

class CudaTensorPool : public test::gpu_test {
protected:
  void SetUp() override {
    test::gpu_test::SetUp();
    if (!IsSkipped()) pool_ = std::make_unique<pool>(pool_options{.workers = 2, .quarantine_after = 0, .log = discard});
  }
  void TearDown() override {
    pool_.reset();  // what workers have kept is free again after that
    test::gpu_test::TearDown();
  }
  static void discard(log_level /*level*/, std::string_view /*text*/) {}

  // Of the device, as the driver says.
  static std::size_t free_bytes() { return cuda_device::open(gpu)->memory().free_bytes; }

  std::unique_ptr<pool> pool_;
};

using CudaTensorPoolKills = test::gives_memory_back<CudaTensorPool>;

TEST_F(CudaTensorPool, AnArgumentIsWorkedOnInPlace) {
  const auto there = make(3);
  EXPECT_TRUE(pool_->apply(is_on_gpu, there));
  EXPECT_EQ(pool_->apply(sum, there), 3000);
  static_cast<void>(pool_->apply(doubled_in_place, there));
  EXPECT_TRUE(equal(there, tensor::full<float>({1000}, 6.0F))) << "the same memory";
}

TEST_F(CudaTensorPool, WhatATaskDoesWithAnArgumentIsDoneWhenItHasEnded) {
  {
    const test::late_streams of_workers(5);
    pool_ = std::make_unique<pool>(pool_options{.workers = 2, .log = discard});
    static_cast<void>(pool_->on(0).apply(is_on_gpu, make(1)));
    static_cast<void>(pool_->on(1).apply(is_on_gpu, make(1)));
  }
  const auto there = make(1);
  float expected = 1;
  for (const std::size_t worker : std::vector<std::size_t>{0, 1, 1, 0, 1, 0}) {
    pool_->on(worker).apply(
        [](const tensor& given) {
          for (int times = 0; times < 8; ++times) scale(given, 2);
          for (int times = 0; times < 7; ++times) scale(given, 0.5);
        },
        there);
    expected *= 2;
    EXPECT_TRUE(equal(there, tensor::full<float>({1000}, expected)));
  }
  EXPECT_THROW(pool_->apply(
                   [](const tensor& given) {
                     for (int times = 0; times < 8; ++times) scale(given, 2);
                     throw std::runtime_error("on purpose");
                   },
                   there),
               std::exception);
  EXPECT_TRUE(equal(there, tensor::full<float>({1000}, expected * 256)));
}

TEST_F(CudaTensorPool, AResultStaysOnTheDevice) {
  const auto made = pool_->apply(make, 4.0F);
  EXPECT_EQ(made.device(), gpu);
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 4.0F)));
}

TEST_F(CudaTensorPool, GoesFromWorkerToWorkerAndBackToItsOwner) {
  auto made = pool_->on(0).apply(make, 1.0F);
  for (const std::size_t worker : std::vector<std::size_t>{1, 0, 1, 1, 0})
    made = pool_->on(worker).apply(doubled_in_place, made);
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 32.0F)));
}

TEST_F(CudaTensorPool, TheProgramNeedsNoContextToPassItOn) {
  auto made = pool_->on(0).apply(make, 5.0F);
  EXPECT_EQ(pool_->on(1).apply(sum, made), 5000);
}

// Tasks of worker 0 that it runs one after the other, since they were there before the first one had ended.
template <class... Tasks>
auto without_a_pause(pool& of, const Tasks&... tasks) {
  const auto gate = tensor::zeros<std::uint64_t>({1});
  auto first = of.on(0).apply_async(
      [](const tensor& opened) {
        while (std::atomic_ref(opened.span<std::uint64_t>()[0]).load() == 0) std::this_thread::yield();
      },
      gate);
  auto results = std::tuple(tasks()...);
  std::atomic_ref(gate.span<std::uint64_t>()[0]).store(1);
  return std::apply([](auto&... each) { return std::tuple(each.get()...); }, results);
}

std::size_t registrations() { return test::fake_cuda().live(fake_cuda_registrations); }

TEST_F(CudaTensorPoolKills, WhatATaskWasLentIsMappedOnceForTasksThatFollowAtOnceAndNoLonger) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "nobody counts what a real driver was told of";
  auto there = make(3);
  const auto use = [&] { return pool_->on(0).apply_async(sum, there); };
  const auto look = [&] { return pool_->on(0).apply_async(registrations); };
  const auto use_once_more = [&] {
    return pool_->on(0).apply_async(
        [](const tensor& given) {
          for (int tries = 0; tries < 2; ++tries) {  // if it were mapped only now
            test::fake_cuda().fail("cuMemImportFromShareableHandle", CUDA_ERROR_OUT_OF_MEMORY);
            test::fake_cuda().fail("cuIpcOpenMemHandle", CUDA_ERROR_OUT_OF_MEMORY);
          }
          const auto found = sum(given);
          test::fake_cuda().no_failures();
          return std::pair(found, registrations());
        },
        there);
  };
  EXPECT_EQ(pool_->on(0).apply(sum, make(1)), 1000);  // whatever the first one needs
  const auto none = pool_->on(0).apply(registrations);
  const auto [first, second, third, after] = without_a_pause(*pool_, use, use_once_more, use_once_more, look);
  EXPECT_EQ(first, 3000);
  EXPECT_EQ(second, std::pair(3000.0, none + 1));
  EXPECT_EQ(third, std::pair(3000.0, none + 1));
  EXPECT_EQ(after, none) << "a task that does not use it runs without it";
  EXPECT_EQ(pool_->on(0).apply(sum, there), 3000);
  there = tensor();  // nobody has it any more, and the worker sleeps soon
  const auto device = cuda_device::open(gpu);
  const auto is_back = [&] {
    device->trim();
    const auto now = device->memory();
    return now.free_bytes == now.total_bytes;
  };
  EXPECT_TRUE(test::eventually(is_back)) << "while the worker lives";
  EXPECT_EQ(pool_->on(0).apply(incarnation), 1U);
}

TEST_F(CudaTensorPoolKills, WhatAWorkerHasMadeOutlivesIt) {
  if (goes_by_handle()) GTEST_SKIP() << "this driver exports no memory by descriptor";
  const auto made = pool_->on(0).apply(make, 7.0F);
  pool_->on(0).apply([] { cuda_device::open(gpu)->synchronize(); });  // else it may die before it has made it
  const auto died = pool_->on(0).apply_async([] { ::raise(SIGKILL); }).get_result();
  EXPECT_EQ(died.error(), errc::worker_died);
  EXPECT_EQ(pool_->on(1).apply(sum, made), 7000);
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 7.0F)));
}

TEST_F(CudaTensorPoolKills, WithoutDescriptorsWhatADeadWorkerHasMadeIsAnErrorThatSaysSo) {
  if (!goes_by_handle()) GTEST_SKIP() << "this driver exports memory by descriptor";
  const auto owner = pool_->on(0).apply(own_pid);
  const auto opened = pool_->on(0).apply(make, 7.0F);
  const auto made = pool_->on(0).apply(make, 8.0F);
  pool_->on(0).apply([] { cuda_device::open(gpu)->synchronize(); });  // else it may die before it has made it
  EXPECT_TRUE(equal(opened, tensor::full<float>({1000}, 7.0F)));
  const auto died = pool_->on(0).apply_async([] { ::raise(SIGKILL); }).get_result();
  EXPECT_EQ(died.error(), errc::worker_died);
  const auto is_explained =
      testing::AllOf(testing::HasSubstr("cuda:0"),
                     testing::HasSubstr("B, that process " + std::to_string(owner) + " has sent is gone"),
                     testing::HasSubstr("Keep that process"), testing::HasSubstr("transfer::copy"));
  EXPECT_THAT(pool_->on(1).apply_async(sum, made).get_result().error().describe(), is_explained);
  EXPECT_THAT(problem_of([&] { static_cast<void>(made.to(cpu)); }), is_explained);
  EXPECT_THAT(problem_of([&] { static_cast<void>(opened.to(cpu)); }), is_explained);
  EXPECT_TRUE(equal(pool_->on(0).apply(make, 9.0F), tensor::full<float>({1000}, 9.0F))) << "of who took its place";
}

TEST_F(CudaTensorPool, WithoutDescriptorsMemoryGoesBackToTheDriverWhenNobodyHasItOpen) {
  const test::fake_cuda fake;
  if (!fake.is_there() || !goes_by_handle()) GTEST_SKIP() << "over the fake driver without descriptors only";
  EXPECT_EQ(pool_->on(0).apply(sum, make(1)), 1000);
  EXPECT_GE(fake.live(fake_cuda_blocks), 1U);
  const auto nothing_is_left = [&] {
    cuda_device::open(gpu)->trim();
    return fake.live(fake_cuda_blocks) == 0;
  };
  EXPECT_TRUE(test::eventually(nothing_is_left));
}

TEST_F(CudaTensorPool, IsOnTheDeviceThatThisProcessCallsSo) {
  int count = 0;
  cuda_driver::load()->device_count(&count);  // that asks no device of this process
  if (count < 2) GTEST_SKIP() << "there is one GPU";
  ::setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);  // of processes that start now; this one's driver has looked
  pool_ = std::make_unique<pool>(pool_options{.workers = 1, .quarantine_after = 0, .log = discard});
  const auto made = pool_->apply(make, 5.0F);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(made.device(), device::cuda(1)) << "also before this process has opened a device";
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 5.0F)));
}

TEST_F(CudaTensorPool, WorkersWithDevicesHaveOneContextOnTheirOwnAndTheProgramHasNone) {
  const test::fake_cuda fake;
  const test::gpus_here gpus;
  const auto contexts = [] { return test::fake_cuda().live(fake_cuda_contexts); };
  const auto before = fake.is_there() ? contexts() : 0;
  pool_ =
      std::make_unique<pool>(pool_options{.workers = 2, .devices = gpus.all(), .quarantine_after = 0, .log = discard});
  std::vector<tensor> made;
  for (std::size_t worker = 0; worker < 2; ++worker) {
    const auto own = device::cuda(static_cast<std::uint16_t>(worker % cuda_device::count()));
    made.push_back(pool_->on(worker).apply(make, static_cast<float>(worker + 1)));
    EXPECT_EQ(made.back().device(), own) << "as the program calls it";
    EXPECT_EQ(pool_->on(worker).apply([] { return text(this_worker::device()); }), text(own));
    if (fake.is_there()) {
      EXPECT_EQ(pool_->on(worker).apply(contexts), 1U);
    }
  }
  EXPECT_EQ(pool_->on(1).apply(sum, made[0]), 1000) << "which it sees too, as another";
  EXPECT_EQ(pool_->on(0).apply(sum, made[1]), 2000);
  if (fake.is_there()) {
    EXPECT_EQ(contexts(), before);
  }
}

TEST_F(CudaTensorPool, AWorkersOwnDeviceIsOpenAndHasWorkedBeforeItsFirstTask) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the machine's own driver does not say what it was told";
  const test::gpus_here gpus;
  const auto contexts = [] { return test::fake_cuda().live(fake_cuda_contexts); };
  pool_ =
      std::make_unique<pool>(pool_options{.workers = 2, .devices = gpus.all(), .quarantine_after = 0, .log = discard});
  EXPECT_THAT(pool_->broadcast(contexts), testing::Each(1U));
  EXPECT_THAT(pool_->broadcast([] { return cuda_device::open(gpu)->memory().held_bytes; }), testing::Each(0U));
}

// By a copy beside what this process computes, which asks for the tensor first.
double sum_of_what_a_lane_copies(const tensor& of) {
  const auto here = cuda_device::open(gpu);
  static const auto* const pinned = new pinned_memory(*here, tensor::zeros<float>({1U << 15U}));
  const auto copied = pinned->what().slice(0, 1000);
  const auto lane = here->make_copy_lane();
  lane->begin();
  lane->copy(copied, of);
  lane->wait();
  return sum(copied);
}

TEST_F(CudaTensorPool, ACopyBesideWhatIsComputedHasWhatItsOwnerWasStillComputing) {
  {
    const test::late_streams of_workers(7);
    pool_ = std::make_unique<pool>(pool_options{.workers = 2, .log = discard});
    static_cast<void>(pool_->on(0).apply(is_on_gpu, make(1)));
    static_cast<void>(pool_->on(1).apply(is_on_gpu, make(1)));
  }
  for (int round = 1; round <= 20; ++round) {
    const auto made = pool_->on(0).apply(
        [](float value) {
          auto there = make(value);
          for (int times = 0; times < 8; ++times) scale(there, 2);
          return there;
        },
        static_cast<float>(round));
    EXPECT_EQ(pool_->on(1).apply(sum_of_what_a_lane_copies, made), 256000.0 * round);
  }
}

class CudaTensorPoolStarts : public CudaTensorPool {
protected:
  // What the driver of workers says, once each.
  void start_with(const std::string& failure) {
    const test::gpus_here gpus;
    ::setenv("FAKE_CUDA_FAIL", failure.c_str(), 1);
    pool_ = std::make_unique<pool>(
        pool_options{.workers = 1, .devices = gpus.all(), .wait_for_start = false, .log = discard});
  }
  // Thrown where the pool is broken by then.
  std::string problem_of_a_task() {
    try {
      return pool_->apply_async(own_pid).get_result().error().describe();
    } catch (const error& broken) {
      return broken.what();
    }
  }
  void TearDown() override {
    ::unsetenv("FAKE_CUDA_FAIL");
    CudaTensorPool::TearDown();
  }
};

TEST_F(CudaTensorPoolStarts, AWorkerWhoseDeviceDoesNotWorkSaysSoBeforeItsFirstTask) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  start_with("kernel:" + std::to_string(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_THAT(problem_of_a_task(),
              testing::AllOf(testing::HasSubstr("opening cuda:0, which is cuda:0 for the worker, failed"),
                             testing::HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")));
}

TEST_F(CudaTensorPoolStarts, AWorkerWhoseDeviceIsFullServesWhatDoesNotNeedIt) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  start_with("cuDevicePrimaryCtxRetain:" + std::to_string(CUDA_ERROR_OUT_OF_MEMORY));
  EXPECT_EQ(pool_->apply(incarnation), 1U);
  EXPECT_EQ(pool_->apply(sum, make(2)), 2000) << "there is room by now";
}

TEST_F(CudaTensorPoolStarts, WhoTakesAWorkersPlaceHasItsDeviceOpenBeforeItsFirstTask) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver does not say what it was told";
  const test::gpus_here gpus;
  pool_ = std::make_unique<pool>(pool_options{
      .workers = 1, .max_worker_age = std::chrono::milliseconds(20), .devices = gpus.all(), .log = discard});
  const auto who_and_contexts = [] {
    return std::pair(this_worker::incarnation(), test::fake_cuda().live(fake_cuda_contexts));
  };
  for (std::uint32_t who = 0; who < 3;) {  // a worker goes on until another is there to take its place
    const auto [now, contexts] = pool_->apply(who_and_contexts);
    EXPECT_EQ(contexts, 1U) << "in process " << now;
    who = now;
  }
}

// A result whose kernel will fail when the gate opens, long after the reference has been sent.
tensor make_what_breaks(const tensor& gate) {
  const auto device = cuda_device::open(gpu);
  static const auto* const pinned = new pinned_memory(*device, gate);  // its end would wait for the gate
  {
    const cuda_device::scope current(*device);
    CUdeviceptr where = 0;
    device->driver().host_device_pointer(&where, pinned->what().data(), 0);
    device->driver().stream_wait_value(device->compute().handle(), where, 1, CU_STREAM_WAIT_VALUE_GEQ);
  }
  test::fake_cuda().fail("kernel", CUDA_ERROR_ILLEGAL_ADDRESS);
  return make(1);
}

TEST_F(CudaTensorPool, WhatABrokenContextNeverFinishedIsAnErrorForThoseWhoWait) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  const auto gate = tensor::zeros<std::uint64_t>({1U << 15U});
  const auto made = pool_->on(0).apply(make_what_breaks, gate);
  auto waiting = pool_->on(1).apply_async(sum, made);
  const auto there = tensor::zeros<float>({1000}, gpu);
  there.copy_from(made);  // the stream of this process waits
  std::atomic_ref(gate.span<std::uint64_t>()[0]).store(1);
  const auto is_explained = testing::HasSubstr("the context of that process broke");
  EXPECT_THAT(problem_of([] { cuda_device::open(gpu)->synchronize(); }), is_explained);
  EXPECT_THAT(waiting.get_result().error().describe(), is_explained);
  EXPECT_THAT(problem_of([&] { static_cast<void>(made.to(cpu)); }), is_explained);
  EXPECT_THAT(problem_of([&] { static_cast<void>(pool_->on(1).apply_async(sum, made)); }), is_explained);
  EXPECT_EQ(pool_->on(0).apply(incarnation), 1U) << "its process lives on";
  EXPECT_EQ(pool_->on(1).apply(incarnation), 1U) << "this one's device is well";
  EXPECT_EQ(pool_->on(1).apply(sum, make(2)), 2000);
}

// The copy is asked for while the owner can still finish, and waited for when it cannot any more.
std::string problem_of_a_lane(const tensor& of, const tensor& gate) {
  const auto here = cuda_device::open(gpu);
  static const auto* const pinned = new pinned_memory(*here, tensor::zeros<float>({1U << 15U}));
  const auto lane = here->make_copy_lane();
  lane->begin();
  lane->copy(pinned->what().slice(0, 1000), of);
  std::atomic_ref(gate.span<std::uint64_t>()[0]).store(1);
  return problem_of([&] { lane->wait(); });
}

TEST_F(CudaTensorPool, ACopyBesideWhatIsComputedTellsThatItsOwnerNeverFinished) {
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  const auto gate = tensor::zeros<std::uint64_t>({1U << 15U});
  const auto made = pool_->on(0).apply(make_what_breaks, gate);
  EXPECT_THAT(pool_->on(1).apply(problem_of_a_lane, made, gate),
              testing::HasSubstr("the context of that process broke"));
  EXPECT_EQ(pool_->on(1).apply(sum, make(2)), 2000);
}

TEST_F(CudaTensorPool, ALossIsToldAlthoughMemoryWasLetGoOfAfterIt) {
  const test::fake_cuda fake;
  if (!fake.is_there()) GTEST_SKIP() << "the machine's own driver fails when it wants to";
  const auto device = cuda_device::open(gpu);
  const auto gate = tensor::zeros<std::uint64_t>({1U << 15U});
  const auto made = pool_->on(0).apply(make_what_breaks, gate);
  auto theirs = from_dlpack(to_dlpack(make(2)));
  const auto there = tensor::zeros<float>({1000}, gpu);
  there.copy_from(made);  // the stream of this process waits
  const auto registered = fake.live(fake_cuda_registrations);
  auto pinned = pinned_memory(*device, tensor::zeros<float>({1U << 15U}));
  EXPECT_EQ(fake.live(fake_cuda_registrations), registered + 1);
  std::atomic_ref(gate.span<std::uint64_t>()[0]).store(1);
  pinned = pinned_memory();
  theirs = tensor();
  EXPECT_EQ(fake.live(fake_cuda_registrations), registered) << "the arena gives these pages to others";
  EXPECT_THAT(problem_of([&] { device->synchronize(); }), testing::HasSubstr("the context of that process broke"));
  device->synchronize();  // it is told once
}

TEST_F(CudaTensorPool, WhereADeviceIsFullTheTaskFailsAndItsWorkerGoesOn) {
  auto failed = pool_->on(0).apply_async([] {
    const auto twice = 2 * cuda_device::open(gpu)->memory().total_bytes;
    return tensor::empty(dtype::u8, {twice}, gpu);
  });
  EXPECT_THAT(failed.get_result().error().describe(),
              testing::AllOf(testing::HasSubstr("cuda:0 has no room for"), testing::HasSubstr("are free there")));
  EXPECT_EQ(sum(pool_->on(0).apply(make, 3.0F)), 3000);
  EXPECT_EQ(pool_->on(0).apply(incarnation), 1U) << "its context is well";
}

TEST_F(CudaTensorPool, AWorkerWhoseContextBreaksIsReplaced) {
  auto failed = pool_->on(0).apply_async(write_where_nothing_is);
  EXPECT_THAT(failed.get_result().error().describe(), testing::HasSubstr("ILLEGAL_ADDRESS"));
  EXPECT_EQ(pool_->on(0).apply(incarnation), 2U);
  EXPECT_EQ(sum(pool_->on(0).apply(make, 3.0F)), 3000);
}

TEST_F(CudaTensorPool, AnotherLibrarysMemoryGoesAsACopyAndThatIsSaidOnce) {
  std::mutex guard;
  std::vector<std::string> said;
  cuda_device::log_to([&](log_level level, std::string_view text) {
    const std::scoped_lock lock(guard);
    EXPECT_EQ(level, log_level::warning);
    said.emplace_back(text);
  });
  const auto is_on_host = [](const tensor& given) { return given.device().is_cpu() && sum(given) == 2000; };
  auto handle = to_dlpack(make(2));
  const auto theirs = from_dlpack(std::move(handle));
  EXPECT_FALSE(theirs.is_shared());
  EXPECT_TRUE(pool_->with({.transfer = transfer::copy}).apply(is_on_host, theirs));
  EXPECT_THAT(said, testing::IsEmpty()) << "asked for";
  EXPECT_TRUE(pool_->apply(is_on_host, theirs));
  EXPECT_TRUE(pool_->apply(is_on_host, theirs));
  handle = to_dlpack(make(2));
  handle->dl_tensor.device.device_type = dlpack_device::cuda_managed;
  EXPECT_TRUE(pool_->apply(is_on_host, from_dlpack(std::move(handle))));
  cuda_device::log_to(log_to_stderr);
  EXPECT_THAT(said, testing::ElementsAre(testing::AllOf(testing::HasSubstr("cuda:0"), testing::HasSubstr("DLPack"),
                                                        testing::HasSubstr("clone()"))));
}

TEST_F(CudaTensorPool, WhatADriverExportsInNoWayGoesAsACopy) {
  if (goes_by_handle()) GTEST_SKIP() << "the same without descriptors";
  ::setenv("FAKE_CUDA_DESCRIPTORS", "0", 1);
  ::setenv("FAKE_CUDA_IPC", "0", 1);
  pool_ = std::make_unique<pool>(pool_options{
      .workers = 1, .initializer = [] { cuda_device::log_to({}); }, .quarantine_after = 0, .log = discard});
  const auto made = pool_->apply(make, 6.0F);
  ::unsetenv("FAKE_CUDA_IPC");
  ::unsetenv("FAKE_CUDA_DESCRIPTORS");
  if (!test::fake_cuda().is_there()) GTEST_SKIP() << "the machine's own driver is as it is";
  EXPECT_TRUE(made.device().is_cpu());
  EXPECT_TRUE(equal(made, tensor::full<float>({1000}, 6.0F)));
}

TEST_F(CudaTensorPoolKills, WhatAKilledWorkerHeldIsFreeAgain) {
  const auto device = cuda_device::open(gpu);
  const auto held = [&] {
    static_cast<void>(tensor::empty<float>({1}, gpu));  // collects what others have let go of
    const auto now = device->memory();
    return now.held_bytes - now.unused_bytes;
  };
  const auto before = held();
  for (int times = 0; times < 3; ++times) {
    const auto there = tensor::zeros<float>({100'000}, gpu);
    const auto died = pool_
                          ->apply_async(
                              [](const tensor& given) {
                                static const auto kept = given;
                                static_cast<void>(kept.device_address());
                                ::raise(SIGKILL);
                              },
                              there)
                          .get_result();
    EXPECT_EQ(died.error(), errc::worker_died);
  }
  EXPECT_TRUE(test::eventually([&] { return held() == before; }));
}

TEST_F(CudaTensorPool, WhatAWorkerKeepsIsNotUsedAgain) {
  {
    const auto there = tensor::full<float>({1000}, 8.0F, gpu);
    pool_->on(0).apply(
        [](const tensor& given) {
          static tensor kept;
          kept = given;
        },
        there);
    pool_->on(1).apply([](const tensor& given) { static_cast<void>(sum(given)); }, there);
  }
  for (int times = 0; times < 20; ++times) static_cast<void>(tensor::zeros<float>({1000}, gpu));
  // A static in another function is another: the worker's is asked for by the same one.
  const auto keeper = [](const tensor& given) {
    static tensor kept;
    if (given.size() != 0) kept = given;
    return sum(kept);
  };
  const auto again = tensor::full<float>({1000}, 9.0F, gpu);
  EXPECT_EQ(pool_->on(0).apply(keeper, again), 9000);
  {
    const auto gone = tensor::full<float>({1000}, 10.0F, gpu);
    EXPECT_EQ(pool_->on(0).apply(keeper, gone), 10'000);
  }
  for (int times = 0; times < 20; ++times) static_cast<void>(tensor::full<float>({1000}, 1.0F, gpu));
  EXPECT_EQ(pool_->on(0).apply(keeper, tensor::empty<float>({0})), 10'000);
}

TEST_F(CudaTensorPool, AsACopyItArrivesOnTheHost) {
  const auto there = make(2);
  const auto where =
      pool_->with({.transfer = transfer::copy})
          .apply([](const tensor& given) { return given.device().is_cpu() && given.span<float>()[999] == 2.0F; },
                 there);
  EXPECT_TRUE(where);
}

}  // namespace
}  // namespace muster::cuda_tensor_pool_test
