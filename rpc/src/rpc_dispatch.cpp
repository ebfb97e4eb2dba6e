// SPDX-License-Identifier: BSL-1.0
// Requests that come to a member, and what becomes ready to run.
#include <array>
#include <climits>
#include <cstring>
#include <utility>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/rpc/detail/call_word.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/serialize/exceptions.hpp>

#include "member_claim.hpp"

namespace muster::detail {

namespace {

error_info gone(const rpc_core& core, const char* what) {
  return {errc::invalid_argument, text(what, " at '", core.table().name_of(core.index()),
                                       "' that was called is not there any more: look it up again")};
}

void raise_help(member_line& line) noexcept {
  line.help.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(futex_address(line.help), INT_MAX, futex_scope::shared);
}

}  // namespace

bool rpc_core::is_interrupted() const noexcept {
  return interrupted_.load(std::memory_order_acquire) ||
         domain_->deaths().load(std::memory_order_acquire) != deaths_.load(std::memory_order_relaxed);
}

std::function<void()> rpc_core::next() {
  const auto is_over = [](void* of) { return static_cast<rpc_core*>(of)->is_interrupted(); };
  ring_position at;
  if (own_.requests->claim(at, deadline::never(), is_over, this) == queue_result::done) {
    auto job = take_request(*own_.requests, at);
    if (job != nullptr) counts_.received_bytes.add(job->message.frame().size());
    return job != nullptr ? try_to_dispatch(std::move(job)) : nullptr;
  }
  interrupted_.store(false, std::memory_order_relaxed);
  const auto now = domain_->deaths().load(std::memory_order_acquire);
  if (deaths_.exchange(now, std::memory_order_relaxed) == now) return nullptr;
  return [this] {
    look_at_all();
    crew_.wake_runners();  // they may be alone
  };
}

void rpc_core::interrupt() noexcept {
  interrupted_.store(true, std::memory_order_release);
  push_notice(index_, request_kind::nudge);
}

// ---- attending to requests

// A request that came before is seen here; the sender of a later one sees that none attends.
bool rpc_core::look_away() noexcept {
  auto& line = table_.member(index_);
  line.unattended.store(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (own_.requests->size() == 0) return true;
  line.unattended.store(0, std::memory_order_seq_cst);
  return false;
}

void rpc_core::look_back() noexcept { table_.member(index_).unattended.store(0, std::memory_order_seq_cst); }

std::uint32_t rpc_core::calls_for_help() const noexcept {
  return table_.member(index_).help.load(std::memory_order_seq_cst);
}

// Deaths are the receiving thread's business; where there is none, they are a call for help.
bool rpc_core::await_call_for_help(std::uint32_t seen, bool is_unattended, deadline until) noexcept {
  auto& word = table_.member(index_).help;
  const auto deaths =
      is_unattended ? deaths_.load(std::memory_order_relaxed) : domain_->deaths().load(std::memory_order_acquire);
  const std::array awaited{futex_expectation{.word = futex_address(word), .expected = seen},
                           futex_expectation{.word = futex_address(domain_->deaths()), .expected = deaths}};
  const auto is_called = [&] {
    return word.load(std::memory_order_seq_cst) != seen || domain_->deaths().load(std::memory_order_acquire) != deaths;
  };
  while (!is_called() && !until.expired()) domain_->sleep(awaited, until);
  return is_called();
}

void rpc_core::call_for_help() noexcept { raise_help(table_.member(index_)); }

void rpc_core::ask_for_attention(std::size_t member) noexcept {
  auto& line = table_.member(member);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (line.unattended.load(std::memory_order_relaxed) == 1) raise_help(line);
}

void rpc_core::push_look(std::size_t member) noexcept {
  const reply_head head{.slot = 0, .generation = 0, .kind = reply_kind::look};
  const message_view what{.form = {.frame_bytes = sizeof head}, .bytes = std::as_bytes(std::span(&head, 1))};
  try {
    static_cast<void>(replies_of(member)->try_push(what));
  } catch (const error&) {  // NOLINT(bugprone-empty-catch): its calls wait for their time
  }
}

void rpc_core::push_notice(std::size_t member, request_kind kind, std::uint64_t object) noexcept {
  request_head head;
  head.kind = kind;
  head.object = object;
  const message_view what{.form = {.frame_bytes = sizeof head}, .bytes = std::as_bytes(std::span(&head, 1))};
  try {
    static_cast<void>((member == index_ ? own_.requests : requests_of(member))->try_push(what));
    ask_for_attention(member);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): as if there were no room
  }
}

// One that was overwritten, or for which there is no memory, is not served.
std::function<void()> rpc_core::try_to_dispatch(std::shared_ptr<rpc_job> job) noexcept {
  try {
    return dispatch(job);
  } catch (...) {
    if (is_possible(table_, job->head)) refuse_unbegun(job->head, capture_current_exception());
    return nullptr;
  }
}

std::function<void()> rpc_core::dispatch(std::shared_ptr<rpc_job> job) {
  const auto& head = job->head;
  if (head.kind == request_kind::nudge) return nullptr;
  if (head.kind == request_kind::retire) {
    auto value = values_.find(head.object);
    if (value == nullptr) return nullptr;
    auto& line = value->line;
    return in_line(std::move(value), line, [this] { retire(); }, {});
  }
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
  if (service == nullptr) return refuse_unbegun(job->head, gone(*this, "a service")), nullptr;
  job->service = service;
  const auto head = job->head;
  auto request = runner(std::move(job));
  if (service->line == nullptr) return request;
  auto& line = *service->line;
  return in_line(service->line, line, std::move(request), head);
}

std::function<void()> rpc_core::dispatch_value(std::shared_ptr<rpc_job> job) {
  if (makes_a_value(job->head.kind)) {
    auto made = std::make_shared<stored_value>();
    made->id = job->head.object;
    made->cell = job->message.take(0);
    values_.add(made);
    if (job->head.kind == request_kind::make_by_service) return dispatch_maker(std::move(job), std::move(made));
  }
  auto value = values_.find(job->head.object);
  if (value == nullptr) return refuse_unbegun(job->head, gone(*this, "a value")), nullptr;
  job->value = value;
  const bool is_at_once = (job->head.flags & concurrent_call) != 0 && value->is_made.load(std::memory_order_acquire);
  const auto head = job->head;
  auto request = runner(std::move(job));
  if (is_at_once) return request;
  auto& line = value->line;
  return in_line(std::move(value), line, std::move(request), head);
}

// In the service's line, if it has one; calls of the value wait until it is made.
std::function<void()> rpc_core::dispatch_maker(std::shared_ptr<rpc_job> job, value_ptr made) {
  const auto frame = job->message.frame().subspan(sizeof(request_head));
  std::uint64_t id = 0;
  if (frame.size() >= sizeof id) std::memcpy(&id, frame.data(), sizeof id);
  job->value = made;
  job->service = services_.find(id);
  if (job->service == nullptr) {
    return refuse_unbegun(job->head, *(made->failure = gone(*this, "a service"))), nullptr;
  }
  const auto head = job->head;
  const auto by = job->service->line;
  std::function<void()> request = [this, job = std::move(job), made] { made->line.run(runner(job)); };
  std::function<void()> none;
  static_cast<void>(made->line.enter(none, id_of(head), [](const call_id&) {}));
  return by != nullptr ? in_line(by, *by, std::move(request), head) : request;
}

std::function<void()> rpc_core::in_line(std::shared_ptr<void> owner, serial_line& line, std::function<void()> request,
                                        const request_head& head) {
  const auto self = id_of(head);
  if (!line.enter(request, self, [&](const call_id& before) { waits_.set(self, before); })) {
    end_circle(head);
    return nullptr;
  }
  return [owner = std::move(owner), &line, request = std::move(request)]() mutable { line.run(std::move(request)); };
}

void rpc_core::refuse_unbegun(const request_head& head, const error_info& why) noexcept {
  counts_.refused.add();
  refuse(head, why);
}

// A call that came to a busy line closes a circle only if a call that is served waits for it.
void rpc_core::end_circle(const request_head& head) noexcept {
  const auto self = id_of(head);
  const auto waiting = call_id::unpack(head.chain);
  if (!waiting.is_any() || waits_.next(waiting) != self) return;
  try {
    const auto circle = waits_.circle_of(self);
    if (circle.empty()) return;
    const auto why = deadlock_of(circle);
    if (call_word::try_begin(word_of(table_, head), head.generation)) refuse(head, why);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): no memory: it ends at its deadline
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
  if (auto drop = in_line(gone, line, [gone] {}, {})) drop();  // calls that are not in the line keep it, too
}

}  // namespace muster::detail
