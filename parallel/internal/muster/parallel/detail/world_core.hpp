// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/duration.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/error.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/parallel/detail/call_progress.hpp>
#include <muster/parallel/detail/call_trace.hpp>
#include <muster/parallel/detail/called_function.hpp>
#include <muster/parallel/detail/failure_order.hpp>
#include <muster/parallel/detail/frame_port.hpp>
#include <muster/parallel/detail/function_access.hpp>
#include <muster/parallel/detail/rank_process.hpp>
#include <muster/parallel/detail/rank_variable.hpp>
#include <muster/parallel/detail/share_inputs.hpp>
#include <muster/parallel/detail/world_call_header.hpp>
#include <muster/parallel/detail/world_member.hpp>
#include <muster/parallel/detail/world_memory.hpp>
#include <muster/parallel/world_options.hpp>
#include <muster/pool/detail/thread_host.hpp>
#include <muster/pool/pool.hpp>

namespace muster::detail {

struct registered_variable {
  rank_variable what;
  std::uint8_t live = 0;    ///< of the copies on the host
  bool is_updated = false;  ///< by a function that was made: on the host there is room for what it is to be
  bool is_reduced = false;  ///< likewise, by values of all ranks: each of them writes into all copies
  std::uint64_t since = 0;  ///< as of a function
  std::uint64_t changed = 0;
  std::uint8_t live_there = 0;        ///< of those on devices
  bool is_resident = false;           ///< calls use those on devices
  bool is_fresh_there = false;        ///< they have what counts
  bool is_alike = false;              ///< all ranks have the same bits
  std::vector<bool> is_stale_here{};  ///< by rank: the host has not; none: it has, of all

  [[nodiscard]] named_copy named() const noexcept;
  /// A call has made the other copies on devices live ones.
  void change_there(bool to_alike);
  [[nodiscard]] bool is_stale(std::size_t rank) const { return rank < is_stale_here.size() && is_stale_here[rank]; }
};

struct residence_job;

/// One call of a function.
struct world_request {
  std::uint32_t function = 0;
  std::uint32_t slices = 1;
  std::uint64_t outputs = 0;
  std::uint64_t rows = 0;
  std::uint64_t row_bytes = 0;  ///< of a row of all inputs together
  sent_call call{};
  bool is_for_nothing = false;  ///< it has rows, but there are none in any rank
  /// Writes the values that all ranks get; called twice.
  std::function<void(frame_writer&)> write_values{};
  /// Takes in what a rank's outputs are, in the order of ranks.
  std::function<void(frame_reader&)> read_outputs{};
  /// Makes of them what the caller gets, which is memory of his own.
  std::function<void()> finish_outputs{};
};

/// The caller's end of a world: its ranks, functions and variables, and the conduct of calls.
///
/// Thread safety: distinct objects: safe. Shared objects: safe; one call at a time, others wait.
/// Process safety: belongs to the process that made it.
class world_core : public std::enable_shared_from_this<world_core> {
public:
  explicit world_core(const world_options& options);
  world_core(const world_core&) = delete;
  world_core& operator=(const world_core&) = delete;
  ~world_core();

  [[nodiscard]] const world_options& options() const noexcept { return options_; }
  /// Whether this is the process that made it, and not a forked child.
  [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }
  void require_here() const { made_in_.require_here("a world"); }
  [[nodiscard]] std::size_t ranks() const noexcept { return memory_.shape().ranks; }
  /// Which rank the caller is; none if he does not compute.
  [[nodiscard]] std::optional<std::size_t> own_rank() const noexcept { return own_rank_; }
  [[nodiscard]] token_encoder& functions() noexcept { return encoder_; }
  [[nodiscard]] const std::shared_ptr<domain>& where() const noexcept { return domain_; }

  /// Whether this very thread is at a call, in a function that it runs as a rank.
  [[nodiscard]] bool is_inside() const noexcept;

