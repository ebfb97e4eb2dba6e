// SPDX-License-Identifier: BSL-1.0
// The part of a member that serves.
#include <cstring>
#include <optional>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/detail/outgoing_message.hpp>
#include <muster/rpc/detail/call_word.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/serialize/exceptions.hpp>

#include "member_claim.hpp"

namespace muster::detail {

namespace {

constinit thread_local rpc_core* acting_here = nullptr;
constinit thread_local const served_call* served_here = nullptr;

std::atomic<std::uint64_t>& word_of(const group_table& table, const request_head& head) {
  return table.calls_of(head.caller)[head.slot];
}

bool is_possible(const group_table& table, const request_head& head) noexcept {
  return head.caller < table.shape().members && head.slot < table.shape().calls;
}

/// A reply on its way to the ring of the caller.
///
/// Thread safety: belongs to the thread that serves the call.
class outgoing_reply {
public:
  outgoing_reply(rpc_core& core, const request_head& head)
      : core_(core), head_(head), ring_(core.replies_of(head.caller)) {}

  [[nodiscard]] std::span<std::byte> make_room(reply_kind kind, std::size_t bytes, std::size_t attachments) {
    message_.emplace(*ring_);
    const auto room = message_->make_room(sizeof(reply_head) + bytes, attachments);
    const reply_head own{.slot = head_.slot, .generation = head_.generation, .kind = kind};
    std::memcpy(room.data(), &own, sizeof own);
    return room.subspan(sizeof own);
  }
  [[nodiscard]] outgoing_message& message() noexcept { return *message_; }
  [[nodiscard]] bool is_made() const noexcept { return message_.has_value(); }

  // There is room for all that are wanted. Replies to calls that were given up may have filled the ring of a caller
  // that is stopped: that must not keep this member from leaving.
  void send() {
    message_->finish();
    const auto is_unwanted = [](void* of) {
      const auto& self = *static_cast<outgoing_reply*>(of);
      return self.core_.has_left() || !self.is_wanted();
    };
    if (is_wanted()) static_cast<void>(message_->push(deadline::never(), is_unwanted, this));
  }

private:
  [[nodiscard]] bool is_wanted() const {
    const auto found = word_of(core_.table(), head_).load(std::memory_order_acquire);
    return call_word::generation_of(found) == head_.generation &&
           call_word::state_of(found) != call_word::state::free &&
           member_view::of(core_.table(), head_.caller).is_here(core_.where());
  }

  rpc_core& core_;
  const request_head& head_;
  const std::shared_ptr<message_ring> ring_;
  std::optional<outgoing_message> message_;
};

void reply_error(rpc_core& core, const request_head& head, const error_info& why) {
  outgoing_reply reply(core, head);
  codec<error_info>::encode(reply.make_room(reply_kind::error, codec<error_info>::size(why), 0), why);
  reply.send();
}

/// A request as its function sees it.
///
/// Thread safety: as rpc_request.
class served_request final : public rpc_request {
public:
  served_request(rpc_core& core, rpc_job& job) : core_(core), job_(job), reply_(core, job.head) {}

  [[nodiscard]] std::span<const std::byte> arguments() const override {
    return job_.message.frame().subspan(sizeof(request_head));
  }
  [[nodiscard]] attachment_source& attachments() override { return job_.message; }
  [[nodiscard]] token_decoder& functions() override { return core_.decoder(); }
  void drop_arguments() noexcept override { job_.message.reset(); }
  [[nodiscard]] void* object() const override { return job_.value->value.get(); }
  [[nodiscard]] std::span<std::byte> make_reply(std::size_t bytes, std::size_t attachments) override {
    return reply_.make_room(reply_kind::value, bytes, attachments);
  }
  [[nodiscard]] attachment_sink* reply_attachments() override {
    return (job_.head.flags & copied_result) != 0 ? nullptr : &sink_;
  }
  void keep(std::shared_ptr<void> made) override {
    job_.value->value = std::move(made);
    job_.value->is_made.store(true, std::memory_order_release);
  }
  void send() { reply_.send(); }

private:
  /// Thread safety: as the request.
  class late_sink final : public attachment_sink {
  public:
    explicit late_sink(outgoing_reply& reply) noexcept : reply_(reply) {}
    std::uint64_t attach(const shared_block& what) override { return reply_.message().attach(what); }

  private:
    outgoing_reply& reply_;
  };

