// SPDX-License-Identifier: BSL-1.0
// The part of a member that calls.
#include <cstring>
#include <optional>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/detail/outgoing_message.hpp>
#include <muster/rpc/detail/remote_state.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/rpc/detail/served_call.hpp>
#include <muster/rpc/member_lost.hpp>

#include "request_push.hpp"
#include "service_state.hpp"

namespace muster::detail {

struct rpc_sending::parts {
  parts(core_ptr from, std::size_t to, const rpc_call_options& how, request_kind kind)
      : core(std::move(from)),
        member(to),
        copies(how.transfer == transfer::copy),
        awaits_rejoin(how.awaits_rejoin || (how.retries != 0 && to < core->table().shape().named)),
        ring(inbox_of(*core, to, how)),
        message(*ring) {
    if (how.retries != 0) {
      terms.retry = std::make_shared<call_retry>(how);
      noted.emplace(message, terms.retry->blocks);
    }
    terms.until = core->end_of_call(how.deadline);
    terms.subject = {.kind = kind, .label = how.label};
    head.kind = kind;
    head.flags = static_cast<std::uint8_t>((how.concurrent ? concurrent_call : 0) | (copies ? copied_result : 0));
    head.caller = static_cast<std::uint16_t>(core->index());
    const auto* const serves = served_call::current();
    if (serves != nullptr && serves->core().shares_table_with(*core)) head.chain = serves->id().pack();
    head.until = terms.until.is_never() ? 0 : terms.until.when().time_since_epoch().count();
  }

  [[nodiscard]] static std::shared_ptr<message_ring> inbox_of(rpc_core& of, std::size_t member,
                                                              const rpc_call_options& how);
  [[nodiscard]] call_peer await_peer() const;
  void require_same_ring() const;
  void require_function_there(std::uint64_t target) const;
  [[nodiscard]] call_ptr open() const;
  void note_attempt(std::uint64_t service_type);
  void note_post() const;
  void make(request_kind kind);
  [[nodiscard]] std::string what() const { return terms.subject.in_words(); }

