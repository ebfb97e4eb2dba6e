// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/rank_end.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/memory/detail/wait/wait_protocol.hpp>

#include "broken_word.hpp"

namespace muster::detail {

namespace {

template <class Area>
void put(Area& area, const std::string& what) noexcept {
  area.size = static_cast<std::uint32_t>(std::min(what.size(), sizeof area.bytes));
  std::memcpy(area.bytes, what.data(), area.size);
}

template <class Area>
std::string text_in(const Area& area) {
  return {reinterpret_cast<const char*>(area.bytes), std::min<std::size_t>(area.size, sizeof area.bytes)};
}

std::size_t require_rank(const group_memory& of, std::size_t rank) {
  const auto ranks = of.shape().ranks;
  if (rank < ranks) return rank;
  throw error(errc::invalid_argument,
              text("rank ", rank, " was to join a group of ", ranks, " ranks: the ranks are 0 to ", ranks - 1));
}

}  // namespace

rank_end::rank_end(std::shared_ptr<domain> where, shared_block block, std::size_t rank)
    : domain_(std::move(where)),
      block_(std::move(block)),
      memory_(group_memory::attach(block_.bytes())),
      rank_(require_rank(memory_, rank)),
      sleeper_(*domain_, {.spin = memory_.shape().spin, .is_crowded = memory_.shape().is_crowded},
               memory_.line(rank).place),
      headers_(memory_.shape().ranks) {
  domain_->require_participant("a group_ticket");
  join(rank);
}

rank_end::~rank_end() { depart(); }

void rank_end::depart() noexcept {
  if (!is_here() || has_left(rank_)) return;
  memory_.line(rank_).presence_.store(static_cast<std::uint32_t>(rank_line::presence::left), std::memory_order_seq_cst);
  raise_all();  // whoever waits for this rank waits in vain
}

void rank_end::join(std::size_t rank) {
  auto& line = memory_.line(rank);
  const auto self = rank_identity::of(*domain_, domain_->self()).pack();
  if (self == 0) {
    throw error(errc::invalid_argument, text("rank ", rank,
                                             " of a group was to be joined by a process that is no participant of the "
                                             "group's domain: nobody would learn of its death"));
  }
  std::uint64_t before = 0;
  const bool is_it = line.member.compare_exchange_strong(before, self, std::memory_order_acq_rel) || before == self;
  auto present = static_cast<std::uint32_t>(rank_line::presence::none);
  if (is_it && line.presence_.compare_exchange_strong(present, static_cast<std::uint32_t>(rank_line::presence::joined),
                                                      std::memory_order_acq_rel)) {
    return;
  }
  throw error(errc::invalid_argument, text("rank ", rank, " of the group was to be joined twice: process ",
                                           rank_identity::unpack(line.member).pid, " is that rank already"));
}

group_member rank_end::member(std::size_t rank) const noexcept {
  return {.rank = rank, .pid = rank_identity::unpack(memory_.line(rank).member.load(std::memory_order_acquire)).pid};
}

bool rank_end::has_left(std::size_t rank) const noexcept {
  const auto found = memory_.line(rank).presence_.load(std::memory_order_seq_cst);
  return found == static_cast<std::uint32_t>(rank_line::presence::left);
}

// Who has not joined yet may still do so. Who has left and ended then is not dead: so it is looked first whether it is
// alive, since what a process did before its end can be seen when its end can.
bool rank_end::is_dead(std::size_t rank) const noexcept {
  const auto who = memory_.line(rank).member.load(std::memory_order_acquire);
  return who != 0 && !rank_identity::unpack(who).is_alive(*domain_) && !has_left(rank);
}

// ---- calls

std::uint64_t rank_end::begin_call() {
  traffic_.count_call();
  const auto number = sequence() + 1;  // nobody else counts
  sequence_.store(number, std::memory_order_relaxed);
  return number;
}

std::span<const call_header> rank_end::enter(const call_header& own, const call_options& how) {
  auto& mine = memory_.call(rank_, sequence());
  mine.what.store(own.pack_what(), std::memory_order_relaxed);
  mine.count.store(own.count, std::memory_order_relaxed);
  mine.fingerprint.store(own.fingerprint, std::memory_order_relaxed);
  mine.sequence.store(sequence(), std::memory_order_seq_cst);
  notify();
  traffic_.count_exchange(size() - 1);
  waiting_for what{.operation = name_of(own.kind), .sequence = sequence(), .timeout = how.timeout};
  for (std::size_t rank = 0; rank < headers_.size(); ++rank) {
    if (rank == rank_) {
      headers_[rank] = own;
      continue;
    }
    what.whom = rank;
    wait(what, [&] { return has_entered(rank); });
    const auto& line = memory_.call(rank, sequence());
    auto& header = headers_[rank];
    header.unpack_what(line.what.load(std::memory_order_relaxed));
    header.count = line.count.load(std::memory_order_relaxed);
    header.fingerprint = line.fingerprint.load(std::memory_order_relaxed);
  }
  return headers_;
}

void rank_end::amend(const call_header& own) noexcept {
  memory_.call(rank_, sequence()).what.store(own.pack_what(), std::memory_order_relaxed);
}

std::span<const call_header> rank_end::look_again() noexcept {
  for (std::size_t rank = 0; rank < headers_.size(); ++rank) {
    headers_[rank].unpack_what(memory_.call(rank, sequence()).what.load(std::memory_order_relaxed));
  }
  return headers_;
}

void rank_end::confirm(const char* operation, const call_options& how, const std::string* failure) {
  if (failure != nullptr) put(memory_.line(rank_).report, *failure);
  await_step(operation, how, failure != nullptr);
}

// Twice: nobody says anything else before all have read it.
std::vector<std::vector<std::byte>> rank_end::exchange_notes(const char* operation, const call_options& how,
                                                             std::span<const std::byte> own) {
  put(memory_.line(rank_).report, std::string(reinterpret_cast<const char*>(own.data()), own.size()));
  await_step(operation, how, false);
  std::vector<std::vector<std::byte>> notes;
  notes.reserve(size());
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const auto told = text_in(memory_.line(rank).report);
    const auto bytes = std::as_bytes(std::span(told));
    notes.emplace_back(bytes.begin(), bytes.end());
  }
  await_step(operation, how, false);
  return notes;
}