  std::uint32_t add(registered_function what) MUSTER_EXCLUDES(mutex_);
  /// From inside of a call: when it is over.
  void remove_function(std::uint32_t number) noexcept MUSTER_EXCLUDES(mutex_);
  std::uint32_t add(rank_variable what) MUSTER_EXCLUDES(mutex_);
  void remove_variable(std::uint32_t number) noexcept MUSTER_EXCLUDES(mutex_);

  /// Calls `what` with all variables, while no call runs. Whatever it changes of a variable's tensors it says by
  /// setting `changed` to 0. Where it finds no shared memory while ranks still have variables as they were, these let
  /// go of them, and it is called once more. Throws what it throws, and what a call does.
  void with_variables(const std::function<void(std::map<std::uint32_t, registered_variable>&)>& what)
      MUSTER_EXCLUDES(mutex_);
  /// What is done with one of some variables, by its place among them.
  using variable_use = std::function<void(std::size_t, registered_variable&)>;
  /// Likewise with some of them: `check` looks at dtypes and shapes of each; then the host gets what that rank has, or
  /// all have, where it has it not; and if nothing of this has thrown `what` is called with one after the other. Throws
  /// what a call does, where ranks have to be asked.
  void with_each_variable(std::span<const std::uint32_t> numbers, std::optional<std::size_t> rank,
                          const variable_use& check, const variable_use& what) MUSTER_EXCLUDES(mutex_);

  using preparation =
      std::function<world_request(const registered_function&, const std::map<std::uint32_t, registered_variable>&)>;
  /// Is told, under the lock, of a call that has happened: where its time went, by rank. Waits for nobody.
  using call_listener = std::function<void(const std::vector<rank_times>&)>;  // does not throw
  /// Makes the call: `prepare` is asked for it under the lock, when the variables do not change any more. It takes
  /// `timeout` at most, and world_options::call_timeout.
  /// Throws rank_error, what `prepare` and `read_outputs` throw, errc::pool_closed. Nothing has happened then.
  void call(const preparation& prepare, std::uint32_t function, std::chrono::nanoseconds timeout,
            const call_listener& happened) MUSTER_EXCLUDES(mutex_);
  /// The same in this thread alone, with what the caller's rank has of the variables.
  void run_here(const preparation& prepare, std::uint32_t function) MUSTER_EXCLUDES(mutex_);
  /// Tells all ranks of everything that they do not know yet, and asks whether they could make all functions.
  void distribute() MUSTER_EXCLUDES(mutex_);

  /// A number for the name of a function that was given none.
  [[nodiscard]] std::uint32_t next_function() noexcept { return unnamed_.fetch_add(1, std::memory_order_relaxed); }
  /// The thread that makes calls in the background, in the order in which they were asked for.
  /// Throws errc::pool_closed.
  [[nodiscard]] std::shared_ptr<local_core> conductor() MUSTER_EXCLUDES(conductor_mutex_);
  /// Whether this thread is that one.
  [[nodiscard]] bool is_conductor() const noexcept;

  /// Where calls are written, if that is wanted.
  [[nodiscard]] call_trace& trace() noexcept { return trace_; }

  /// Returns when the ranks have left, whoever closes it; at once in the output's sink while another thread does so. In
  /// the conductor's thread it does not wait for the calls that are still to be made there, which throw
  /// errc::pool_closed.
  void close() MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_closed() const MUSTER_EXCLUDES(mutex_);
  /// Of the ranks, 0 for the caller's own and for one that is being replaced.
  [[nodiscard]] std::vector<pid_t> pids() const MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] std::uint64_t replaced() const noexcept { return replaced_.load(std::memory_order_relaxed); }

private:
  struct outcome;  // of a call that runs
  class presence;  // of this thread at a call

  // world_ranks.cpp
  void start_ranks() MUSTER_REQUIRES(mutex_);
  // For a call of that function, which has so much time.
  void replace_the_dead(const std::string& function, deadline until) MUSTER_REQUIRES(mutex_);
  void await_ranks(const std::string& function, deadline until) MUSTER_REQUIRES(mutex_);
  [[noreturn]] void throw_starting(std::size_t rank, const std::string& function) const;
  [[nodiscard]] rank_process* process_of(std::size_t rank) noexcept;
  [[nodiscard]] device device_of(std::size_t rank) const;
  [[nodiscard]] device_choice devices_of_workers() const;