  const core_ptr core;
  const std::size_t member;
  const bool copies;
  const bool awaits_rejoin;
  const std::shared_ptr<message_ring> ring;
  outgoing_message message;
  std::optional<noting_sink> noted{};  // where there may be further attempts
  call_terms terms;                    // the peer: once it is known
  request_head head;
  std::span<std::byte> room;
  std::optional<call_peer> owner{};      // of a service or value: that incarnation
  std::shared_ptr<remote_state> made{};  // by this call
  std::uint64_t by_service = 0;          // by which service, if by one
};

namespace {

// A call that gets its end, or the room that it needs, from a thread that waits for it.
struct full_ledger {
  const call_ledger& calls;
  std::size_t most;
  static bool has_room(const void* of) {
    const auto& self = *static_cast<const full_ledger*>(of);
    return self.calls.size() < self.most;
  }
};

}  // namespace

// That of an actor, when it is there: each has its own.
std::shared_ptr<message_ring> rpc_sending::parts::inbox_of(rpc_core& of, std::size_t member,
                                                           const rpc_call_options& how) {
  if (member >= of.table().shape().named) {
    static_cast<void>(of.await_peer(member, of.end_of_call(how.deadline), {}, how.awaits_rejoin));
  }
  return of.requests_of(member);
}

rpc_sending::rpc_sending(std::unique_ptr<parts> made) noexcept : parts_(std::move(made)) {}
rpc_sending::rpc_sending(rpc_sending&& other) noexcept = default;
rpc_sending::~rpc_sending() = default;

rpc_sending rpc_sending::to_member(const core_ptr& core, const std::string& member, const rpc_call_options& how) {
  core->require_member();
  auto made = std::make_unique<parts>(core, core->require_name(member), how, request_kind::function);
  return rpc_sending(std::move(made));
}

rpc_sending rpc_sending::to_maker(const core_ptr& core, const std::string& member, const rpc_call_options& how,
                                  remote_handle& made) {
  auto sending = to_member(core, member, how);
  auto& parts = *sending.parts_;
  parts.make(request_kind::make);
  made = remote_handle(parts.made);
  return sending;
}

rpc_sending rpc_sending::to_service(const service_ptr& which, const rpc_call_options& how) {
  if (which == nullptr) throw_no_service();
  which->core->require_member();
  auto made = std::make_unique<parts>(which->core, which->owner.member, how, request_kind::service);
  made->terms.subject.service = std::shared_ptr<const std::string>(which, &which->name);
  made->head.object = which->id;
  made->owner = which->owner;
  return rpc_sending(std::move(made));
}

rpc_sending rpc_sending::to_service_maker(const service_ptr& which, const rpc_call_options& how, remote_handle& made) {
  auto sending = to_service(which, how);
  auto& parts = *sending.parts_;
  parts.make(request_kind::make_by_service);
  parts.by_service = which->id;
  made = remote_handle(parts.made);
  return sending;
}

rpc_sending rpc_sending::to_value(const remote_handle& which, const rpc_call_options& how) {
  auto& state = which.state();
  state.core()->require_member();
  state.require_made();
  auto made = std::make_unique<parts>(state.core(), state.place(), how, request_kind::method);
  made->head.object = state.id();
  if (!state.is_actor()) made->owner = state.owner();
  made->terms.kept = which.shared_state();
  return rpc_sending(std::move(made));
}

token_encoder& rpc_sending::functions() { return parts_->core->encoder(); }

std::span<std::byte> rpc_sending::make_room(std::size_t bytes, std::size_t attachments) {
  const bool has_cell = parts_->made != nullptr;
  const auto before = bytes_before_arguments(parts_->head.kind);
  parts_->room = parts_->message.make_room(before + bytes, attachments + (has_cell ? 1 : 0));
  if (has_cell) static_cast<void>(parts_->message.attach(parts_->made->cell()));
  if (before != sizeof(request_head)) {
    std::memcpy(parts_->room.data() + sizeof(request_head), &parts_->by_service, sizeof parts_->by_service);
  }
  return parts_->room.subspan(before);
}

attachment_sink* rpc_sending::attachments() noexcept {
  if (parts_->copies) return nullptr;
  return parts_->noted ? static_cast<attachment_sink*>(&*parts_->noted) : &parts_->message;
}

void rpc_sending::parts::make(request_kind kind) {
  if (terms.retry != nullptr) {
    throw error(
        errc::invalid_argument,
        "rpc_call_options::retries were given for remote(): its reference names the member that owns the value, "
        "so that it is made once. Catch member_lost, and make it anew");
  }
  made = std::make_shared<remote_state>(core, call_peer{.member = member, .incarnation = 0, .who = {}}, core->new_id(),
                                        core->where().blocks().allocate_cell());
  head.kind = terms.subject.kind = kind;
  head.object = made->id();
}

call_peer rpc_sending::parts::await_peer() const {
  if (!owner) return core->await_peer(member, terms.until, terms.subject, awaits_rejoin);
  if (core->is_gone(*owner) && terms.retry == nullptr)
    std::rethrow_exception(core->loss_of(*owner, false, terms.subject));
  return *owner;
}

// An actor that was started while the call was being encoded, under the name of one that is over, has an inbox of its
// own.
void rpc_sending::parts::require_same_ring() const {
  if (member >= core->table().shape().named && core->requests_of(member) != ring) {
    std::rethrow_exception(core->loss_of(terms.peer, false, terms.subject));
  }
}

// Functions of this program's executable are no other's. Those of libraries the member finds, or says that it has not.
void rpc_sending::parts::require_function_there(std::uint64_t target) const {
  if (terms.subject.kind == request_kind::service || terms.subject.kind == request_kind::make_by_service) return;
  const auto own = core->encoder().executable();
  if (token_encoder::entry_of(static_cast<function_token>(target)) != own) return;
  if (core->table().member(member).executable.load(std::memory_order_relaxed) == own + 1) return;
  throw error(errc::module_mismatch,
              text(what(), " was not sent: '", core->table().name_of(member),
                   "' is another program than this one, and does not have its functions. Call a service by name, or "
                   "make the call in a library that both load"));
}

call_ptr rpc_sending::parts::open() const {
  const auto until = terms.until;
  for (;;) {
    if (auto call = core->calls().open(terms)) return call;
    core->require_member();
    core->expire_all();
    const serving_crew::pause others_serve;
    const full_ledger full{.calls = core->calls(), .most = core->table().shape().calls};
    const auto due = core->calls().first_due();
    if (!core->reader().wait_until(&full_ledger::has_room, &full, due.when() < until.when() ? due : until) &&
        until.expired()) {
      throw task_error(error_info(errc::timed_out, text(what(), " was not sent in time: ", full.most,
                                                        " calls of this member are under way, and none has ended "
                                                        "(rpc_ticket_options::calls)")));
    }
  }
}

// The head as it is sent first: what differs later is written into it then.
void rpc_sending::parts::note_attempt(std::uint64_t service_type) {
  if (terms.retry == nullptr) return;
  terms.retry->frame.assign(room.begin(), room.end());
  std::memcpy(terms.retry->frame.data(), &head, sizeof head);
  if (terms.subject.service == nullptr) return;
  terms.retry->service = *terms.subject.service;
  terms.retry->service_type = service_type;
}

void rpc_sending::parts::note_post() const {
  core->trace().add(traced_post{.call = id_of(head),
                                .name = terms.subject.in_words(),
                                .member = core->table().name_of(member),
                                .when = clock::now()});
}

held_source rpc_sending::send(std::uint64_t target) {
  auto& parts = *parts_;
  const auto peer = parts.terms.peer = parts.await_peer();
  parts.require_same_ring();
  parts.require_function_there(target);
  parts.head.target = target;
  parts.note_attempt(target);
  auto call = parts.open();
  const auto generation = call->generation();
  try {
    parts.core->counts().sent_bytes.add(parts.room.size());
    parts.head.slot = static_cast<std::uint32_t>(call->slot());
    parts.head.generation = generation;
    parts.head.incarnation = peer.incarnation;
    parts.core->table().calls_of(parts.head.caller)[call->slot()].object.store(parts.head.object,
                                                                               std::memory_order_relaxed);
    std::memcpy(parts.room.data(), &parts.head, sizeof parts.head);
    parts.message.finish();
    if (parts.made != nullptr) {
      parts.made->set_owner(peer);
      parts.made->set_creation(call);
    }
    if (parts.core->trace().is_on()) parts.note_post();
    push_request(*parts.core, parts.message, *call, peer, generation);
  } catch (...) {
    parts.core->calls().fail(*call, [](bool) { return std::current_exception(); });
    throw;
  }
  return {.home = parts.core, .what = std::move(call)};
}

}  // namespace muster::detail
