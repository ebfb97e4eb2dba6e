// SPDX-License-Identifier: BSL-1.0
// What is made often: queues, pools of threads. Their ends are outside of the time.
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/interprocess/ipc/message_queue.hpp>

#include <muster/pool/thread_pool.hpp>
#include <muster/queue/event.hpp>
#include <muster/queue/shared_queue.hpp>

#include "workloads.hpp"

namespace bench {

namespace {

namespace ipc = boost::interprocess;
using std::chrono::nanoseconds;

constexpr std::size_t capacity = 1024;
constexpr std::size_t message_bytes = 64;
using message = std::array<char, message_bytes>;

class named_queue {
public:
  explicit named_queue(std::size_t number)
      : name_("muster_bench_" + std::to_string(::getpid()) + "_" + std::to_string(number)),
        queue_(ipc::create_only, name_.c_str(), capacity, message_bytes) {}
  named_queue(const named_queue&) = delete;
  named_queue& operator=(const named_queue&) = delete;
  ~named_queue() { ipc::message_queue::remove(name_.c_str()); }

private:
  std::string name_;
  ipc::message_queue queue_;
};

// All of them live at once, as in a program that has so many.
template <class Make>
std::function<nanoseconds(std::size_t)> making(Make make) {
  return [make](std::size_t count) {
    std::vector<decltype(make(count))> kept;
    kept.reserve(count);
    return time_of([&] {
      for (std::size_t each = 0; each < count; ++each) kept.push_back(make(each));
    });
  };
}

row queue_make(const effort& how) {
  const muster::event first;  // what a program's first shared thing costs is not a queue's
  return compare("queue_make", how,
                 {.name = "shared_queue of 1024 × 64 B",
                  .timed = making([](std::size_t) { return muster::shared_queue<message>(capacity); })},
                 {.name = "Boost.Interprocess message_queue",
                  .timed = making([](std::size_t number) { return std::make_unique<named_queue>(number); })});
}

constexpr unsigned threads = 8;

// Made, until each thread runs, and ended.
row thread_pool_make(const effort& how) {
  return compare("thread_pool_make", how,
                 {.name = "thread_pool of 8, made and ended",
                  .once = [] { return time_of([] { const muster::thread_pool made({.workers = threads}); }); }},
                 {.name = "8 × std::thread, made and joined", .once = [] {
                    return time_of([] {
                      std::vector<std::thread> made;
                      for (unsigned each = 0; each < threads; ++each) made.emplace_back([] {});
                      for (auto& each : made) each.join();
                    });
                  }});
}

}  // namespace

std::vector<workload> makings() {
  return {{.name = "queue_make", .run = queue_make, .needs_two_processors = false},
          {.name = "thread_pool_make", .run = thread_pool_make, .needs_two_processors = false}};
}

}  // namespace bench