  // world_residence.cpp
  [[nodiscard]] bool are_all_on_devices() const;
  [[nodiscard]] bool has_room_there(const registered_variable& which, std::size_t copies) const;
  void make_room_there(const registered_function& function, deadline until) MUSTER_REQUIRES(mutex_);
  void leave_devices() MUSTER_REQUIRES(mutex_);
  [[nodiscard]] std::optional<std::size_t> source_of(const registered_variable& which, std::size_t otherwise) const;
  void bring(std::uint32_t number, std::optional<std::size_t> rank) MUSTER_REQUIRES(mutex_);
  void bring_all(const function_spec& spec) MUSTER_REQUIRES(mutex_);
  void tend(const std::vector<residence_job>& jobs, const std::string& why, deadline until, outcome& ended)
      MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool has_news() const MUSTER_REQUIRES(mutex_);
  void spread_news(deadline until) MUSTER_REQUIRES(mutex_);
  // What `what` makes of what is given; where it finds no shared memory, once more after ranks have let go of what
  // variables were. Requires: then it has changed nothing that another try would not change again.
  template <class What, class... Given>
  auto with_room(deadline until, const What& what, Given&... given) MUSTER_REQUIRES(mutex_) {
    try {
      return what(given...);
    } catch (const error& failure) {
      if (failure.code() != errc::out_of_memory) throw;
      note_changes();  // what it has changed until now is news, too
      if (!has_news()) throw;
    }
    spread_news(until);
    return what(given...);
  }
  [[nodiscard]] bool has_lost_ranks() const noexcept;
  void read_made(std::size_t rank, outcome& ended) MUSTER_REQUIRES(mutex_);
  void commit_there(const registered_function& function, bool is_for_nothing) MUSTER_REQUIRES(mutex_);

  // world_call.cpp
  [[nodiscard]] deadline call_end() const;
  void require_open() const MUSTER_REQUIRES(mutex_);
  // world_here.cpp
  [[nodiscard]] std::map<std::uint32_t, registered_variable> own_variables(const function_spec& spec) const
      MUSTER_REQUIRES(mutex_);
  static void write_back(const registered_variable& which);
  static void make_room_here(registered_variable& which);
  void note_written_here(std::uint32_t number) MUSTER_REQUIRES(mutex_);

