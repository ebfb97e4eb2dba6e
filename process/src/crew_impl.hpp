// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/mutex.hpp>
#include <muster/process/crew.hpp>

#include "channel.hpp"
#include "spawn.hpp"
#include "supervisor_impl.hpp"

namespace muster {

/// What a crew's handle leads to; it lives as long as handlers on the supervisor's loop need it.
///
/// Thread safety: members marked "loop" belong to the supervisor's thread; those guarded by the mutex are what other
/// threads may see.
class crew::impl final : public std::enable_shared_from_this<crew::impl>, private supervised {
public:
  impl(supervisor& watcher, board& tasks, crew_options options, crew_client& client)
      : supervisor_(watcher),
        board_(tasks),
        options_(std::move(options)),
        client_(client),
        kill_timer_(hub().loop()),
        audit_timer_(hub().loop()),
        time_timer_(hub().loop()) {
    for (std::size_t index = 0; index < board_.sizes().workers; ++index) {
      workers_.push_back(std::make_unique<worker>(index, options_.start_tries, hub().loop()));
    }
    const scoped_lock lock(mutex_);
    infos_.resize(workers_.size());
    for (std::size_t index = 0; index < infos_.size(); ++index) infos_[index].index = index;
    greeted_.resize(workers_.size());
  }

  void start();
  void leave();
  void wait_until_greeted() MUSTER_EXCLUDES(mutex_);
  void begin_stop(worker_order how);
  void kill_after(std::chrono::nanoseconds grace);
  void watch();
  void watch_time(clock::time_point when);
  bool wait_until_gone(deadline until) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<worker_info> workers() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] crew_statistics read_statistics() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_owner() const noexcept { return hub().is_owner(); }
  void log(log_level level, const std::string& message) const { options_.log(level, message); }

private:
  struct worker {
    worker(std::size_t which, unsigned tries, boost::asio::io_context& loop)
        : index(which), life(tries), start_timer(loop), death_timer(loop) {}

    std::size_t index;
    worker_lifecycle life;
    std::uint32_t incarnation = 0;
    participant_id participant = participant_id::none;
    pid_t pid = 0;
    exit_status how;
    std::optional<boost::asio::posix::stream_descriptor> process;  // pidfd
    std::optional<boost::asio::posix::stream_descriptor> control;
    boost::asio::steady_timer start_timer;
    boost::asio::steady_timer death_timer;
    std::chrono::milliseconds death_delay{};
    bool lost = false;  // it can neither be killed nor watched: nobody waits for it any more
  };

  [[nodiscard]] supervisor::impl& hub() const noexcept { return supervisor_.internals(); }
  [[nodiscard]] domain& shared() const noexcept { return *supervisor_.shared(); }

  /// A handler for the loop, which runs `what` unless the crew has been left by then. What it throws breaks the crew:
  /// nobody would come back to what the handler was told, and somebody may wait for it.
  template <class F>
  [[nodiscard]] auto handler(F what) {
    return [self = shared_from_this(), what](boost::system::error_code cancelled = {}) {
      if (!cancelled && !self->left_) self->guard(what);
    };
  }
  /// The same, for what happens to the process that `who` has now.
  template <class F>
  [[nodiscard]] auto handler(worker& who, F what) {
    return handler([&who, of = who.incarnation, what] {
      if (who.pid != 0 && who.incarnation == of) what();
    });
  }
  template <class F>
  void guard(const F& what) noexcept {
    try {
      what();
    } catch (const std::exception& failure) {
      break_down(failure);
    }
  }

  // Loop.
  void bell_rang() noexcept override { client_.bell_rang(); }
  void break_down(const std::exception& failure) noexcept override MUSTER_EXCLUDES(mutex_);
  void perform(worker& who, worker_lifecycle::action what);
  void spawn(worker& who);
  void start_process(worker& who);
  void connect(worker& who, detail::child& started, unique_fd& control);
  void disconnect(worker& who);
  void watch(worker& who);
  void listen(worker& who);
  [[nodiscard]] bool hear_next(worker& who);
  void hear(worker& who, const detail::message& heard);
  void answer_hello(worker& who, const detail::message& heard);
  void refuse(worker& who, const std::string& reason);
  void give_up(const error_info& why) MUSTER_EXCLUDES(mutex_);
  void stop_all();
  void publish(const worker& who) MUSTER_EXCLUDES(mutex_);
  void check_gone() MUSTER_EXCLUDES(mutex_);

  // Loop: crew_death.cpp.
  void kill(worker& who) noexcept;
  void kill_all() noexcept;
  void lose(worker& who, const std::exception& failure) noexcept;
  void look_for_death(worker& who);
  void look_again(worker& who);
  void look_again_later(worker& who);
  [[nodiscard]] exit_status take_status(worker& who);
  void bury(worker& who);
  void hear_last(worker& who) noexcept;
  void count_end(const worker& who, bool left_in_order) MUSTER_EXCLUDES(mutex_);
  void recover(participant_id dead) noexcept;

  // Loop: crew_audit.cpp.
  void next_audit();
  void audit() MUSTER_EXCLUDES(mutex_);
  void kill_suspect(worker& who) MUSTER_EXCLUDES(mutex_);
  void replace_all() MUSTER_EXCLUDES(mutex_);
  void start_again_when_all_are_gone();
  void give_orders();

  // Loop: crew_time.cpp.
  void next_check(clock::time_point when);
  void check_times();
  void kill_overdue(worker& who) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_leaving() const;

  supervisor& supervisor_;  // owned by the handle: handlers on its loop may be the last to hold this object
  board& board_;
  const crew_options options_;
  crew_client& client_;

  std::vector<std::unique_ptr<worker>> workers_;             // loop
  boost::asio::steady_timer kill_timer_;                     // loop
  boost::asio::steady_timer audit_timer_;                    // loop
  boost::asio::steady_timer time_timer_;                     // loop: armed while next_check_ is a time
  clock::time_point next_check_ = clock::time_point::max();  // loop
  bool watching_ = false;                                    // loop: audits are due
  bool replacing_ = false;                                   // loop: all are to be gone before one is started again
  worker_order order_ = worker_order::work;                  // loop: what they were told last
  std::optional<error_info> giving_up_;                      // loop
  bool left_ = false;                                        // loop: the handle is gone, and with it board and client
  recovery_registry::registration recovery_;                 // loop

  mutable mutex mutex_;
  condition changed_;
  std::vector<worker_info> infos_ MUSTER_GUARDED_BY(mutex_);
  std::vector<bool> greeted_ MUSTER_GUARDED_BY(mutex_);  // at least once
  std::optional<error_info> broken_ MUSTER_GUARDED_BY(mutex_);
  crew_statistics statistics_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
