// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <typeinfo>
#include <vector>

#include <muster/async/detail/future_home.hpp>
#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/detail/message_ring.hpp>
#include <muster/queue/detail/taken_message.hpp>
#include <muster/rpc/actor_options.hpp>
#include <muster/rpc/detail/actor_start.hpp>
#include <muster/rpc/detail/call_ledger.hpp>
#include <muster/rpc/detail/call_retrier.hpp>
#include <muster/rpc/detail/call_stops.hpp>
#include <muster/rpc/detail/change_watch.hpp>
#include <muster/rpc/detail/group_table.hpp>
#include <muster/rpc/detail/host_watch.hpp>
#include <muster/rpc/detail/name_table.hpp>
#include <muster/rpc/detail/object_store.hpp>
#include <muster/rpc/detail/reply_reader.hpp>
#include <muster/rpc/detail/rpc_access.hpp>
#include <muster/rpc/detail/rpc_heads.hpp>
#include <muster/rpc/detail/rpc_trace.hpp>
#include <muster/rpc/detail/served_counts.hpp>
#include <muster/rpc/detail/serving_crew.hpp>
#include <muster/rpc/detail/wait_graph.hpp>
#include <muster/rpc/rpc_ticket.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

class actor_host;
class served_run;

[[nodiscard]] constexpr call_id id_of(const request_head& head) noexcept {
  return {.member = head.caller, .slot = head.slot, .generation = head.generation};
}

/// Its call word. Requires: is_possible().
[[nodiscard]] inline std::atomic<std::uint64_t>& word_of(const group_table& table, const request_head& head) noexcept {
  return table.calls_of(head.caller)[head.slot].word;
}

/// False for one that was overwritten.
[[nodiscard]] inline bool is_possible(const group_table& table, const request_head& head) noexcept {
  return head.caller < table.shape().members && head.slot < table.shape().calls;
}

/// When its caller stops waiting.
[[nodiscard]] inline deadline end_of(const request_head& head) noexcept {
  return head.until == 0 ? deadline::never() : deadline(clock::time_point(clock::duration(head.until)));
}

/// A request that was taken out of the inbox.
///
/// Thread safety: belongs to the thread that serves it.
struct rpc_job {
  request_head head;
  taken_message message;
  value_ptr value{};                         ///< of a method, or what is made
  offered_ptr service{};                     ///< of a service
  const std::type_info* callable = nullptr;  ///< of a function or method, once it runs
};