void rank_end::await_step(const char* operation, const call_options& how, bool failed) {
  memory_.line(rank_).done.store(++step_ << 8U | (failed ? 1U : 0U), std::memory_order_seq_cst);
  notify();
  traffic_.count_exchange(size() - 1);
  waiting_for what{.operation = operation, .sequence = sequence(), .timeout = how.timeout};
  for (std::size_t rank = 0; rank < size(); ++rank) {
    what.whom = rank;
    if (rank != rank_) wait(what, [&] { return done_of(rank) >> 8U >= step_; });
  }
  what.whom = rank_;
  check_health(what);
}

bool rank_end::has_failed_next() const noexcept {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (done_of(rank) == ((step_ + 1) << 8U | 1U)) return true;
  }
  return false;
}

void rank_end::confirm_again(const char* operation, const call_options& how) {
  await_step(operation, how, (done_of(rank_) & 1U) != 0);
}

std::vector<std::size_t> rank_end::failed_ranks(bool is_said_again) const {
  std::vector<std::size_t> failed;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const auto found = done_of(rank);
    const bool is_again = is_said_again && found == ((step_ + 1) << 8U | 1U);
    if (found == (step_ << 8U | 1U) || is_again) failed.push_back(rank);  // a later one is looked at later
  }
  return failed;
}

std::string rank_end::report_of(std::size_t rank) const { return text_in(memory_.line(rank).report); }

// Between the owner's let-go and its death being known are some steps of the host's.
void rank_end::await_loss(const waiting_for& what) {
  constexpr std::chrono::nanoseconds most = std::chrono::seconds(5);
  const auto patience = std::min(most, what.timeout.value_or(memory_.shape().timeout));
  static_cast<void>(wait_until(what, deadline::after(patience), [] { return false; }));
}

