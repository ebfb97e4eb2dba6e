// SPDX-License-Identifier: BSL-1.0
// The part of a member that serves.
#include <cstring>
#include <optional>
#include <utility>

#include <muster/base/detail/demangle.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/queue/detail/outgoing_message.hpp>
#include <muster/rpc/detail/call_word.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/rpc/detail/served_call.hpp>
#include <muster/serialize/exceptions.hpp>

#include "member_claim.hpp"

namespace muster::detail {

namespace {

constinit thread_local rpc_core* acting_here = nullptr;
constinit thread_local const served_call* served_here = nullptr;

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
    core_.counts().sent_bytes.add(room.size());
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

/// Where blocks of a reply go, which is made after this.
///
/// Thread safety: as the reply.
class late_sink final : public attachment_sink {
public:
  explicit late_sink(outgoing_reply& reply) noexcept : reply_(reply) {}
  std::uint64_t attach(const shared_block& what) override { return reply_.message().attach(what); }

private:
  outgoing_reply& reply_;
};

/// Thread safety: as deferred_reply.
class late_reply final : public deferred_reply {
public:
  late_reply(rpc_core& core, const request_head& head)
      : keeps_(core.shared_from_this()), core_(core), head_(head), reply_(core, head_) {}

  [[nodiscard]] bool try_begin() noexcept override { return !begun_.exchange(true, std::memory_order_acq_rel); }
  [[nodiscard]] std::span<std::byte> make_reply(std::size_t bytes, std::size_t attachments) override {
    return reply_.make_room(reply_kind::value, bytes, attachments);
  }
  [[nodiscard]] attachment_sink* reply_attachments() override {
    return (head_.flags & copied_result) != 0 ? nullptr : &sink_;
  }
  void send() override { reply_.send(); }
  void fail(const error_info& why) noexcept override { core_.refuse(head_, why); }

private:
  const core_ptr keeps_;
  rpc_core& core_;
  const request_head head_;
  outgoing_reply reply_;
  late_sink sink_{reply_};
  std::atomic<bool> begun_ = false;
};

/// A request as its function sees it.
///
/// Thread safety: as rpc_request.
class served_request final : public rpc_request {
public:
  served_request(rpc_core& core, rpc_job& job) : core_(core), job_(job), reply_(core, job.head) {}

  [[nodiscard]] std::span<const std::byte> arguments() const override {
    return job_.message.frame().subspan(bytes_before_arguments(job_.head.kind));
  }
  [[nodiscard]] attachment_source& attachments() override { return job_.message; }
  [[nodiscard]] token_decoder& functions() override { return core_.decoder(); }
  void drop_arguments() noexcept override { job_.message.reset(); }
  void is_of(const std::type_info& callable) noexcept override { job_.callable = &callable; }
  [[nodiscard]] void* object() const override { return job_.value->value.get(); }
  [[nodiscard]] std::span<std::byte> make_reply(std::size_t bytes, std::size_t attachments) override {
    return reply_.make_room(reply_kind::value, bytes, attachments);
  }
  [[nodiscard]] attachment_sink* reply_attachments() override {
    return (job_.head.flags & copied_result) != 0 ? nullptr : &sink_;
  }
  [[nodiscard]] bool keeps_result() const override { return makes_a_value(job_.head.kind); }
  void keep(std::shared_ptr<void> made) override {
    job_.value->value = std::move(made);
    job_.value->is_made.store(true, std::memory_order_release);
  }
  [[nodiscard]] std::shared_ptr<deferred_reply> defer() override {
    is_deferred_ = true;
    auto made = std::make_shared<late_reply>(core_, job_.head);
    core_.add_deferred(made);
    return made;
  }

  void send() {
    if (!is_deferred_) reply_.send();
  }

private:
  rpc_core& core_;
  rpc_job& job_;
  outgoing_reply reply_;
  late_sink sink_{reply_};
  bool is_deferred_ = false;
};

}  // namespace

/// What is noted of a call while it runs: how many, and how long, where it is of a service or there is a trace.
///
/// Thread safety: belongs to the thread that serves the call.
class served_run {
public:
  served_run(rpc_core& core, const rpc_job& job)
      : core_(core), job_(job), is_timed_(job.service != nullptr || core.trace().is_on()) {
    core_.counts().served.add();
    if (is_timed_) begun_ = clock::now();
  }
  /// Before the reply goes, so that its caller finds it counted. Again: nothing.
  void end(bool has_failed) noexcept {
    if (std::exchange(has_ended_, true)) return;
    if (has_failed) core_.counts().failed.add();
    if (!is_timed_) return;
    const auto ended = clock::now();
    if (job_.service != nullptr) job_.service->counts.add(ended - begun_, has_failed);
    if (core_.trace().is_on()) note(ended, has_failed);
  }

private:
  [[nodiscard]] std::string name() const {
    if (job_.service != nullptr) return job_.service->name;
    return job_.callable != nullptr ? name_of(*job_.callable) : std::string("a function");
  }
  void note(clock::time_point ended, bool has_failed) const noexcept {
    try {
      core_.trace().add(traced_run{.call = id_of(job_.head),
                                   .name = name(),
                                   .caller = core_.table().name_of(job_.head.caller),
                                   .begin = begun_,
                                   .end = ended,
                                   .has_failed = has_failed});
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory for it: it is not in the trace
    }
  }