  rpc_core& core_;
  rpc_job& job_;
  outgoing_reply reply_;
  late_sink sink_{reply_};
};

error_info gone(const rpc_core& core, const char* what) {
  return {errc::invalid_argument, text(what, " at '", core.table().name_of(core.index()),
                                       "' that was called is not there any more: look it up again")};
}

}  // namespace

// ---- which call a thread is at

acting_member::acting_member(rpc_core& core) noexcept : before_(std::exchange(acting_here, &core)) {}
acting_member::~acting_member() { acting_here = before_; }
rpc_core* acting_member::current() noexcept { return acting_here; }

served_call::served_call(rpc_core& core, const request_head& head) noexcept
    : core_(core), head_(head), before_(std::exchange(served_here, this)) {}
served_call::~served_call() { served_here = before_; }
const served_call* served_call::current() noexcept { return served_here; }

deadline served_call::until() const noexcept {
  return head_.until == 0 ? deadline::never() : deadline(clock::time_point(clock::duration(head_.until)));
}

bool served_call::is_wanted() const noexcept {
  const auto found = word_of(core_.table(), head_).load(std::memory_order_acquire);
  return call_word::generation_of(found) == head_.generation && call_word::state_of(found) == call_word::state::begun &&
         !call_word::is_stopped(found) && !until().expired() &&
         member_view::of(core_.table(), head_.caller).is_here(core_.where());
}

// ---- requests that come

bool rpc_core::is_interrupted() const noexcept {
  return interrupted_.load(std::memory_order_acquire) ||
         domain_->deaths().load(std::memory_order_acquire) != deaths_.load(std::memory_order_relaxed);
}

std::function<void()> rpc_core::next() {
  const auto is_over = [](void* of) { return static_cast<rpc_core*>(of)->is_interrupted(); };
  ring_position at;
  if (own_.requests->claim(at, deadline::never(), is_over, this) == queue_result::done) {
    auto job = take_request(*own_.requests, at);
    return job != nullptr ? try_to_dispatch(std::move(job)) : nullptr;
  }
  interrupted_.store(false, std::memory_order_relaxed);
  const auto now = domain_->deaths().load(std::memory_order_acquire);
  if (deaths_.exchange(now, std::memory_order_relaxed) == now) return nullptr;
  return [this] { look_at_all(); };
}

void rpc_core::interrupt() noexcept {
  interrupted_.store(true, std::memory_order_release);
  push_nudge(index_);
}

void rpc_core::push_look(std::size_t member) noexcept {
  const reply_head head{.slot = 0, .generation = 0, .kind = reply_kind::look};
  const message_view what{.form = {.frame_bytes = sizeof head}, .bytes = std::as_bytes(std::span(&head, 1))};
  try {
    static_cast<void>(replies_of(member)->try_push(what));
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): its calls wait for their time
  }
}

// At a full ring no thread sleeps.
void rpc_core::push_nudge(std::size_t member) noexcept {
  const request_head head;
  const message_view what{.form = {.frame_bytes = sizeof head}, .bytes = std::as_bytes(std::span(&head, 1))};
  try {
    static_cast<void>((member == index_ ? own_.requests : requests_of(member))->try_push(what));
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): who waits there is told by the ring that it is broken
  }
}

// One that was overwritten, or for which there is no memory, is not served.
std::function<void()> rpc_core::try_to_dispatch(std::shared_ptr<rpc_job> job) noexcept {
  try {
    return dispatch(job);
  } catch (...) {
    if (is_possible(table_, job->head)) refuse(*job, capture_current_exception());
    return nullptr;
  }
}

std::function<void()> rpc_core::dispatch(std::shared_ptr<rpc_job> job) {
  const auto& head = job->head;
  if (head.kind == request_kind::nudge) return nullptr;
  if (head.kind == request_kind::look) {
    auto value = values_.find(head.object);
    return value != nullptr ? std::function<void()>([this, value] { look_at(value); }) : nullptr;
  }
  if (!is_possible(table_, head)) return nullptr;  // it was overwritten
  if (head.incarnation != incarnation_ || has_left()) {
    reply_lost(head);
    return nullptr;
  }
  if (head.kind == request_kind::function) return runner(std::move(job));
  return head.kind == request_kind::service ? dispatch_service(std::move(job)) : dispatch_value(std::move(job));
}

std::function<void()> rpc_core::dispatch_service(std::shared_ptr<rpc_job> job) {
  auto service = services_.find(job->head.object);
  if (service == nullptr) return refuse(*job, gone(*this, "a service")), nullptr;
  job->service = service;
  auto request = runner(std::move(job));
  if (service->line == nullptr) return request;
  auto& line = *service->line;
  return in_line(service->line, line, std::move(request));
}