// ---- waking

// Everything that a sleeper looks at was published sequentially consistently before this look at his bell: either he
// is seen here, or he sees that (wait_protocol.hpp).
void rank_end::notify() noexcept {
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (rank != rank_) notify(rank);
  }
}

void rank_end::notify(std::size_t rank) noexcept {
  auto& line = memory_.line(rank);
  if (!wait_protocol::is_awaited(line.bell)) return;
  const auto whom = line.waits_for.load(std::memory_order_relaxed);
  if (whom == rank_line::anybody || whom == rank_) ring(line.bell);
}

void rank_end::rouse(std::size_t rank) noexcept { ring(memory_.line(rank).bell); }

void rank_end::raise_all(const group_memory& of) noexcept {
  for (std::size_t rank = 0; rank < of.shape().ranks; ++rank) raise_bell(of.line(rank).bell);
}

// ---- sleeping

prospect rank_end::outlook_for_all() const noexcept {
  auto found = prospect::usual;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (rank != rank_) found = std::max(found, prospect_of(memory_.line(rank).place));
  }
  return found;
}

// Before the announcement, which publishes it.
void rank_end::announce(sleep_words& words, std::size_t whom) noexcept {
  auto& line = memory_.line(rank_);
  const auto wanted = precise_ ? static_cast<std::uint32_t>(whom) : rank_line::anybody;
  line.waits_for.store(wanted, std::memory_order_relaxed);
  words.announce(line.bell);
}

// Published, and then the bell is looked at: a thread that sleeps announces itself anew, for whomever there may be.
void rank_end::begin_meanwhile() noexcept {
  be_imprecise();
  uses_meanwhile_.store(true, std::memory_order_seq_cst);
  notify_own();
}

// Who does not use messages looks into no ring, and may have announced itself for one rank only: then nobody else's
// message would wake it, and a ring that is full would stay so. Whoever makes a ring publishes the link and looks at
// the bell afterwards (mailbox::open), and it is looked at behind the announcement here: so one of the two sees the
// other.
bool rank_end::has_first_message() noexcept {
  if (uses_meanwhile_.load(std::memory_order_seq_cst)) return true;
  if (meanwhile_ == nullptr) return false;
  for (std::size_t from = 0; from < size(); ++from) {
    const auto link = memory_.link(from, rank_).load(std::memory_order_seq_cst);
    if (link == 0 || link == group_memory::link_taken) continue;
    use_meanwhile();
    return true;
  }
  return false;
}

// ---- what can go wrong

void rank_end::require_whole(const waiting_for& what) const {
  if (is_broken()) throw_broken(what);
}

bool rank_end::cannot_come(const waiting_for& what) const noexcept {
  if (what.whom != rank_line::anybody) return has_left(what.whom);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (rank != rank_ && !has_left(rank)) return false;
  }
  return size() > 1;
}

// A member that died breaks the group for all: nobody can know what the others still wait for. One that has left had
// done its part of all that came before.
void rank_end::check_health(const waiting_for& what) {
  require_whole(what);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (rank == rank_ || !is_dead(rank)) continue;
    mark_lost();
    throw_lost(what);
  }
}

std::exception_ptr rank_end::failure_of(const waiting_for& what) {
  const std::uint64_t deaths = domain_->deaths().load(std::memory_order_acquire);
  const bool has_news = deaths_looked_at_.load(std::memory_order_relaxed) != deaths;
  if (!has_news && !is_broken() && !cannot_come(what)) return nullptr;
  try {
    check_health(what);
    deaths_looked_at_.store(deaths, std::memory_order_relaxed);
    if (!cannot_come(what)) return nullptr;
    require_whole(what);  // it left because of that
    throw_lost(what);
  } catch (const group_error&) {
    return std::current_exception();
  }
}

void rank_end::mark_lost() noexcept {
  std::uint64_t whole = 0;
  memory_.broken().compare_exchange_strong(whole, broken_word{broken_word::cause::lost, rank_, sequence()}.pack());
  raise_all();
}

