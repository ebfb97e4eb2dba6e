// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/collectives/detail/call_header.hpp>
#include <muster/collectives/detail/group_memory.hpp>
#include <muster/collectives/detail/work_home.hpp>
#include <muster/collectives/group_error.hpp>
#include <muster/collectives/group_options.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/memory/detail/wait/place.hpp>
#include <muster/memory/detail/wait/rank_identity.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/memory/domain.hpp>

namespace muster::detail {

/// What one rank waits for, so that an error can say it.
struct waiting_for {
  const char* operation = "";
  std::uint64_t sequence = 0;
  std::optional<std::chrono::nanoseconds> timeout = {};  ///< instead of the group's
  std::size_t whom = rank_line::anybody;
  bool until_done = false;             ///< all have entered the call, and are to confirm
  std::optional<deadline> until = {};  ///< once somebody was waited for: for the others too
};

/// group_traffic that one thread at a time adds to while others may ask.
///
/// Thread safety: read(): safe. Counting: one thread at a time.
class traffic_counts {
public:
  void count_call() noexcept { add(calls_, 1); }
  void count_exchange(std::uint64_t words_looked) noexcept {
    add(exchanges_, 1);
    add(words_looked_, words_looked);
  }
  void count_bytes(std::uint64_t read, std::uint64_t written) noexcept {
    add(bytes_read_, read);
    add(bytes_written_, written);
  }
  [[nodiscard]] group_traffic read() const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    return {.calls = calls_.load(relaxed),
            .exchanges = exchanges_.load(relaxed),
            .words_looked = words_looked_.load(relaxed),
            .bytes_read = bytes_read_.load(relaxed),
            .bytes_written = bytes_written_.load(relaxed)};
  }

private:
  using count = std::atomic<std::uint64_t>;
  // Not fetch_add, which costs more than a short call's other arithmetic.
  static void add(count& to, std::uint64_t what) noexcept {
    to.store(to.load(std::memory_order_relaxed) + what, std::memory_order_relaxed);
  }

  count calls_ = 0;
  count exchanges_ = 0;
  count words_looked_ = 0;
  count bytes_read_ = 0;
  count bytes_written_ = 0;
};

/// A rank's end of a group's memory: it publishes what it calls, waits for the others to do so, and finds out who is
/// missing. It knows nothing of tensors.
///
/// A call is one exchange or two. In the first, every rank writes what it calls and, if it is short, what it
/// contributes into its slot, publishes the call's number there, and waits until all the others have. A slot is used
/// again two calls later: by then everybody has published the call between, and so has read it. Where ranks read or
/// write one another's tensors, all wait for one another a second time when they are done.
///
/// Thread safety: distinct objects: safe. Shared objects: one call at a time; waiting for messages meanwhile is safe.
/// Process safety: any member may be killed at any instruction: who waits for it is told by the domain's deaths.
/// Lifetime: keeps the domain and the group's memory.
class rank_end {
public:
  /// Joins. Throws errc::invalid_argument when the rank is taken or out of range.
  rank_end(std::shared_ptr<domain> where, shared_block block, std::size_t rank);
  rank_end(const rank_end&) = delete;
  rank_end& operator=(const rank_end&) = delete;
  ~rank_end();

  /// Nobody needs to wait for this rank any more.
  void depart() noexcept;