std::function<void()> rpc_core::dispatch_value(std::shared_ptr<rpc_job> job) {
  if (job->head.kind == request_kind::make) {
    auto made = std::make_shared<stored_value>();
    made->id = job->head.object;
    made->cell = job->message.take(0);
    values_.add(made);
  }
  auto value = values_.find(job->head.object);
  if (value == nullptr) return refuse(*job, gone(*this, "a value")), nullptr;
  job->value = value;
  const bool is_at_once = (job->head.flags & concurrent_call) != 0 && value->is_made.load(std::memory_order_acquire);
  auto request = runner(std::move(job));
  if (is_at_once) return request;
  auto& line = value->line;
  return in_line(std::move(value), line, std::move(request));
}

std::function<void()> rpc_core::in_line(std::shared_ptr<void> owner, serial_line& line, std::function<void()> request) {
  if (!line.enter(request)) return nullptr;
  return [owner = std::move(owner), &line, request = std::move(request)]() mutable { line.run(std::move(request)); };
}

std::function<void()> rpc_core::runner(std::shared_ptr<rpc_job> job) {
  return [this, job = std::move(job)] {
    run(*job);
    if (leaves_.load(std::memory_order_acquire)) leave_now();
  };
}

void rpc_core::run(rpc_job& job) noexcept {
  const auto& head = job.head;
  if (has_left()) return reply_lost(head);
  const served_call serving(*this, head);
  if (serving.until().expired()) return;  // its caller knows
  if (!call_word::try_begin(word_of(table_, head), head.generation)) return;
  const acting_member here(*this);
  std::optional<error_info> failure;
  try {
    serve(job);
  } catch (...) {
    failure.emplace(capture_current_exception());
  }
  job.message.reset();
  if (failure) {
    if (head.kind == request_kind::make) job.value->failure = failure;
    refuse(job, *failure);
  }
  if (head.kind == request_kind::make) look_at(job.value);  // its last reference may have gone meanwhile
}

// With a value that could not be made goes what its making threw.
void rpc_core::serve(rpc_job& job) {
  const auto& head = job.head;
  served_request request(*this, job);
  if (job.service != nullptr) {
    if (job.service->type != head.target) throw error(errc::invalid_argument, "a service was called as another type");
    job.service->run(request);
  } else {
    if (head.kind == request_kind::method && !job.value->is_made.load(std::memory_order_acquire)) {
      if (job.value->failure) job.value->failure->raise();
      throw error(errc::invalid_argument,
                  "a value was called that was never made: the call that was to make it was "
                  "withdrawn, or its time had passed");
    }
    decoder_.decode<rpc_thunk>(static_cast<function_token>(head.target))(request);
  }
  request.send();
}

void rpc_core::refuse(const rpc_job& job, const error_info& why) noexcept {
  try {
    reply_error(*this, job.head, why);
  } catch (const std::exception&) {  // without room for it: the caller is told that much, or waits for its time
    try {
      reply_error(*this, job.head, error_info(why.code(), "there was no memory for the error"));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see above
    }
  }
}

void rpc_core::reply_lost(const request_head& head) noexcept {
  if (!is_possible(table_, head) || head.kind == request_kind::look || head.kind == request_kind::nudge) return;
  try {
    outgoing_reply reply(*this, head);
    static_cast<void>(reply.make_room(reply_kind::lost, 0, 0));
    reply.send();
  } catch (
      const std::exception&) {  // NOLINT(bugprone-empty-catch): its caller looks when it is told that a member has left
  }
}

// ---- values without references

void rpc_core::look_at_all() {
  for (const auto& each : values_.all()) look_at(each);
}

// Behind its calls. Others may still have calls under way: their references keep the cell meanwhile.
void rpc_core::look_at(const value_ptr& which) {
  if (which->names != 0 || !which->cell.is_unique() || !domain_->blocks().is_sole(which->cell)) return;
  auto gone = values_.remove(which->id);
  if (gone == nullptr) return;
  auto& line = gone->line;
  if (auto drop = in_line(gone, line, [gone] {})) drop();  // calls that are not in the line keep it, too
}

void rpc_core::tell_owner(const call_peer& owner, std::uint64_t id) noexcept {
  try {
    request_head head;
    head.kind = request_kind::look;
    head.object = id;
    head.incarnation = owner.incarnation;
    const message_view what{.form = {.frame_bytes = sizeof head}, .bytes = std::as_bytes(std::span(&head, 1))};
    static_cast<void>((owner.member == index_ ? own_.requests : requests_of(owner.member))->try_push(what));
  } catch (
      const std::exception&) {  // NOLINT(bugprone-empty-catch): it is found at the next death, or when the owner leaves
  }
}

}  // namespace muster::detail
