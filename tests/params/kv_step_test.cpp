// SPDX-License-Identifier: BSL-1.0
// A process that takes part in a key-value store is killed at many instructions: an owner while it takes the pushes of
// a round and applies them, a worker while it pushes, and while it has another owner take over. The others go on, every
// push counts once or not at all, and the value is, bit for bit, what such pushes make of it undisturbed.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <muster/device/tensor.hpp>
#include <muster/params.hpp>
#include <muster/params/detail/kv_round.hpp>
#include <muster/pool/process.hpp>
#include <muster/queue/event.hpp>

#include "tracee.hpp"

namespace muster::kv_step_test {
namespace {

const tensor_shape shape({70});
constexpr float of_first = 0.3F;
constexpr float of_second = 0.7F;

tensor gradient(float value) { return tensor::full<float>(shape, value); }

void begin(const kv_store& kv) {
  kv.init("w", tensor::full<float>(shape, 1));
  kv.set_optimizer(sgd{.rate = 0.1, .momentum = 0.9});
}

/// What the value becomes by such rounds, of which each is the gradients that count in it.
std::vector<float> undisturbed(const std::vector<std::vector<float>>& rounds) {
  const kv_store kv(kv_kind::local);
  begin(kv);
  for (const auto& each : rounds) {
    std::vector<tensor> all;
    for (const auto value : each) all.push_back(gradient(value));
    kv.push("w", all);
  }
  return kv.pull("w").to_vector<float>();
}

/// Pushes; when it is told of a death, again. Returns whether it was told.
bool push(const kv_store& kv, float value) {
  try {
    kv.push("w", gradient(value));
    return false;
  } catch (const task_error& failure) {
    if (failure.code() != errc::peer_lost) throw;
    kv.push("w", gradient(value));
    return true;
  }
}

enum command : int { name_thread, trap, wake };

void command_if_it_lives(const kv_store& kv, command which) {
  try {
    kv.send_command(which, "");
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): it is killed before it answers
  }
}

// Threads of the library's block signals.
void land() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGTRAP);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(SIGTRAP);
}

// Its thread that serves stops where it is told so.
void run_owner(const kv_ticket& ticket, const tensor& thread) {
  const kv_store kv(ticket, 2);
  kv.on_command([&](int head, const std::string&) {
    if (head == trap) land();
    if (head == name_thread) thread.at<std::int64_t>(0) = ::gettid();
  });
  kv.values().push("owner is there", 1);
  event().wait();
}

void run_worker(const kv_ticket& ticket, const event& is_traced, const tensor& has_ended) {
  const kv_store kv(ticket, 1);
  begin(kv);
  kv.push("w", gradient(of_second));
  kv.values().push("worker is there", 1);
  is_traced.wait();
  ::raise(SIGTRAP);
  kv.push("w", gradient(of_second));
  has_ended.at<std::uint32_t>(0) = 1;
  for (;;) ::pause();
}

/// Steps what is stopped, so many instructions at most, until `is_over`. Returns how many it has executed.
unsigned step(test::tracee& traced, unsigned instructions, const std::function<bool()>& is_over) {
  unsigned done = 0;
  while (done < instructions && !is_over()) {
    const auto how = traced.step(true);
    if (how == test::tracee::outcome::gone) break;
    if (how == test::tracee::outcome::asleep && traced.await_stop() == test::tracee::outcome::gone) break;
    ++done;
  }
  return done;
}

void make_owner(const store& values, std::size_t rank) {
  values.push(std::string("\1o'w"), detail::kv_ownership{.rank = rank, .incarnation = 1});
}

// ---- an owner that takes a round's pushes

unsigned kill_owner_after(unsigned instructions) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2, .spare_owners = 1});
  const auto thread = tensor::zeros<std::int64_t>({1});
  const process owner(run_owner, ticket, thread);
  const kv_store first(ticket, 0);
  const kv_store second(ticket, 1);
  for (const auto* each : {&first, &second}) each->on_command([](int, const std::string&) {});
  if (!first.values().wait_for("owner is there", 1)) throw std::runtime_error("there is no owner");
  begin(first);
  second.init("w", gradient(0));
  make_owner(first.values(), 2);
  first.send_command(name_thread, "");
  test::tracee traced(static_cast<pid_t>(thread.at<std::int64_t>(0)));
  std::thread trapping([&] { command_if_it_lives(first, trap); });
  traced.run_to_landing();
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    for (int round = 0; round < 2; ++round) second.push("w", gradient(of_second));
  });
  std::thread one([&] {
    for (int round = 0; round < 2; ++round) first.push("w", gradient(of_first));
    other.join();
    is_over = true;
    command_if_it_lives(first, wake);  // it may sleep
  });
  const auto done = step(traced, instructions, [&] { return is_over.load(); });
  owner.kill(SIGKILL);
  owner.join();
  trapping.join();
  one.join();
  EXPECT_EQ(first.pull("w").to_vector<float>(), undisturbed({{of_first, of_second}, {of_first, of_second}})) << done;
  return done;
}

// ---- a worker that pushes

/// `takes_over`: the owner of the key has died before.
unsigned kill_worker_after(unsigned instructions, bool takes_over) {
  const kv_ticket ticket(kv_kind::sync, {.workers = 2, .spare_owners = 1, .owners = takes_over ? 0U : 1U});
  const event is_traced;
  const auto has_ended = tensor::zeros<std::uint32_t>({1});
  const kv_store first(ticket, 0);
  std::optional<process> owner;
  if (takes_over) owner.emplace(run_owner, ticket, tensor::zeros<std::int64_t>({1}));
  if (owner && !first.values().wait_for("owner is there", 1)) throw std::runtime_error("there is no owner");
  const process worker(run_worker, ticket, is_traced, has_ended);
  begin(first);
  if (takes_over) make_owner(first.values(), 2);
  first.push("w", gradient(of_first));
  if (!first.values().wait_for("worker is there", 1)) throw std::runtime_error("there is no worker");
  if (owner) {
    owner->kill(SIGKILL);
    owner->join();
  }
  test::tracee traced(worker.pid());
  is_traced.set();
  traced.run_to_landing();
  bool was_told = false;
  std::thread one([&] { was_told = push(first, of_first); });
  const auto done = step(traced, instructions, [&] { return has_ended.at<std::uint32_t>(0) != 0; });
  worker.kill(SIGKILL);
  worker.join();
  one.join();
  const std::vector<float> both{of_first, of_second};
  const std::vector<float> alone{of_first};
  EXPECT_EQ(first.pull("w").to_vector<float>(), undisturbed({both, was_told ? alone : both})) << done;
  EXPECT_EQ(push(first, of_first), !was_told) << "of the death each push is told once";
  return done;
}

template <class Kill>
void kill_everywhere(unsigned kills, const Kill& kill) {
  const auto all = kill(~0U);
  ASSERT_GT(all, 0U);
  for (unsigned each = 0; each < kills && !testing::Test::HasFailure(); ++each) {
    static_cast<void>(kill(static_cast<unsigned>(std::uint64_t{all} * each / kills)));
  }
}

TEST(KvStep, AnOwnerKilledInARoundLosesNoPushAndNoMoment) { kill_everywhere(20, kill_owner_after); }

TEST(KvStep, AWorkerKilledInAPushCountsOrDoesNot) {
  kill_everywhere(30, [](unsigned instructions) { return kill_worker_after(instructions, false); });
}

TEST(KvStep, AWorkerKilledInATakeoverHoldsUpNoOther) {
  kill_everywhere(30, [](unsigned instructions) { return kill_worker_after(instructions, true); });
}

}  // namespace
}  // namespace muster::kv_step_test
