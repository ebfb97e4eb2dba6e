// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <muster/base/detail/mutex.hpp>
#include <muster/process/crew.hpp>

#include "channel.hpp"
#include "death_delay.hpp"
#include "descriptor_clerk.hpp"
#include "ending_stream.hpp"
#include "environment_copy.hpp"
#include "line_splitter.hpp"
#include "log_relay.hpp"
#include "loop_call.hpp"
#include "memory_group.hpp"
#include "output_pipe.hpp"
#include "pause_watch.hpp"
#include "program_command.hpp"
#include "program_state.hpp"
#include "spawn.hpp"
#include "start_delay.hpp"
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
        command_(options_.program.empty()
                     ? detail::program_command::of_process()
                     : detail::program_command{.file = options_.program, .program = options_.program}),
        log_(options_.log),
        client_(client),
        audit_timer_(hub().loop()),
        time_timer_(hub().loop()),
        returning_(board_.sizes().workers),
        size_(board_.active()) {
    for (std::size_t index = 0; index < board_.sizes().workers; ++index) {
      workers_.push_back(std::make_unique<worker>(index, options_.start_tries, hub().loop()));
      successors_.emplace_back();
    }
    const scoped_lock lock(mutex_);
    shown_size_ = size_;
    infos_.resize(workers_.size());
    for (std::size_t index = 0; index < infos_.size(); ++index) {
      infos_[index] = {.index = index, .device = assignment_of(index).device};
    }
    greeted_.resize(workers_.size());
    members_.resize(workers_.size());
  }

  void start();
  void leave();
  [[nodiscard]] bool all_are_greeted() const MUSTER_REQUIRES(mutex_);
  void wait_until_greeted() MUSTER_EXCLUDES(mutex_);
  void begin_stop(worker_order how) noexcept;
  void kill_now();
  void kill_at_last() noexcept;
  using size_listener = std::function<void(const error_info*)>;
  void resize(std::size_t size, size_listener done);
  void call_back(std::size_t worker) noexcept;
  void watch() noexcept;
  void watch_time(clock::time_point when) noexcept;
  bool send(std::size_t worker, int signal);
  bool wait_until_gone(deadline until) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<worker_info> workers() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] crew_statistics read_statistics() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<crew_member_statistics> read_member_statistics() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_owner() const noexcept { return hub().is_owner(); }
  void log(log_level level, std::string message) { log_.say(level, std::move(message)); }