  /// Whether this is the process that has joined, and not a forked child.
  [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }
  /// Throws errc::forked in a forked child.
  void require_here() const { made_in_.require_here("a group"); }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return memory_.shape().ranks; }
  [[nodiscard]] const group_memory& memory() const noexcept { return memory_; }
  [[nodiscard]] const shared_block& block() const noexcept { return block_; }
  [[nodiscard]] const std::shared_ptr<domain>& where() const noexcept { return domain_; }
  [[nodiscard]] group_member member(std::size_t rank) const noexcept;
  /// Where callbacks of futures of this rank's operations run.
  [[nodiscard]] lazy_work_home& futures() noexcept { return futures_; }
  /// Its process is gone, and it had not left before.
  [[nodiscard]] bool is_dead(std::size_t rank) const noexcept;
  [[nodiscard]] bool has_left(std::size_t rank) const noexcept;

  // ---- calls

  /// The number of the call that begins now.
  std::uint64_t begin_call();
  /// The number of the present one. Thread safety: safe.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_.load(std::memory_order_relaxed); }
  /// Where this rank's contribution to the present call goes.
  [[nodiscard]] std::span<std::byte> own_payload() const noexcept { return memory_.payload(rank_, sequence()); }
  [[nodiscard]] std::span<std::byte> payload(std::size_t rank) const noexcept {
    return memory_.payload(rank, sequence());
  }
  /// The first exchange. Returns what each rank calls, good until the next call.
  /// Throws group_error when not everybody comes.
  std::span<const call_header> enter(const call_header& own, const call_options& how);
  /// Says more of the present call, before it is confirmed: what the others then find by look_again().
  /// Requires: nobody needs to know before; the others read nothing but the header until then.
  void amend(const call_header& own) noexcept;
  [[nodiscard]] std::span<const call_header> look_again() noexcept;
  /// Further ones, as many as all ranks know from what all call. `failure`: what went wrong here meanwhile. When it
  /// returns no rank has died since the first, so what was read of the others' tensors was right.
  void confirm(const char* operation, const call_options& how, const std::string* failure);
  /// The same, twice, in which all tell one another something: at most most_told bytes. Returns what each has told.
  [[nodiscard]] std::vector<std::vector<std::byte>> exchange_notes(const char* operation, const call_options& how,
                                                                   std::span<const std::byte> own);
  static constexpr std::size_t most_told = 500;
  /// Whether a rank has had a failure already at the next of these.
  [[nodiscard]] bool has_failed_next() const noexcept;
  /// Says once more what this rank said at the last of these, so that the others have time to read it: without, it may
  /// be gone as soon as they come to it, unless a failure ends the call.
  void confirm_again(const char* operation, const call_options& how);
  /// Those that had a failure at the last of these. `is_said_again`: all call confirm_again() after this.
  [[nodiscard]] std::vector<std::size_t> failed_ranks(bool is_said_again = false) const;
  [[nodiscard]] std::string report_of(std::size_t rank) const;
  /// Something that another rank named in the present call is not there any more. Whoever keeps to the rules lets go of
  /// such things only when he is dead, leaves, or has given the call up: throws that as soon as it is known. Returns
  /// when it does not turn out.
  void await_loss(const waiting_for& what);

  [[nodiscard]] group_traffic traffic() const noexcept { return traffic_.read(); }
  void count_bytes(std::uint64_t read, std::uint64_t written) noexcept { traffic_.count_bytes(read, written); }

  // ---- waiting

  /// Until `ready()`, which is asked again whenever something may have changed. Throws group_error when somebody of
  /// whom it is waited is lost, when the group is aborted, or, and then the group is broken, when the time has passed.
  /// Of several waits with the same `what` the time is one.
  template <class Ready>
  void wait(waiting_for& what, Ready ready) {
    if (look_often(ready, what.whom)) return;
    if (!what.until) what.until = deadline::after(what.timeout.value_or(memory_.shape().timeout));
    if (!wait_until(what, *what.until, ready)) give_up(what);
  }
  template <class Ready>
  void wait(waiting_for&& what, Ready ready) {
    wait(what, ready);
  }

  /// The same; false when `until` passed first, which breaks nothing.
  template <class Ready>
  bool wait_until(const waiting_for& what, deadline until, Ready ready) {
    const auto look = [&] {
      if (ready()) return true;
      if (uses_meanwhile_.load(std::memory_order_relaxed)) meanwhile_();
      return false;
    };
    const auto prepare = [&](sleep_words& words) {
      const bool looks_at_messages = uses_meanwhile_.load(std::memory_order_acquire);
      announce(words, what.whom);
      if (look() || ready()) return last_look::over;
      // Senders of the next ones must find it announced.
      if (!looks_at_messages && has_first_message()) return last_look::changed;
      check_health(what);
      if (cannot_come(what)) {
        if (ready()) return last_look::over;  // it came, and left, since the last look
        require_whole(what);                  // it left because of that
        throw_lost(what);
      }
      if (looks_at_messages && before_sleep_) before_sleep_();
      return last_look::nothing;
    };
    return sleeper_.wait_on<1>(look, prepare, [&] { return outlook_for(what.whom); }, until) || ready();
  }

  /// What such a wait would throw now, for who does not sleep; nullptr where it would go on.
  /// Cost: some loads, unless somebody has died since the last one.
  [[nodiscard]] std::exception_ptr failure_of(const waiting_for& what);

  /// For what happens within this process, whatever becomes of the group.
  template <class Ready>
  bool wait_here(deadline until, Ready ready) {
    const auto prepare = [&](sleep_words& words) {
      announce(words, rank_line::anybody);
      return ready() ? last_look::over : last_look::nothing;
    };
    return sleeper_.wait_on<1>(ready, prepare, sleeper::of_unknown, until) || ready();
  }

  /// Before sleeping: asks for some time, but not while the rank `whom` is to run on this processor. Returns the last
  /// answer.
  template <class Ready>
  bool look_until(deadline until, Ready ready, std::size_t whom = rank_line::anybody) const {
    return sleeper_.look_long(ready, [&] { return outlook_for(whom); }, until);
  }
  /// What can be expected of looking for that rank, or anybody. Tells the others where this thread runs. Cost: two
  /// loads, and one for each rank that is meant.
  [[nodiscard]] prospect ask(std::size_t whom) const noexcept {
    tell_place(memory_.line(rank_).place);
    return outlook_for(whom);
  }
  /// How often to look for what may come at once, before anything is prepared for a longer wait.
  [[nodiscard]] int looks() const noexcept { return memory_.shape().is_crowded ? 1 : 128; }

  /// Wakes those who wait for news of this rank. After a sequentially consistent publication of the news.
  void notify() noexcept;
  void notify(std::size_t rank) noexcept;
  /// Wakes those threads of a rank that wait, whatever they wait for.
  void rouse(std::size_t rank) noexcept;
  /// The same of this rank.
  void notify_own() noexcept { rouse(rank_); }
  /// Others wait, too, in this process, for whatever there may be.
  void be_imprecise() noexcept { precise_ = false; }
  /// Called over and over by whoever waits, once this rank uses messages, or somebody has sent it one: messages make
  /// progress whatever a rank waits for. Requires: nobody waits yet.
  void set_meanwhile(std::function<void()> what) { meanwhile_ = std::move(what); }
  /// Called by whoever waits so and is about to sleep, behind its last look. Requires: nobody waits yet.
  void set_before_sleep(std::function<void()> what) { before_sleep_ = std::move(what); }
  /// This rank uses messages from now on. Those of its threads that sleep already learn of it.
  void use_meanwhile() noexcept {
    if (!uses_meanwhile_.load(std::memory_order_relaxed)) begin_meanwhile();
  }

  /// Throws what broke the group, if anything has.
  void require_whole(const waiting_for& what) const;
  /// Ends all calls of all ranks.
  void break_off(const std::string& reason) noexcept MUSTER_EXCLUDES(aborting_);
  /// The same, because somebody is gone.
  void mark_lost() noexcept;
  [[nodiscard]] bool is_broken() const noexcept { return memory_.broken().load(std::memory_order_acquire) != 0; }
  /// Those who are waited for, and are not known to be gone.
  [[nodiscard]] std::vector<group_member> missing_members(const waiting_for& what) const;
  /// Wakes everybody.
  void raise_all() noexcept { raise_all(memory_); }
  /// Those of a group that this rank has made, too.
  static void raise_all(const group_memory& of) noexcept;