namespace {

// "barrier (call 3 of the group)"; messages have no numbers.
std::string name_of(const waiting_for& what) {
  return what.sequence == 0 ? what.operation : text(what.operation, " (call ", what.sequence, " of the group)");
}

}  // namespace

void rank_end::give_up(const waiting_for& what) {
  auto about = group_error::particulars{
      .operation = what.operation, .sequence = what.sequence, .missing = missing_members(what), .lost = lost_members()};
  std::uint64_t before = 0;
  memory_.broken().compare_exchange_strong(before, broken_word{broken_word::cause::timeout, rank_, sequence()}.pack());
  raise_all();
  // Who was told that the group is broken may have left since: that is no reason.
  const auto reason = broken_word::unpack(before).why;
  if (reason == broken_word::cause::none && !about.lost.empty()) throw_lost(what);
  if (reason == broken_word::cause::aborted || reason == broken_word::cause::lost) throw_broken(what);
  auto message = text(name_of(what), " timed out in rank ", rank_, " while it waited for ", describe(about.missing),
                      "; the group is of no more use: shrink() it, or make another");
  throw group_error(errc::timed_out, std::move(message), std::move(about));
}

void rank_end::throw_lost(const waiting_for& what) const {
  auto about = group_error::particulars{
      .operation = what.operation, .sequence = what.sequence, .missing = {}, .lost = lost_members()};
  auto message = text(name_of(what), " cannot end in rank ", rank_, ": ",
                      about.lost.empty() ? std::string("a member") : describe(about.lost),
                      about.lost.size() > 1 ? " are dead, or have left" : " is dead, or has left",
                      "; the others can shrink() the group and go on");
  throw peer_lost(std::move(message), std::move(about));
}

void rank_end::throw_broken(const waiting_for& what) const {
  const auto found = broken_word::unpack(memory_.broken().load(std::memory_order_acquire));
  if (found.why == broken_word::cause::lost) throw_lost(what);
  const bool late = found.why == broken_word::cause::timeout;
  const bool is_member = found.rank < size();  // or else somebody has overwritten it
  const auto who = is_member ? describe({member(found.rank)}) : std::string("a member");
  const auto why = is_member ? text_in(memory_.line(found.rank).reason) : std::string("nobody knows why");
  const auto reason = late ? text("gave up waiting in its call ", found.sequence) : text("aborted it: ", why);
  throw group_error(
      late ? errc::timed_out : errc::cancelled,
      text(name_of(what), " cannot end in rank ", rank_, ": ", who, ' ', reason,
           "; shrink() the group, or make another"),
      {.operation = what.operation,
       .sequence = what.sequence,
       .missing = {},
       .lost = lost_members(),
       .broken_by = is_member && found.rank != rank_ ? std::vector{member(found.rank)} : std::vector<group_member>()});
}

void rank_end::break_off(const std::string& reason) noexcept {
  const scoped_lock lock(aborting_);
  if (is_broken()) return;  // a reason of this rank's may be read already
  put(memory_.line(rank_).reason, reason);
  std::uint64_t whole = 0;
  memory_.broken().compare_exchange_strong(whole, broken_word{broken_word::cause::aborted, rank_, sequence()}.pack());
  raise_all();
}

std::vector<group_member> rank_end::lost_members() const {
  std::vector<group_member> lost;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (rank != rank_ && (is_dead(rank) || has_left(rank))) lost.push_back(member(rank));
  }
  return lost;
}

// Of a call; a receiver misses whom it waits for.
std::vector<group_member> rank_end::missing_members(const waiting_for& what) const {
  std::vector<group_member> missing;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const bool is_late = what.until_done      ? done_of(rank) >> 8U <= step_
                         : what.sequence != 0 ? !has_entered(rank) || rank == what.whom
                                              : rank == what.whom;
    if (rank != rank_ && !is_dead(rank) && !has_left(rank) && is_late) missing.push_back(member(rank));
  }
  return missing;
}

}  // namespace muster::detail
