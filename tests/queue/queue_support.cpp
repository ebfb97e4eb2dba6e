// SPDX-License-Identifier: BSL-1.0
#include "queue_support.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <latch>
#include <thread>

#include <muster/base/memfd.hpp>
#include <muster/memory/domain.hpp>

namespace muster::test {

bell_listener::bell_listener(dispatcher& tasks) : tasks_(tasks), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  std::latch begun(1);
  thread_ = std::thread([&] {
    {
      const std::scoped_lock lock(busy_);
      begun.count_down();
      tasks_.arm_bell();
    }
    listen();
  });
  begun.wait();
}

void bell_listener::listen() {
  while (!stop_) {
    pollfd waiting{.fd = bell_.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, -1);
    answer();
  }
}

void bell_listener::answer() {
  const std::scoped_lock lock(busy_);
  std::uint64_t count = 0;
  static_cast<void>(!::read(bell_.get(), &count, sizeof count));
  tasks_.drain();
  tasks_.arm_bell();
}

bell_listener::~bell_listener() {
  stop_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(!::write(bell_.get(), &one, sizeof one));
  thread_.join();
}

namespace {

constexpr std::size_t extents_in_test = 512;

spin_policy short_spin() { return {.budget = std::chrono::microseconds(5), .processors = 2}; }

}  // namespace

thread_world::thread_world(std::size_t workers, dispatcher::options settings, std::size_t slots)
    : extents_(extents_in_test),
      blocks_(4096),
      file_(make_memfd("test", extents_in_test * extent_bytes)),
      payload_(file_, extents_in_test * extent_bytes, mapping::inherit::yes),
      board_({.workers = workers, .task_slots = slots}, short_spin()),
      functions_(board_.modules()),
      tasks_(board_, *arenas_.emplace_back(make_arena(participant_id::host)), settings),
      listener_(tasks_) {
  for (std::size_t worker = 0; worker < workers; ++worker) {
    arenas_.push_back(make_arena(static_cast<participant_id>(worker + 2)));
  }
}

thread_world::~thread_world() { stop_workers(); }

std::unique_ptr<arena> thread_world::make_arena(participant_id self) {
  return std::make_unique<arena>(extent_map(extents_, table_mark(extents_used_)),
                                 block_table(blocks_, table_mark(blocks_used_)), payload_.bytes(), file_,
                                 arena::options{.self = self});
}

void thread_world::start_workers() {
  for (std::size_t worker = 0; worker < board_.sizes().workers; ++worker) {
    workers_.emplace_back([this, worker] {
      token_decoder functions(board_.modules());
      worker_end end(board_, *arenas_[worker + 1], functions,
                     {.index = worker, .bell = known_descriptor(listener_.bell())});
      while (end.run_next()) continue;
    });
  }
}

void thread_world::stop_workers() {
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    board_.line(worker).order = static_cast<std::uint32_t>(worker_order::leave);
    board_.wake(worker);
  }
  for (auto& each : workers_) each.join();
  workers_.clear();
}

process_world::process_world(std::size_t workers, const spin_policy& spin, dispatcher::options settings,
                             std::size_t slots, std::size_t room)
    : domain_({.arena_bytes = std::size_t{256} << 20U, .max_participants = 64, .inherited = true}),
      board_({.workers = std::max(workers, room), .active = workers, .task_slots = slots}, spin,
             memfd_pages::when_touched, mapping::inherit::yes),
      functions_(board_.modules()),
      tasks_(board_, domain_.blocks(), settings),
      listener_(tasks_),
      ids_(workers) {
  for (std::size_t worker = 0; worker < workers; ++worker) start(worker);
}

process_world::~process_world() = default;

void process_world::start(std::size_t worker) {
  ids_[worker] = domain_.participants().enrol();
  const auto run = [this, worker](std::size_t) { return work(worker); };
  const auto quiet = listener_.pause();
  if (worker < ranks_.size()) {
    ranks_.replace(worker, run);
  } else {
    ranks_.add(run);
  }
  tasks_.set_worker(worker, ranks_.pid(worker));
}

int process_world::work(std::size_t worker) {
  domain joined({.control = unique_fd(::dup(domain_.files().control.get())),
                 .arena = unique_fd(::dup(domain_.files().arena.get()))},
                ids_[worker]);
  token_decoder functions(board_.modules());
  worker_end end(board_, joined.blocks(), functions, {.index = worker, .bell = known_descriptor(listener_.bell())});
  while (end.run_next()) continue;
  return 0;
}

exit_status process_world::bury(std::size_t worker) {
  const auto how = reap(worker);
  recover(worker, how);
  start(worker);
  return how;
}

void process_world::recover(std::size_t worker, const exit_status& how) {
  tasks_.recover(worker, how);
  domain_.bury(ids_[worker]);
}

}  // namespace muster::test
