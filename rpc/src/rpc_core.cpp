// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/rpc/detail/served_call.hpp>

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/wait/spin_policy.hpp>
#include <muster/rpc/detail/actor_host.hpp>
#include <muster/rpc/member_lost.hpp>

#include "member_claim.hpp"

namespace muster::detail {

namespace {

std::vector<std::string> sorted_names(const group_table& table) {
  std::vector<std::string> all;
  for (std::size_t index = 0; index < table.shape().named; ++index) all.push_back(table.name_of(index));
  std::sort(all.begin(), all.end());
  return all;
}

std::string list_of(const group_table& table) {
  std::string all;
  for (const auto& each : sorted_names(table)) all += text(all.empty() ? "'" : ", '", each, "'");
  return all;
}

[[noreturn]] void throw_no_member(const group_table& table, const std::string& given) {
  throw error(errc::invalid_argument, text("'", given, "' is no member of the RPC group '", table.name(),
                                           "', whose members are ", list_of(table)));
}

error_info end_of_host(const group_table& table) {
  return {errc::peer_lost, text("the program that has made the RPC group '", table.name(),
                                "' has ended, and with it the group: join the next one that offers it")};
}

}  // namespace

core_ptr rpc_core::join(const rpc_ticket& ticket, const std::string& member, const rpc_options& options,
                        const value_ptr& root) {
  static_cast<void>(ticket.name());  // throws for an empty one
  ticket.where()->require_participant("an rpc_ticket");
  const auto table = group_table::attach(ticket.block().bytes());
  const auto index = table.find(member);
  if (!index) throw_no_member(table, member);
  const auto incarnation = claim_member(table, *ticket.where(), *index);
  std::shared_ptr<rpc_core> made;
  try {
    made.reset(new rpc_core(ticket, *index, incarnation, options));
    made->begin(root);
  } catch (...) {
    if (made != nullptr) {
      made->leave();
    } else {
      release_member(table, *index, incarnation);
    }
    throw;
  }
  return made;
}

rpc_core::rpc_core(const rpc_ticket& ticket, std::size_t member, std::uint32_t incarnation, const rpc_options& options)
    : future_home(options.log, "an RPC group"),
      ticket_(ticket),
      domain_(ticket.where()),
      block_(ticket.block()),
      table_(group_table::attach(block_.bytes())),
      index_(member),
      incarnation_(incarnation),
      threads_(options.threads),
      runs_(options.runs),
      log_(callable(options.log)),
      encoder_(table_.modules(), token_encoder::shared()),
      decoder_(table_.modules()),
      names_(table_, *domain_),
      waits_(table_),
      sleeper_(*domain_, {.spin = spin_policy::of_process().budget}, place_),
      links_(table_.shape().members),
      own_{.requests = attach(table_.member(member).requests, owns_rings(member)),
           .replies = attach(table_.member(member).replies, owns_rings(member))},
      retrier_(*this),
      calls_(table_.calls_of(member), retrier_),
      next_id_(std::uint64_t{index_} << 48U | std::uint64_t{incarnation_ & 0xffffU} << 32U | 1U),
      deaths_(domain_->deaths().load(std::memory_order_acquire)),
      trace_(member),
      stops_(*this),
      reader_(*domain_, own_.replies, calls_, *this),
      crew_(*this, options.threads) {}

void rpc_core::begin(const value_ptr& root) {
  look_back();  // a dead incarnation may have looked away
  table_.member(index_).executable.store(static_cast<std::uint32_t>(encoder_.executable() + 1),
                                         std::memory_order_relaxed);
  if (root != nullptr) values_.add(root);
  reader_.catch_up();  // replies to a dead incarnation
  crew_.start(shared_from_this());
  host_watch_.begin(*domain_, [this] { end_with_host(); });
  be_here(threads_ != 0 || runs_);
}

// Deaths are not known any more: a thread that waits would wait for ever.
void rpc_core::end_with_host() noexcept {
  host_ended_.store(true, std::memory_order_seq_cst);
  calls_.close([&](const pending_call&, bool) { return std::make_exception_ptr(task_error(end_of_host(table_))); });
  tell_news();
  reader_.nudge();
  rouse_rings();
  crew_.wake_runners();
}

void rpc_core::be_here(bool serves) {
  set_presence(table_, index_, incarnation_, pack_presence(incarnation_, presence::joined, serves));
  tell_news();
}

void rpc_core::serve_here(const std::function<bool()>& is_over) {
  if (threads_ == 0) be_here(true);
  crew_.run(is_over);
  if (threads_ == 0 && !has_left()) be_here(false);
}

rpc_core::~rpc_core() {
  if (is_here()) leave();
}

void rpc_core::require_member() const {
  require_here();
  if (!has_left()) return;
  if (host_ended_.load(std::memory_order_acquire)) throw task_error(end_of_host(table_));
  throw error(errc::invalid_argument, text("'", table_.name_of(index_), "' has left the RPC group '", table_.name(),
                                           "': join again, as another rpc_group"));
}

std::size_t rpc_core::require_name(const std::string& member) const {
  const auto found = table_.find(member);
  if (!found) throw_no_member(table_, member);
  return *found;
}

// What is called on behalf of a caller has at most what that has left.
deadline rpc_core::end_of_call(std::chrono::nanoseconds given) const {
  const auto time = given.count() != 0 ? given : table_.shape().timeout;
  auto until = time == forever ? deadline::never() : deadline::after(time);
  const auto* const serves = served_call::current();
  if (serves != nullptr && serves->until().when() < until.when()) until = serves->until();
  return until;
}

bool rpc_core::is_alone() const noexcept {
  for (std::size_t member = 0; member < table_.shape().named; ++member) {
    const auto found = member_view::of(table_, member);
    if (member != index_ && found.state != presence::left && !found.is_lost(*domain_)) return false;
  }
  return true;
}

bool rpc_core::is_gone(const call_peer& peer) const noexcept {
  const auto now = member_view::of(table_, peer.member);
  return now.incarnation != peer.incarnation || now.state != presence::joined || !peer.who.is_alive(*domain_);
}

std::exception_ptr rpc_core::loss_of(const call_peer& peer, bool had_begun, const call_subject& what) const {
  const bool has_left = peer.who.is_alive(*domain_);
  return std::make_exception_ptr(
      member_lost(table_.name_of(peer.member), what.name(), what.in_words(), has_left, had_begun));
}

call_peer rpc_core::await_peer(std::size_t member, deadline until, const call_subject& what, bool awaits_rejoin) {
  member_view found;
  const auto is_known = [&] {
    found = member_view::of(table_, member);
    if (is_kept_actor(table_, member)) return found.is_here(*domain_);
    return awaits_rejoin ? found.is_here(*domain_) : found.state != presence::expected;
  };
  if (!is_known() && !await_news(is_known, until)) {
    throw task_error(error_info(errc::timed_out, text(what.in_words(), ": the member '", table_.name_of(member),
                                                      "' has not joined the RPC group '", table_.name(), "' in time")));
  }
  const call_peer peer{.member = member, .incarnation = found.incarnation, .who = found.who};
  if (!found.is_here(*domain_)) std::rethrow_exception(loss_of(peer, false, what));
  if (!found.serves) throw_only_calls(member, what);
  return peer;
}

void rpc_core::throw_only_calls(std::size_t member, const call_subject& what) const {
  throw error(
      errc::invalid_argument,
      text(what.in_words(), ": the member '", table_.name_of(member),
           "' only calls: it has no threads that serve (rpc_options::threads), and is not in run(), nor about to be "
           "(rpc_options::runs)"));
}

// Those of the ticket's own members live as long as the group's memory. Those of an actor may go at any time: what was
// held is the one that the line names, if it names it still.
std::shared_ptr<message_ring> rpc_core::attach(const std::atomic<std::uint64_t>& name, bool keeps) const {
  for (;;) {
    const auto found = name.load(std::memory_order_seq_cst);
    try {
      auto block = domain_->blocks().borrow(found);
      if (keeps) domain_->blocks().keep(block);
      if (name.load(std::memory_order_seq_cst) == found) return message_ring::attach(queue_kind::shared, block);
    } catch (const error&) {
      if (name.load(std::memory_order_seq_cst) == found) throw;
    }
  }
}

rpc_core::rings& rpc_core::link_to(std::size_t member) {
  auto& link = links_[member];
  const auto& line = table_.member(member);
  const auto now = line.requests.load(std::memory_order_acquire);
  if (link.requests == nullptr || link.name != now) {
    link.requests = attach(line.requests, owns_rings(member));
    link.replies = attach(line.replies, owns_rings(member));
    link.name = now;
  }
  return link;
}

std::shared_ptr<message_ring> rpc_core::requests_of(std::size_t member) {
  const scoped_lock lock(links_mutex_);
  return link_to(member).requests;
}

std::shared_ptr<message_ring> rpc_core::replies_of(std::size_t member) {
  const scoped_lock lock(links_mutex_);
  return link_to(member).replies;
}

bool rpc_core::await_news(const std::function<bool()>& done, deadline until) {
  if (done()) return true;
  const serving_crew::pause others_serve;
  const auto is_over = [&] { return has_left() || done(); };
  if (!sleeper_.wait(table_.news(), is_over, is_over, sleeper::of_unknown, until)) return false;
  require_member();
  return true;
}

std::shared_ptr<serial_line> rpc_core::line_for(const service_options& how) {
  if (how.line.empty()) return how.serial ? std::make_shared<serial_line>() : nullptr;
  const scoped_lock lock(lines_mutex_);
  auto& line = lines_[how.line];
  if (line == nullptr) line = std::make_shared<serial_line>();
  return line;
}

std::uint64_t rpc_core::new_id() noexcept { return next_id_.fetch_add(1, std::memory_order_relaxed); }

// ---- ends of calls

// A member that has left answers what has begun there; the rest may have come too late for an answer.
void rpc_core::look_at_deaths() {
  const auto why = [&](const pending_call& each, bool had_begun) {
    return loss_of(each.peer(), had_begun, each.subject());
  };
  calls_.lose_all([&](const pending_call& each) { return !each.peer().who.is_alive(*domain_); }, true, why);
  calls_.lose_all([&](const pending_call& each) { return is_gone(each.peer()); }, false, why);
}

void rpc_core::look_at_times() {
  calls_.fail_all([](const pending_call& each) { return each.until().expired(); },
                  [&](const pending_call& each, bool had_begun) { return timeout_of(table_, each, had_begun); });
}

void rpc_core::reading_failed(const std::exception_ptr& why) noexcept {
  calls_.close([&](const pending_call&, bool) { return why; });
}

void rpc_core::expire(pending_call& which) {
  if (!which.until().expired()) return;
  calls_.cancel(which, true, [&](bool had_begun) { return timeout_of(table_, which, had_begun); });
}

// ---- leaving

// A thread that serves a call does it when that has been answered.
void rpc_core::leave() noexcept {
  if (!crew_.serves_here()) return leave_now();
  set_presence(table_, index_, incarnation_, pack_presence(incarnation_, presence::left));
  leaves_.store(true, std::memory_order_release);
  crew_.wake_runners();
}

// One thread does it, which the others wait for, but those that it waits for.
void rpc_core::leave_now() noexcept {
  if (!left_.exchange(true, std::memory_order_acq_rel)) return end_membership();
  if (crew_.serves_here()) return;
  scoped_lock lock(leaving_);
  while (!has_ended_) ended_.wait(lock);
}

// What waits inside of requests is told first: requests end because their own calls do. Callbacks come last, and may
// leave too.
void rpc_core::end_membership() noexcept {
  set_presence(table_, index_, incarnation_, pack_presence(incarnation_, presence::left));
  tell_news();
  calls_.close([&](const pending_call&, bool) { return cancelled_by_leaving(table_, index_); });
  reader_.nudge();
  rouse_rings();
  retrier_.stop();
  crew_.stop();
  stops_.stop();
  drop_queued();
  fail_deferred();
  reader_.stop();
  end_actors();
  erase_names();
  static_cast<void>(services_.take_all());
  static_cast<void>(values_.take_all());
  release_member(table_, index_, incarnation_);
  tell_news();
  stop_watch();
  host_watch_.stop();
  log_end_of_trace();
  nudge_others();
  {
    const scoped_lock lock(leaving_);
    has_ended_ = true;
    ended_.notify_all();
  }
  stop_callbacks();
}

rpc_statistics rpc_core::read_statistics() const {
  const auto calls = calls_.tally();
  rpc_statistics found{.calls = calls.made,
                       .under_way = calls.under_way,
                       .lost = calls.lost,
                       .given_up = calls.given_up,
                       .served = counts_.served.read(),
                       .failed = counts_.failed.read(),
                       .refused = counts_.refused.read(),
                       .waiting = own_.requests->size(),
                       .sent_bytes = counts_.sent_bytes.read(),
                       .received_bytes = counts_.received_bytes.read() + reader_.received_bytes()};
  for (const auto& each : services_.all()) {
    each->counts.read_into(found.services.emplace_back(service_statistics{.name = each->name}));
  }
  std::sort(found.services.begin(), found.services.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

void rpc_core::tell_changes(change_watch::listener to) {
  require_member();
  std::shared_ptr<change_watch> watch;
  {
    const scoped_lock lock(watch_mutex_);
    if (has_stopped_watch_) return require_member();
    if (watch_ == nullptr) watch_ = std::make_shared<change_watch>(*this);
    watch = watch_;
  }
  watch->add(std::move(to));
}

void rpc_core::stop_watch() noexcept {
  std::shared_ptr<change_watch> ended;
  {
    const scoped_lock lock(watch_mutex_);
    has_stopped_watch_ = true;
    ended = watch_;
  }
  if (ended != nullptr) ended->stop();
}

void rpc_core::log_end_of_trace() noexcept {
  try {
    trace_.end();
  } catch (const std::exception& failure) {
    log_(log_level::warning, text("the trace of '", table_.name_of(index_), "' is not whole: ", failure.what()));
  }
}

void rpc_core::erase_names() noexcept {
  try {
    for (const auto& each : names_.all()) {
      if (each.member == index_ && each.incarnation == incarnation_) names_.erase(each);
    }
  } catch (
      const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory: they are not found any more all the same
  }
}

// Threads of this member that wait for room look whether it is still one.
void rpc_core::rouse_rings() noexcept {
  const scoped_lock lock(links_mutex_);
  for (const auto& each : links_) {
    if (each.requests != nullptr) each.requests->rouse();
    if (each.replies != nullptr) each.replies->rouse();
  }
}

// Those that run() until no other member is there.
void rpc_core::nudge_others() noexcept {
  for (std::size_t member = 0; member < table_.shape().members; ++member) {
    if (member == index_ || !member_view::of(table_, member).is_here(*domain_)) continue;
    push_notice(member, request_kind::nudge);
    push_look(member);
  }
}

// The sender of a later one sees that this member has left.
void rpc_core::drop_queued() {
  ring_position at;
  while (own_.requests->try_claim(at) == queue_result::done) {
    const auto job = take_request(*own_.requests, at);
    if (job != nullptr) reply_lost(job->head);
  }
}

}  // namespace muster::detail