private:
  void join(std::size_t rank);
  void await_step(const char* operation, const call_options& how, bool failed);
  // What comes soon is not held up by a reading of the clock.
  template <class Ready>
  bool look_often(Ready& ready, std::size_t whom) const {
    if (contention::of_this_thread().is_on() || ask(whom) == prospect::futile) return ready();
    return ready() || muster::look_often(looks() - 1, ready);
  }
  [[nodiscard]] prospect outlook_for(std::size_t whom) const noexcept {
    if (whom == rank_line::anybody) return outlook_for_all();
    return whom != rank_ ? prospect_of(memory_.line(whom).place) : prospect::usual;
  }
  [[nodiscard]] prospect outlook_for_all() const noexcept;
  void announce(sleep_words& words, std::size_t whom) noexcept;
  void begin_meanwhile() noexcept;
  // Behind the announcement: whether messages have been begun since, here or by somebody who sends to this rank.
  [[nodiscard]] bool has_first_message() noexcept;
  void check_health(const waiting_for& what);
  [[noreturn]] void give_up(const waiting_for& what);
  [[noreturn]] void throw_broken(const waiting_for& what) const;
  [[noreturn]] void throw_lost(const waiting_for& what) const;
  [[nodiscard]] bool cannot_come(const waiting_for& what) const noexcept;
  [[nodiscard]] std::vector<group_member> lost_members() const;
  // Looks before sleeping, which must be as consistent as the announcement before them (wait_protocol.hpp).
  [[nodiscard]] bool has_entered(std::size_t rank) const noexcept {
    return memory_.call(rank, sequence()).sequence.load(std::memory_order_seq_cst) == sequence();
  }
  [[nodiscard]] std::uint64_t done_of(std::size_t rank) const noexcept {
    return memory_.line(rank).done.load(std::memory_order_seq_cst);
  }

  const process_mark made_in_;
  std::shared_ptr<domain> domain_;  // before the block, which goes first
  shared_block block_;
  group_memory memory_;
  std::size_t rank_;
  const sleeper sleeper_;
  std::atomic<std::uint64_t> sequence_ = 0;  // begin_call() writes it; whoever breaks the group may read it meanwhile
  std::uint64_t step_ = 0;                   // of confirm()
  std::vector<call_header> headers_;
  traffic_counts traffic_;
  mutex aborting_;  // any thread may
  std::atomic<bool> precise_ = true;
  std::atomic<bool> uses_meanwhile_ = false;
  std::function<void()> meanwhile_;
  std::function<void()> before_sleep_;
  static constexpr std::uint64_t never_looked = UINT64_MAX;
  std::atomic<std::uint64_t> deaths_looked_at_ = never_looked;  // by failure_of, which found no member among them
  lazy_work_home futures_;
};

}  // namespace muster::detail