  [[noreturn]] void throw_closed() const;
  // What comes back dies without the lock: code may hold what is of this world, and is the program's.
  using function_node = std::map<std::uint32_t, registered_function>::node_type;
  using variable_node = std::map<std::uint32_t, registered_variable>::node_type;
  [[nodiscard]] function_node erase_function(std::uint32_t number) noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] variable_node erase_variable(std::uint32_t number) noexcept MUSTER_REQUIRES(mutex_);
  void erase_dropped() noexcept MUSTER_REQUIRES(mutex_);
  void all_have_been_told() noexcept MUSTER_REQUIRES(mutex_);
  void note_changes() MUSTER_REQUIRES(mutex_);
  void tell_news() MUSTER_REQUIRES(mutex_);
  void tell_own_news() MUSTER_REQUIRES(mutex_);
  void tell_news(std::size_t rank) MUSTER_REQUIRES(mutex_);
  void prepare_arguments(const registered_function& function, const world_request& request) MUSTER_REQUIRES(mutex_);
  void order(world_order what) noexcept MUSTER_REQUIRES(mutex_);
  void run_own_share(const outcome& ended) MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool is_hopeless();
  void conduct(outcome& ended, const world_request& request) MUSTER_REQUIRES(mutex_);
  void look_at_ranks() noexcept MUSTER_REQUIRES(mutex_);
  [[nodiscard]] bool have_answered() const noexcept;
  [[nodiscard]] prospect ask_awaited() const noexcept;
  [[nodiscard]] bool has_somebody_died() noexcept;
  [[nodiscard]] bool is_nobody_to_blame() const noexcept;
  void note_lateness(outcome& ended) const noexcept;
  void await_answers(outcome& ended) MUSTER_REQUIRES(mutex_);
  void read_replies(outcome& ended, const world_request& request) MUSTER_REQUIRES(mutex_);
  void commit(registered_function& function, const world_request& request) MUSTER_REQUIRES(mutex_);

  // world_failure.cpp
  [[nodiscard]] call_failure read_failure(std::size_t rank);
  [[nodiscard]] call_failure read_death(std::size_t rank, const outcome& ended) MUSTER_REQUIRES(mutex_);
  // In the order in which they happened; never none.
  [[nodiscard]] std::vector<call_failure> failures_of(const outcome& ended) MUSTER_REQUIRES(mutex_);
  [[noreturn]] void fail(const outcome& ended, const registered_function& function) MUSTER_REQUIRES(mutex_);
  void end_rank(std::size_t rank) MUSTER_REQUIRES(mutex_);
  [[noreturn]] void throw_first(const std::vector<call_failure>& all, const registered_function& function)
      MUSTER_REQUIRES(mutex_);

  const process_mark made_in_;
  const world_options options_;
  std::shared_ptr<domain> domain_;
  world_ticket ticket_;  // before the pool: its callbacks touch the memory
  world_memory memory_;
  token_encoder encoder_;
  const std::optional<std::size_t> own_rank_;
  const std::shared_ptr<called_function> called_;  // where somebody takes what ranks write
  const std::vector<device_assignment> devices_;   // of ranks, in turn; none: processors
  bool is_resident_;                               // variables are on the ranks' devices
  std::unique_ptr<pool> pool_;                     // none once it is closed
  call_trace trace_;

  mutable mutex mutex_;
  std::atomic<std::thread::id> caller_{};  // who has it, for who calls from inside of a call
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
  bool has_ended_ MUSTER_GUARDED_BY(mutex_) = false;  // after that: the pool is gone
  condition ended_;
  std::map<std::uint32_t, registered_function> functions_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::uint32_t, registered_variable> variables_ MUSTER_GUARDED_BY(mutex_);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> gone_functions_ MUSTER_GUARDED_BY(mutex_);  // change, number
  std::vector<std::pair<std::uint64_t, std::uint32_t>> gone_variables_ MUSTER_GUARDED_BY(mutex_);
  std::uint32_t last_number_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t changes_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::uint64_t offered_ MUSTER_GUARDED_BY(mutex_) = 0;        // up to which change, to any rank
  std::vector<std::uint64_t> told_ MUSTER_GUARDED_BY(mutex_);  // up to which change, by rank
  std::uint64_t learned_ MUSTER_GUARDED_BY(mutex_) = 0;        // up to which change all ranks could make all functions
  std::vector<rank_process> processes_;                        // by rank, without the caller's
  std::vector<frame_outbox> news_ MUSTER_GUARDED_BY(mutex_);   // by rank
  frame_outbox arguments_ MUSTER_GUARDED_BY(mutex_);
  borrowing_source lent_ MUSTER_GUARDED_BY(mutex_);  // by ranks, while their outputs are read
  // What follows belongs to who has the lock, too; also inside of lambdas, where the analysis does not see it.
  std::vector<rank_times> times_;                 // of the call, by rank
  std::vector<std::uint32_t> dropped_functions_;  // inside of a call, until it is over
  std::vector<std::uint32_t> dropped_variables_;
  std::unique_ptr<world_member> own_;
  sleeper sleeper_;
  call_progress progress_;
  std::uint64_t epoch_ = 0;
  std::atomic<std::uint64_t> replaced_ = 0;
  std::atomic<std::uint32_t> unnamed_ = 1;
  mutex conductor_mutex_;
  std::unique_ptr<thread_host> conductor_ MUSTER_GUARDED_BY(conductor_mutex_);
  bool conductor_closed_ MUSTER_GUARDED_BY(conductor_mutex_) = false;
  std::atomic<std::thread::id> conductor_thread_;
};

}  // namespace muster::detail