  rpc_core& core_;
  const rpc_job& job_;
  const bool is_timed_;
  clock::time_point begun_{};
  bool has_ended_ = false;
};

void throw_future_is_not_kept() {
  throw error(
      errc::invalid_argument,
      "remote() keeps what a service returns, and this one returns a future: call it, or have the service wait");
}

// ---- which call a thread is at

acting_member::acting_member(rpc_core& core) noexcept : before_(std::exchange(acting_here, &core)) {}
acting_member::~acting_member() { acting_here = before_; }
rpc_core* acting_member::current() noexcept { return acting_here; }

served_call::served_call(rpc_core& core, const request_head& head) noexcept
    : core_(core), head_(head), before_(std::exchange(served_here, this)) {}
served_call::~served_call() {
  served_here = before_;
  if (watched_ != nullptr) core_.stops().forget(watched_);
}

std::stop_token served_call::stop_token() const {
  if (watched_ == nullptr) watched_ = core_.stops().watch(head_, until());
  return watched_->source.get_token();
}
const served_call* served_call::current() noexcept { return served_here; }

deadline served_call::until() const noexcept { return end_of(head_); }

bool served_call::is_wanted() const noexcept { return core_.is_wanted(head_); }

bool rpc_core::is_wanted(const request_head& head) const noexcept {
  const auto found = word_of(table_, head).load(std::memory_order_acquire);
  return call_word::generation_of(found) == head.generation && call_word::state_of(found) == call_word::state::begun &&
         !call_word::is_stopped(found) && !end_of(head).expired() &&
         member_view::of(table_, head.caller).is_here(*domain_);
}

std::function<void()> rpc_core::runner(std::shared_ptr<rpc_job> job) {
  return [this, job = std::move(job)] {
    run(*job);
    if (leaves_.load(std::memory_order_acquire)) leave_now();
  };
}

// A circle is of all that are in it: it is told as it is, not as an exception of one of them.
void rpc_core::run(rpc_job& job) noexcept {
  const auto& head = job.head;
  if (has_left()) return reply_lost(head);
  const served_call serving(*this, head);
  // Else its caller knows.
  if (serving.until().expired() || !call_word::try_begin(word_of(table_, head), head.generation)) {
    return counts_.refused.add();
  }
  waits_.clear(id_of(head));  // it has its turn
  const acting_member here(*this);
  served_run watched(*this, job);
  std::optional<error_info> failure;
  try {
    serve(job, watched);
  } catch (const task_error& found) {
    failure.emplace(found.code() == errc::would_deadlock ? found.info() : capture_current_exception());
  } catch (...) {
    failure.emplace(capture_current_exception());
  }
  job.message.reset();
  if (failure) {
    watched.end(true);
    if (makes_a_value(head.kind)) job.value->failure = failure;
    refuse(head, *failure);
  }
  if (makes_a_value(head.kind)) look_at(job.value);  // its last reference may have gone meanwhile
}

// With a value that could not be made goes what its making threw.
void rpc_core::serve(rpc_job& job, served_run& watched) {
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
  watched.end(false);
  if (!makes_a_value(head.kind)) crew_.end_soon();  // a value may be let go of behind the reply
  request.send();
}

void rpc_core::refuse(const request_head& head, const error_info& why) noexcept {
  try {
    reply_error(*this, head, why);
  } catch (const std::exception&) {  // without room for it: the caller is told that much, or waits for its time
    try {
      reply_error(*this, head, error_info(why.code(), "there was no memory for the error"));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): see above
    }
  }
}

// Those that were made are let go of when there are twice as many as were left the last time.
void rpc_core::add_deferred(const std::shared_ptr<deferred_reply>& which) {
  const scoped_lock lock(deferred_mutex_);
  if (deferred_.size() == deferred_.capacity())
    std::erase_if(deferred_, [](const auto& each) { return each.expired(); });
  deferred_.push_back(which);
}

void rpc_core::fail_deferred() noexcept {
  std::vector<std::weak_ptr<deferred_reply>> all;
  {
    const scoped_lock lock(deferred_mutex_);
    all.swap(deferred_);
  }
  const error_info why(errc::peer_lost, "the member that served the call has left before what it waits for was there");
  for (const auto& each : all) {
    const auto still = each.lock();
    if (still != nullptr && still->try_begin()) still->fail(why);
  }
}

void rpc_core::reply_lost(const request_head& head) noexcept {
  if (!is_possible(table_, head) || head.kind >= request_kind::look) return;
  try {
    outgoing_reply reply(*this, head);
    static_cast<void>(reply.make_room(reply_kind::lost, 0, 0));
    reply.send();
  } catch (
      const std::exception&) {  // NOLINT(bugprone-empty-catch): its caller looks when it is told that a member has left
  }
}

}  // namespace muster::detail
