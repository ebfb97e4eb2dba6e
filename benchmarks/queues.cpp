// SPDX-License-Identifier: BSL-1.0
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <future>
#include <string>

#include <boost/interprocess/ipc/message_queue.hpp>

#include <muster/queue/p2p_queue.hpp>
#include <muster/queue/shared_queue.hpp>

#include "mutex_pool.hpp"
#include "mutex_ring.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

namespace ipc = boost::interprocess;

constexpr std::size_t capacity = 1024;

struct message {
  std::array<std::uint64_t, 8> words;
};
static_assert(sizeof(message) == 64);

template <class Queue>
void send(const Queue& queue, std::size_t count) {
  message each{};
  for (std::size_t index = 0; index < count; ++index) {
    each.words[7] = index;
    queue.push(each);
  }
}

template <class Queue>
std::uint64_t receive(const Queue& queue, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t index = 0; index < count; ++index) sum += queue.pop()->words[7];
  return sum;
}

std::uint64_t sum_of(std::size_t count) { return count * (count - 1) / 2; }

// Two producers and two consumers: workers beside threads.
row queue_2p2c(const effort& how) {
  using queue = muster::shared_queue<message>;
  const muster::pool pool({.workers = 4});
  const queue shared(capacity);
  mutex_pool threads(4);
  mutex_ring<message> ring(capacity);
  const auto start = [&threads](auto what) {
    auto task = std::make_shared<std::packaged_task<void()>>(what);
    threads.submit([task] { (*task)(); });
    return task->get_future();
  };
  const side ours{.name = "shared_queue, 4 workers", .run = [&](std::size_t count) {
                    const auto half = (count + 1) / 2;
                    auto first = pool.apply_async(receive<queue>, shared, half);
                    auto second = pool.apply_async(receive<queue>, shared, half);
                    auto third = pool.apply_async(send<queue>, shared, half);
                    auto fourth = pool.apply_async(send<queue>, shared, half);
                    if (first.get() + second.get() != 2 * sum_of(half)) std::abort();
                    third.get();
                    fourth.get();
                  }};
  const side peer{.name = "mutex and conditions, 4 threads", .run = [&](std::size_t count) {
                    const auto half = (count + 1) / 2;
                    const auto take = [&ring, half] {
                      for (std::size_t index = 0; index < half; ++index) ring.pop();
                    };
                    const auto give = [&ring, half] {
                      for (std::size_t index = 0; index < half; ++index) ring.push({});
                    };
                    for (auto& each : {start(take), start(take), start(give), start(give)}) each.wait();
                  }};
  return compare("queue_2p2c", how, ours, peer);
}

// A queue of Boost's, which has a name in the system.
class named_queue {
public:
  named_queue() : queue_(ipc::create_only, name_.c_str(), capacity, sizeof(message)) {}
  named_queue(const named_queue&) = delete;
  named_queue& operator=(const named_queue&) = delete;
  ~named_queue() { ipc::message_queue::remove(name_.c_str()); }

  [[nodiscard]] const std::string& name() const { return name_; }
  ipc::message_queue& operator*() { return queue_; }

private:
  std::string name_ = "muster-bench-" + std::to_string(::getpid());
  ipc::message_queue queue_;
};

std::uint64_t receive_named(const std::string& name, std::size_t count) {
  ipc::message_queue queue(ipc::open_only, name.c_str());
  std::uint64_t sum = 0;
  message each{};
  std::size_t bytes = 0;
  unsigned priority = 0;
  for (std::size_t index = 0; index < count; ++index) {
    queue.receive(&each, sizeof each, bytes, priority);
    sum += each.words[7];
  }
  return sum;
}

// From this process to a worker, one after the other as fast as it goes.
template <class Queue>
row stream(const std::string& name, const std::string& ours_name, const effort& how) {
  const Queue queue(capacity);
  named_queue other;
  const bound_pool pool;
  const side ours{.name = ours_name, .run = [&](std::size_t count) {
                    auto taken = pool->apply_async(receive<Queue>, queue, count);
                    send(queue, count);
                    if (taken.get() != sum_of(count)) std::abort();
                  }};
  const side peer{.name = "Boost message_queue", .run = [&](std::size_t count) {
                    auto taken = pool->apply_async(receive_named, other.name(), count);
                    message each{};
                    for (std::size_t index = 0; index < count; ++index) {
                      each.words[7] = index;
                      (*other).send(&each, sizeof each, 0);
                    }
                    if (taken.get() != sum_of(count)) std::abort();
                  }};
  return compare(name, how, ours, peer);
}

}  // namespace

std::vector<workload> queues() {
  return {{.name = "queue_2p2c", .run = queue_2p2c},
          {.name = "queue_vs_boost",
           .run =
               [](const effort& how) {
                 return stream<muster::shared_queue<message>>("queue_vs_boost", "shared_queue", how);
               }},
          {.name = "p2p_queue_vs_boost", .run = [](const effort& how) {
             return stream<muster::p2p_queue<message>>("p2p_queue_vs_boost", "p2p_queue", how);
           }}};
}

}  // namespace bench
