// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/worker_end.hpp>

#include "processes.hpp"

namespace muster::test {

/// A thunk and its arguments as a request, for callables of plain values: `request_for<add>(world, 2, 3)`.
template <auto Function, class... Args>
void thunk_of(task_call& call) {
  auto values = codec<Args...>::decode(call.arguments());
  call.enter(task_call::step::running);
  using result = std::decay_t<decltype(std::apply(Function, std::move(values)))>;
  const result value = std::apply(Function, std::move(values));
  call.enter(task_call::step::encoding);
  codec<result>::encode(call.make_reply(codec<result>::size(value)), value);
}

template <auto Function, class... Args>
task_request request_for(arena& memory, token_encoder& functions, const Args&... args) {
  task_request request;
  request.function = functions.encode(&thunk_of<Function, Args...>);
  request.frame = outgoing_frame::of(memory, args...);
  return request;
}

template <class R>
R value_of(const task_reply& reply) {
  if (!reply.succeeded()) reply.error().raise();
  return codec<R>::decode_value(reply.bytes());
}

/// Rings the parent's bell handler: what the supervisor does in a pool.
class bell_listener {
public:
  explicit bell_listener(dispatcher& tasks);
  bell_listener(const bell_listener&) = delete;
  bell_listener& operator=(const bell_listener&) = delete;
  ~bell_listener();
  [[nodiscard]] int bell() const { return bell_.get(); }
  /// While it is held the thread only waits. Whoever forks holds it: AddressSanitizer's allocator, unlike the C
  /// library's, leaves the child what another thread had locked.
  [[nodiscard]] std::unique_lock<std::mutex> pause() { return std::unique_lock(busy_); }

private:
  void listen();
  void answer();

  dispatcher& tasks_;
  unique_fd bell_;
  std::mutex busy_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// A parent and its workers as threads over ONE mapping of everything: what ThreadSanitizer can follow.
class thread_world {
public:
  explicit thread_world(std::size_t workers, dispatcher::options settings = {}, std::size_t slots = 64);
  thread_world(const thread_world&) = delete;
  thread_world& operator=(const thread_world&) = delete;
  ~thread_world();

  /// The workers do not start by themselves, so that a test can prepare what they find.
  void start_workers();
  void stop_workers();

  /// While it is held nobody drains for the parent.
  [[nodiscard]] std::unique_lock<std::mutex> pause() { return listener_.pause(); }

  arena& memory() { return *arenas_.front(); }
  board& shared_board() { return board_; }
  dispatcher& tasks() { return tasks_; }
  token_encoder& functions() { return functions_; }

  template <auto Function, class... Args>
  task_request request(const Args&... args) {
    return request_for<Function>(memory(), functions_, args...);
  }
  template <auto Function, class... Args>
  task_record& post(const Args&... args) {
    return tasks_.post(request<Function>(args...));
  }

private:
  std::unique_ptr<arena> make_arena(participant_id self);

  std::vector<extent_map::word> extents_;
  std::vector<block_descriptor> blocks_;
  std::atomic<std::uint64_t> extents_used_ = 0;
  std::atomic<std::uint64_t> blocks_used_ = 0;
  unique_fd file_;
  mapping payload_;
  std::vector<std::unique_ptr<arena>> arenas_;  // the host's, then one per worker
  board board_;
  token_encoder functions_;
  dispatcher tasks_;
  bell_listener listener_;
  std::vector<std::thread> workers_;
};

/// A parent and its workers as forked processes.
class process_world {
public:
  /// `room`: for how many workers the board is made; 0: as many as there are.
  process_world(std::size_t workers, const spin_policy& spin, dispatcher::options settings = {}, std::size_t slots = 64,
                std::size_t room = 0);
  process_world(const process_world&) = delete;
  process_world& operator=(const process_world&) = delete;
  ~process_world();

  arena& memory() { return domain_.blocks(); }
  board& shared_board() { return board_; }
  dispatcher& tasks() { return tasks_; }
  token_encoder& functions() { return functions_; }
  [[nodiscard]] pid_t pid(std::size_t worker) const { return ranks_.pid(worker); }

  void kill(std::size_t worker) { ranks_.kill(worker); }
  /// Reaps a killed worker, recovers what it had and starts another in its place.
  exit_status bury(std::size_t worker);

  // The same in parts.
  exit_status reap(std::size_t worker) { return ranks_.wait(worker); }
  void recover(std::size_t worker, const exit_status& how);
  void start(std::size_t worker);

  template <auto Function, class... Args>
  task_request request(const Args&... args) {
    return request_for<Function>(memory(), functions_, args...);
  }
  template <auto Function, class... Args>
  task_record& post(const Args&... args) {
    return tasks_.post(request<Function>(args...));
  }

private:
  int work(std::size_t worker);

  domain domain_;
  board board_;
  token_encoder functions_;
  dispatcher tasks_;
  bell_listener listener_;
  std::vector<participant_id> ids_;
  processes ranks_;
};

/// How tasks end: takes their replies, by a sink for each, and counts them.
class counted_ends {
public:
  explicit counted_ends(dispatcher& where) : tasks_(where) {}
  counted_ends(const counted_ends&) = delete;
  counted_ends& operator=(const counted_ends&) = delete;

  /// For one task. It deletes itself when the task ends.
  [[nodiscard]] completion_sink& make_sink() { return *new sink(*this); }

  [[nodiscard]] std::uint64_t values() const { return values_; }
  [[nodiscard]] std::uint64_t errors() const { return errors_; }

private:
  class sink final : public completion_sink {
  public:
    explicit sink(counted_ends& of) : of_(of) {}
    void settled(task_record& record) noexcept override {
      const bool succeeded = of_.tasks_.take(record).succeeded();
      auto& count = succeeded ? of_.values_ : of_.errors_;
      delete this;
      ++count;
    }

  private:
    counted_ends& of_;
  };

  dispatcher& tasks_;
  std::atomic<std::uint64_t> values_ = 0;
  std::atomic<std::uint64_t> errors_ = 0;
};

}  // namespace muster::test