/// A member's part of an RPC group: what its calls, references and services share.
///
/// It puts parts together: the ledger of calls, the reader of replies, the crew that serves, the table of names, the
/// stores of what it owns. Requests and replies are messages in rings of shared memory: each member has one of
/// requests, which all others write to, and one of replies to its calls (docs/design/rpc.md).
///
/// Thread safety: safe.
/// Process safety: any member may be killed at any instruction.
class rpc_core final : public future_home,
                       public std::enable_shared_from_this<rpc_core>,
                       private reply_reader::events,
                       private serving_crew::source {
public:
  /// `root`: a value that is there before the first call comes.
  [[nodiscard]] static core_ptr join(const rpc_ticket& ticket, const std::string& member, const rpc_options& options,
                                     const value_ptr& root = nullptr);
  rpc_core(const rpc_core&) = delete;
  rpc_core& operator=(const rpc_core&) = delete;
  ~rpc_core() override;
  void leave() noexcept MUSTER_EXCLUDES(leaving_);

  [[nodiscard]] const rpc_ticket& ticket() const noexcept { return ticket_; }
  [[nodiscard]] const group_table& table() const noexcept { return table_; }
  /// Whether the other one is a member of the same group.
  [[nodiscard]] bool shares_table_with(const rpc_core& other) const noexcept {
    return &table_.member(0) == &other.table_.member(0);
  }
  [[nodiscard]] domain& where() const noexcept { return *domain_; }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] std::uint32_t incarnation() const noexcept { return incarnation_; }
  [[nodiscard]] token_encoder& encoder() noexcept { return encoder_; }
  [[nodiscard]] token_decoder& decoder() noexcept { return decoder_; }
  [[nodiscard]] const wait_graph& waits() const noexcept { return waits_; }
  /// Why calls that wait for one another are ended: names them.
  [[nodiscard]] error_info deadlock_of(std::span<const call_id> circle) const;
  [[nodiscard]] call_ledger& calls() noexcept { return calls_; }
  [[nodiscard]] reply_reader& reader() noexcept { return reader_; }
  [[nodiscard]] serving_crew& crew() noexcept { return crew_; }
  [[nodiscard]] name_table& names() noexcept { return names_; }
  [[nodiscard]] object_store<stored_value>& values() noexcept { return values_; }
  [[nodiscard]] object_store<offered_service>& services() noexcept { return services_; }

  /// Throws errc::forked in a forked child, errc::invalid_argument after leave(), errc::peer_lost after the end of the
  /// host that this program has joined.
  void require_member() const;
  /// The same is said when the host has ended.
  [[nodiscard]] bool has_left() const noexcept {
    return left_.load(std::memory_order_acquire) || leaves_.load(std::memory_order_acquire) ||
           host_ended_.load(std::memory_order_acquire);
  }
  /// As rpc_group::stats.
  [[nodiscard]] rpc_statistics read_statistics() const;
  /// Whether the caller of what is served here still waits for it.
  [[nodiscard]] bool is_wanted(const request_head& head) const noexcept;
  [[nodiscard]] call_stops& stops() noexcept { return stops_; }
  [[nodiscard]] member_counts& counts() noexcept { return counts_; }
  [[nodiscard]] rpc_trace& trace() noexcept { return trace_; }
  /// Which member has that name. Throws errc::invalid_argument, with those that there are.
  [[nodiscard]] std::size_t require_name(const std::string& member) const;
  /// When a call that begins now is to be over.
  [[nodiscard]] deadline end_of_call(std::chrono::nanoseconds given) const;
  /// The member, once it has joined. Throws member_lost, errc::timed_out.
  [[nodiscard]] call_peer await_peer(std::size_t member, deadline until, const call_subject& what, bool awaits_rejoin);
  /// Throws errc::invalid_argument: it has no threads that serve.
  [[noreturn]] void throw_only_calls(std::size_t member, const call_subject& what) const;
  /// What has that name, if the member that has made it is there.
  [[nodiscard]] std::optional<named_thing> look_up(named_kind kind, const std::string& name) const;
  [[nodiscard]] call_peer owner_of(const named_thing& what) const noexcept;
  /// Why a call to that member cannot be answered any more; null where it can.
  [[nodiscard]] std::exception_ptr loss_of(const call_peer& peer, bool had_begun, const call_subject& what) const;
  [[nodiscard]] bool is_gone(const call_peer& peer) const noexcept;

  /// The ring of a member; of its requests, or of replies to it.
  ///@{
  [[nodiscard]] std::shared_ptr<message_ring> requests_of(std::size_t member) MUSTER_EXCLUDES(links_mutex_);
  [[nodiscard]] std::shared_ptr<message_ring> replies_of(std::size_t member) MUSTER_EXCLUDES(links_mutex_);
  ///@}

  /// Waits until `done`, which is asked again whenever names, members or barriers have changed, or a member has died.
  /// False when `until` passed first.
  bool await_news(const std::function<bool()>& done, deadline until);
  /// Whether all other members have left or are lost.
  [[nodiscard]] bool is_alone() const noexcept;
  /// As rpc_group::run.
  void serve_here(const std::function<bool()>& is_over);
  void tell_news() noexcept { ring(table_.news()); }

  /// As rpc_group::on_change.
  void tell_changes(change_watch::listener to) MUSTER_EXCLUDES(watch_mutex_);

  /// Behind a request to that member: wakes the thread that guards its requests, if none attends to them.
  void ask_for_attention(std::size_t member) noexcept;
  /// The line of a service; null for one that is concurrent.
  [[nodiscard]] std::shared_ptr<serial_line> line_for(const service_options& how) MUSTER_EXCLUDES(lines_mutex_);
  /// A number that no other value or service of the group has.
  [[nodiscard]] std::uint64_t new_id() noexcept;
  /// At the program's member: as start_actor_here().
  [[nodiscard]] remote_handle start_actor(const std::string& name, const actor_options& how, actor_launcher launcher);
  /// Sends a request that has no reply: `look`, `retire`, `nudge`. Never blocks: where there is no room a member finds
  /// out by itself, when a thread of it looks next, when a process dies, or when it is killed.
  void push_notice(std::size_t member, request_kind kind, std::uint64_t object = 0) noexcept;
  /// In an actor: until it is told so.
  void await_retirement() MUSTER_EXCLUDES(leaving_);

  /// A reference to a value may be gone, the last one.
  void look_at(const value_ptr& which);
  /// Ends what has waited for too long.
  ///@{
  void expire(pending_call& which);
  void expire_all() { look_at_times(); }
  ///@}
  void reply_lost(const request_head& head) noexcept;
  void refuse(const request_head& head, const error_info& why) noexcept;
  /// One that is to be failed when this member leaves before.
  void add_deferred(const std::shared_ptr<deferred_reply>& which) MUSTER_EXCLUDES(deferred_mutex_);