private:
  struct worker {
    worker(std::size_t which, unsigned tries, boost::asio::io_context& loop)
        : index(which), life(tries), start_timer(loop), death_timer(loop), age_timer(loop) {}

    std::size_t index;
    worker_lifecycle life;
    std::uint32_t incarnation = 0;
    std::uint64_t serial = 0;  // of its process, among all of the crew
    participant_id participant = participant_id::none;
    pid_t pid = 0;
    exit_status how;
    std::optional<boost::asio::posix::stream_descriptor> process;  // pidfd
    std::unique_ptr<detail::memory_group> group;
    std::optional<detail::ending_stream> control;
    std::shared_ptr<detail::descriptor_clerk> clerk;  // once it is welcome
    boost::asio::steady_timer start_timer;            // of its process; or until it is tried to make one
    detail::start_delay delay;                        // how long that is next time
    std::optional<std::string> unwelcome;             // why its process was not answered, for want of something
    bool follows_unwelcome = false;                   // its process is in the place of such a one
    boost::asio::steady_timer death_timer;
    std::chrono::milliseconds death_delay = detail::first_death_delay;
    bool lost = false;                    // it can neither be killed nor watched: nobody waits for it any more
    boost::asio::steady_timer age_timer;  // armed while it works, if it may only become so old
    bool too_old = false;                 // it is to be replaced for that
    bool too_big = false;                 // or for that, as it said
    bool unfit = false;                   // or because it said so
    bool leaves = false;                  // it is told to
    bool deserted = false;                // its process lived on after it had closed its control socket
    bool stands_by = false;               // it is to follow another
    clock::time_point started;
    std::optional<clock::time_point> ready;
    struct captured_stream {
      std::optional<boost::asio::posix::stream_descriptor> pipe;
      detail::line_splitter lines;
    };
    std::array<captured_stream, 2> streams;  // by output_stream
    detail::last_lines last_lines;
    std::vector<std::byte> crash;  // a crash_record
    std::string terminated;        // why it has called std::terminate; empty: it has not
    last_words words;              // while it is buried
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
    return handler([&who, of = who.serial, what] {
      if (who.pid != 0 && who.serial == of) what();
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
  void stop_as_ordered() noexcept;
  void perform(worker& who, worker_lifecycle::action what);
  void disconnect(worker& who);
  void remove(std::unique_ptr<detail::memory_group> group) noexcept;
  // Each worker, its successor, and a process that comes to nothing.
  [[nodiscard]] std::ptrdiff_t most_children() const { return 3 * static_cast<std::ptrdiff_t>(workers_.size()); }
  void listen(worker& who);
  [[nodiscard]] bool hear_next(worker& who);
  void hear(worker& who, detail::message& heard);
  void answer_hello(worker& who, const detail::message& heard);
  void refuse(worker& who, const std::string& reason);
  void give_up(const error_info& why) MUSTER_EXCLUDES(mutex_);
  void stop_all();
  void publish(const worker& who) MUSTER_EXCLUDES(mutex_);
  void note_ready(const worker& who) MUSTER_EXCLUDES(mutex_);
  void count(const worker& who, std::uint64_t crew_statistics::* what) MUSTER_REQUIRES(mutex_);
  void check_gone() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool all_are_gone() const;

  // Loop: crew_start.cpp.
  void spawn(worker& who);
  void spawn_later(worker& who, std::chrono::nanoseconds delay);
  [[nodiscard]] std::string why_not_started() const;
  void fail_start(worker& who, const std::exception& failure);
  void put_off(worker& who, const std::string& reason);
  void fail_handshake(worker& who, const std::exception& failure);
  void tell_of_lack(const error_info& why) MUSTER_EXCLUDES(mutex_);
  void end_lack(worker& who) MUSTER_EXCLUDES(mutex_);
  void start_process(worker& who);
  void connect(worker& who, detail::child& started, unique_fd& control, std::array<detail::output_pipe, 2>& pipes);
  void watch(worker& who);

  // Loop: crew_place.cpp.
  [[nodiscard]] detail::child execute(std::size_t index, detail::spawn_request request);
  void tell_that_unbound(std::size_t index);
  [[nodiscard]] const cpu_list& cpus_of(std::size_t index) const;
  [[nodiscard]] unsigned threads_of(std::size_t index) const;
  [[nodiscard]] const device_assignment& assignment_of(std::size_t index) const;
  [[nodiscard]] std::string name_of(std::size_t index) const;
  [[nodiscard]] error_info with_name(std::size_t index, const error_info& why) const;

  // Loop: crew_death.cpp.
  void kill(worker& who) noexcept;
  void kill_all() noexcept;
  void lose(worker& who, const std::exception& failure) noexcept;
  void await_end(worker& who);
  void look_for_death(worker& who);
  void end_deserter(worker& who) noexcept;
  [[nodiscard]] static bool is_dead(worker& who);
  void look_again(worker& who);
  void look_again_later(worker& who);
  void bury(worker& who);
  [[nodiscard]] exit_status take_status(worker& who);
  void gather_words(worker& who);
  void hear_last(worker& who) noexcept;
  void replace(worker& who);
  void recover(participant_id dead) noexcept;
  void count_end(const worker& who, bool left_in_order) MUSTER_EXCLUDES(mutex_);

  // Loop: crew_audit.cpp.
  void begin_audits() noexcept;
  void next_audit();
  void audit() MUSTER_EXCLUDES(mutex_);
  void kill_suspect(worker& who) MUSTER_EXCLUDES(mutex_);
  void replace_all() MUSTER_EXCLUDES(mutex_);
  void start_again_when_all_are_gone();
  void give_orders();
  [[nodiscard]] worker_order order_for(const worker& who) const;

  // Loop: crew_size.cpp.
  void set_size(std::size_t size) MUSTER_EXCLUDES(mutex_);
  class size_call;
  void begin_size(std::size_t size, size_listener done) noexcept;
  void start_returning() noexcept;
  void start_if_absent(worker& who);
  void forget_start(worker& who);
  [[nodiscard]] bool is_wanted(const worker& who);
  [[nodiscard]] bool has_size() const MUSTER_EXCLUDES(mutex_);
  void tell_size(const error_info* failure);
  void check_size() MUSTER_EXCLUDES(mutex_);

  // Loop: crew_age.cpp.
  void begin_to_age(worker& who);

  // Loop: crew_succession.cpp.
  void succeed(worker& who);
  void note_unfit(worker& who, const std::string& why);
  void prepare_successor(const worker& who);
  void end_preparation(worker& next);
  void retire(worker& who);
  void be_ready(worker& who);
  void bury_successor(worker& next);
  [[nodiscard]] bool may_hand_over(const worker& before) const;
  bool hand_over(const worker& before);
  void tell_to_begin(worker& who);
  void dismiss(worker& next);
  void dismiss_all();
  [[nodiscard]] bool has_successor(const worker& who) const;

  // Loop: crew_output.cpp.
  void listen_to_output(worker& who, output_stream which);
  void read_output(worker& who, output_stream which, std::size_t most_bytes);
  void end_output(worker& who);
  void tell(worker& who, output_stream which, std::string_view text, bool ends_line);

  // Loop: crew_time.cpp.
  void watch_earlier() noexcept;
  void next_check(clock::time_point when);
  void sleep_a_step();
  void note_pause();
  void check_times();
  void kill_for_task(worker& who, bool cancelled) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_leaving() const;

  supervisor& supervisor_;  // owned by the handle: handlers on its loop may be the last to hold this object
  board& board_;
  const crew_options options_;
  const detail::program_command command_;  // of the workers
  detail::log_relay log_;
  const detail::environment_copy environment_;  // of the workers, as the next
  const detail::program_state program_state_{options_.ignored_signals};
  crew_client& client_;

  std::uint64_t processes_ = 0;                              // loop: that were ever started
  std::vector<std::unique_ptr<worker>> workers_;             // loop
  std::vector<std::unique_ptr<worker>> successors_;          // loop: by index; those without a process are nobody
  bool expects_children_ = false;                            // loop: the hub has room for them
  boost::asio::steady_timer audit_timer_;                    // loop
  boost::asio::steady_timer time_timer_;                     // loop: a step, while next_check_ is a time
  clock::time_point next_check_ = clock::time_point::max();  // loop
  detail::pause_watch pause_watch_;                          // loop: of the sleep until then
  bool watching_ = false;                                    // loop: audits are due
  // What other threads ask the loop for, and what they say with it. Relaxed: the list of calls orders it.
  detail::member_call<impl, &impl::stop_as_ordered> stop_call_{*this};
  std::atomic<worker_order> stop_order_ = worker_order::work;
  detail::member_call<impl, &impl::begin_audits> watch_call_{*this};
  detail::member_call<impl, &impl::watch_earlier> time_call_{*this};
  std::atomic<clock::rep> wanted_check_ = clock::duration::max().count();
  std::atomic<clock::rep> check_asked_ = 0;  // when watch_time() was called first since watch_earlier(); 0: not
  detail::member_call<impl, &impl::start_returning> return_call_{*this};
  std::vector<std::atomic<bool>> returning_;         // by worker
  bool told_that_unbound_ = false;                   // loop: some worker's processors are gone
  bool replacing_ = false;                           // loop: all are to be gone before one is started again
  worker_order order_ = worker_order::work;          // loop: what they were told last
  std::size_t size_;                                 // loop: workers beyond are to leave
  std::vector<size_listener> size_waiters_;          // loop: of resize
  std::optional<error_info> giving_up_;              // loop
  std::optional<clock::time_point> lacking_since_;   // loop: processes cannot be started for want of something
  clock::time_point last_end_;                       // loop: of a process
  std::minstd_rand chance_{std::random_device()()};  // loop
  bool left_ = false;                                // loop: the handle is gone, and with it board and client
  recovery_registry::registration recovery_;         // loop

  mutable mutex mutex_;
  condition changed_;
  std::vector<worker_info> infos_ MUSTER_GUARDED_BY(mutex_);
  std::vector<bool> greeted_ MUSTER_GUARDED_BY(mutex_);    // at least once since it became part of the crew
  std::size_t shown_size_ MUSTER_GUARDED_BY(mutex_) = 0;   // size_
  std::size_t standing_by_ MUSTER_GUARDED_BY(mutex_) = 0;  // successors with a process
  std::optional<error_info> broken_ MUSTER_GUARDED_BY(mutex_);
  std::optional<error_info> lack_ MUSTER_GUARDED_BY(mutex_);  // for longer than anybody should have to wait
  crew_statistics statistics_ MUSTER_GUARDED_BY(mutex_);
  struct member {
    crew_statistics processes;
    std::optional<clock::time_point> ready;  // since when it takes tasks
    std::chrono::nanoseconds start_up{};
    std::chrono::nanoseconds served{};  // by earlier ones
  };
  std::vector<member> members_ MUSTER_GUARDED_BY(mutex_);  // by worker
};

}  // namespace muster