private:
  struct rings {
    std::shared_ptr<message_ring> requests;
    std::shared_ptr<message_ring> replies;
    std::uint64_t name = 0;  // of the requests' block
  };

  rpc_core(const rpc_ticket& ticket, std::size_t member, std::uint32_t incarnation, const rpc_options& options);
  [[nodiscard]] std::shared_ptr<message_ring> attach(const std::atomic<std::uint64_t>& name, bool keeps) const;
  [[nodiscard]] bool owns_rings(std::size_t member) const noexcept { return member >= table_.shape().named; }
  [[nodiscard]] rings& link_to(std::size_t member) MUSTER_REQUIRES(links_mutex_);
  void begin(const value_ptr& root);
  void leave_now() noexcept MUSTER_EXCLUDES(leaving_);
  void end_membership() noexcept MUSTER_EXCLUDES(leaving_);
  void be_here(bool serves);
  void end_with_host() noexcept;

  // reply_reader::events
  void look_at_deaths() override;
  void look_at_times() override;
  void reading_failed(const std::exception_ptr& why) noexcept override;
  // serving_crew::source
  [[nodiscard]] std::function<void()> next() override;
  void interrupt() noexcept override;
  [[nodiscard]] bool look_away() noexcept override;
  void look_back() noexcept override;
  [[nodiscard]] std::uint32_t calls_for_help() const noexcept override;
  bool await_call_for_help(std::uint32_t seen, bool is_unattended, deadline until) noexcept override;
  void call_for_help() noexcept override;

  [[nodiscard]] bool is_interrupted() const noexcept;
  [[nodiscard]] std::function<void()> dispatch(std::shared_ptr<rpc_job> job);
  [[nodiscard]] std::function<void()> dispatch_service(std::shared_ptr<rpc_job> job);
  [[nodiscard]] std::function<void()> dispatch_value(std::shared_ptr<rpc_job> job);
  [[nodiscard]] std::function<void()> dispatch_maker(std::shared_ptr<rpc_job> job, value_ptr made);
  [[nodiscard]] std::function<void()> in_line(std::shared_ptr<void> owner, serial_line& line,
                                              std::function<void()> request, const request_head& head);
  void refuse_unbegun(const request_head& head, const error_info& why) noexcept;
  void end_circle(const request_head& head) noexcept;
  [[nodiscard]] std::function<void()> runner(std::shared_ptr<rpc_job> job);
  void run(rpc_job& job) noexcept;
  void serve(rpc_job& job, served_run& watched);
  void fail_deferred() noexcept MUSTER_EXCLUDES(deferred_mutex_);
  [[nodiscard]] std::function<void()> try_to_dispatch(std::shared_ptr<rpc_job> job) noexcept;
  void look_at_all();
  void drop_queued();
  void nudge_others() noexcept;
  void erase_names() noexcept;
  [[nodiscard]] std::shared_ptr<actor_host> add_actor(actor_role role, const actor_options& how,
                                                      actor_launcher launcher) MUSTER_EXCLUDES(actors_mutex_);
  void await_end_of_actor(const std::string& name) MUSTER_EXCLUDES(actors_mutex_);
  void drop_actor(const std::shared_ptr<actor_host>& which) noexcept MUSTER_EXCLUDES(actors_mutex_);
  void tidy_actors() noexcept MUSTER_EXCLUDES(actors_mutex_);
  void stop_watch() noexcept MUSTER_EXCLUDES(watch_mutex_);
  void log_end_of_trace() noexcept;
  void end_actors() noexcept MUSTER_EXCLUDES(actors_mutex_);
  void retire() noexcept MUSTER_EXCLUDES(leaving_);
  void rouse_rings() noexcept MUSTER_EXCLUDES(links_mutex_);
  void push_look(std::size_t member) noexcept;

  const rpc_ticket ticket_;
  const std::shared_ptr<domain> domain_;
  const shared_block block_;
  const group_table table_;
  const std::size_t index_;
  const std::uint32_t incarnation_;
  const std::size_t threads_;
  const bool runs_;
  const log_sink log_;
  token_encoder encoder_;
  token_decoder decoder_;
  name_table names_;
  const wait_graph waits_;
  place_word place_ = 0;
  const sleeper sleeper_;
  mutex links_mutex_;
  std::vector<rings> links_ MUSTER_GUARDED_BY(links_mutex_);  // by member
  const rings own_;
  call_retrier retrier_;
  call_ledger calls_;
  object_store<stored_value> values_;
  object_store<offered_service> services_;
  mutex lines_mutex_;
  std::map<std::string, std::shared_ptr<serial_line>> lines_ MUSTER_GUARDED_BY(lines_mutex_);  // by name
  mutex watch_mutex_;
  bool has_stopped_watch_ MUSTER_GUARDED_BY(watch_mutex_) = false;
  std::shared_ptr<change_watch> watch_ MUSTER_GUARDED_BY(watch_mutex_);  // from the first listener on
  mutex deferred_mutex_;
  std::vector<std::weak_ptr<deferred_reply>> deferred_ MUSTER_GUARDED_BY(deferred_mutex_);
  std::atomic<std::uint64_t> next_id_;
  std::atomic<bool> left_ = false;
  std::atomic<bool> leaves_ = false;  // when the call that asks for it has been answered
  std::atomic<bool> host_ended_ = false;
  std::atomic<bool> interrupted_ = false;
  std::atomic<std::uint32_t> deaths_;
  mutex leaving_;
  condition ended_;
  bool has_ended_ MUSTER_GUARDED_BY(leaving_) = false;
  bool is_retired_ MUSTER_GUARDED_BY(leaving_) = false;  // an actor
  mutex actors_mutex_;
  bool starts_no_more_ MUSTER_GUARDED_BY(actors_mutex_) = false;
  std::vector<std::shared_ptr<actor_host>> actors_ MUSTER_GUARDED_BY(actors_mutex_);
  member_counts counts_;
  rpc_trace trace_;
  call_stops stops_;
  reply_reader reader_;
  serving_crew crew_;
  host_watch host_watch_;
};

}  // namespace muster::detail
