// SPDX-License-Identifier: BSL-1.0
// The parent's side of calls that tasks make to their own pool: docs/design/tasks.md.
//
// A request is accepted only when there is a slot for it. Until then its cell stays as it is, and the worker may run
// the call itself; so no task ever waits for something that lies in the parent's private memory.
#include <algorithm>
#include <climits>
#include <cstring>

#include <muster/base/detail/futex.hpp>
#include <muster/base/error.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "nested_error.hpp"
#include "nested_request.hpp"

namespace muster {

namespace {

constexpr std::size_t nested_lane = 1;

void wake_requester(const request_cell& cell, const cell_word& before) noexcept {
  if (before.has(cell_flag::waiter)) futex_wake(futex_address(cell.word), INT_MAX, futex_scope::shared);
}

}  // namespace

// For all workers that there may be: where a worker's request is found, nothing is to be allocated.
void dispatcher::make_requests(std::size_t workers) {
  postponed_.reserve(workers * requests_per_worker);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    auto& requests = requests_[worker];
    if (requests != nullptr) continue;
    requests = std::make_unique<std::array<nested_request, requests_per_worker>>();
    for (std::size_t index = 0; index < requests->size(); ++index) {
      (*requests)[index].owner = this;
      (*requests)[index].worker = static_cast<std::uint16_t>(worker);
      (*requests)[index].cell = static_cast<std::uint16_t>(index);
    }
  }
}

dispatcher::nested_request& dispatcher::nested_request_of(std::size_t worker, std::size_t cell) {
  return (*requests_[worker])[cell];
}

// ---- accepting

// Idempotent: the cell's word says how things stand, the ring's entry only where to look.
void dispatcher::look_at_request(std::size_t worker, std::size_t cell, finished_list& finished) {
  if (cell >= requests_per_worker || stopped_) return;
  auto& request = nested_request_of(worker, cell);
  const auto found = cell_protocol::read(board_.request(worker, cell).word);
  const bool was_read = found.state() == cell_state::free || found.generation() != request.generation;
  if (request.reply && was_read) finished.free(std::move(request.reply));
  if (found.state() != cell_state::requested || request.child != nullptr) return;
  if (can_post_nested()) {
    accept(request, finished);
  } else {
    postpone(request, finished);
  }
}

void dispatcher::look_at_all_requests(std::size_t worker, finished_list& finished) {
  for (std::size_t cell = 0; cell < requests_per_worker; ++cell) look_at_request(worker, cell, finished);
}

bool dispatcher::can_post_nested() {
  return may_place_in(nested_lane) && !free_slots_.empty() && has_room(nested_lane);
}

// While there are such, every end is noticed: it may leave a slot.
void dispatcher::postpone(nested_request& request, finished_list& finished) {
  if (request.postponed) return;
  request.postponed = true;
  postponed_.push_back(&request);
  if (postponed_.size() == 1) begin_harvest(finished);
}

void dispatcher::look_at_postponed(finished_list& finished) {
  while (!postponed_.empty() && can_post_nested()) {
    auto& oldest = *postponed_.front();
    forget_postponed(oldest);
    look_at_request(oldest.worker, oldest.cell, finished);
  }
}

void dispatcher::forget_postponed(nested_request& request) {
  if (!std::exchange(request.postponed, false)) return;
  std::erase(postponed_, &request);
  if (postponed_.empty()) end_harvest();
}

bool dispatcher::has_requests() const { return !stopped_ && (!postponed_.empty() || has_completions()); }

void dispatcher::accept(nested_request& request, finished_list& finished) {
  const auto accepted = cell_protocol::try_accept(board_.request(request.worker, request.cell).word);
  if (!accepted) return;  // the worker runs it itself
  request.generation = accepted->generation();
  try {
    post_nested(request, *accepted, finished);
  } catch (const error& failure) {
    write_error(request, error_of(errc::corrupted, failure.what()));
  } catch (const std::bad_alloc&) {
    write_error(request, error_of(errc::out_of_memory, "no memory for another task"));
  }
}

outgoing_frame dispatcher::read_arguments(const request_cell& cell, const cell_word& accepted) {
  if (accepted.has(cell_flag::block_arguments)) {
    block_ref ref;
    std::memcpy(&ref, cell.arguments.data(), sizeof ref);
    return outgoing_frame(memory_.adopt(ref));
  }
  outgoing_frame frame(memory_, inline_argument_bytes);
  std::memcpy(frame.room().data(), cell.arguments.data(), inline_argument_bytes);
  return frame;
}

void dispatcher::post_nested(nested_request& request, const cell_word& accepted, finished_list& finished) {
  auto& cell = board_.request(request.worker, request.cell);
  task_request posted{.function = static_cast<function_token>(cell.token),
                      .frame = read_arguments(cell, accepted),
                      .label = {},
                      .sink = &request,
                      .admitted = admission::unlimited};
  auto& record = new_record(posted);
  record.caller_ = static_cast<std::uint16_t>(request.worker + 1);
  request.child = &record;
  const auto line = posted.frame.line();
  record.reply_.keep(posted.frame.take_payload());
  if (!may_place_in(nested_lane) ||
      !try_place(record, line)) {  // only of a worker that is dead, whose call must still be run
    record.keep_arguments(line);
    record.move_to({.phase = task_phase::waiting});
    enter_waiting(record, false, finished);
    return;
  }
  ++fed_;
  cell.token = std::uint64_t{record.where().generation} << 16U | record.where().slot;
  const auto before = cell_protocol::pass_on(cell.word, request.generation, cell_state::accepted, cell_state::posted);
  if (before) wake_requester(cell, *before);
}

// ---- answering

void dispatcher::answer(nested_request& request, task_record& record) noexcept {
  const scoped_lock lock(mutex_);
  auto reply = std::move(record.reply_);
  note_place(record, reply);
  const bool wanted = request.child == &record;  // else the worker that made the call is dead
  recycle(record);
  if (!wanted) return;
  request.child = nullptr;
  try {
    write_answer(request, std::move(reply));
  } catch (const std::bad_alloc&) {
    write_error(request, error_info(errc::out_of_memory, {}));
  }
}

void dispatcher::write_answer(nested_request& request, task_reply reply) {
  auto& cell = board_.request(request.worker, request.cell);
  if (!reply.succeeded()) return write_error(request, reply.error());
  if (!reply.shared().empty()) {
    return write_error(request, error_info(errc::not_serializable,
                                           "a call of this_pool:: that another worker ran has a result in shared "
                                           "memory, which cannot be passed on: return a copy"));
  }
  auto payload = reply.take_kept();
  if (!payload) {
    cell.reply_bytes = reply.bytes().size();
    std::memcpy(cell.reply.data(), reply.bytes().data(), reply.bytes().size());
    return publish_answer(request, cell_flag::none);
  }
  const auto ref = payload.ref();
  std::memcpy(cell.reply.data(), &ref, sizeof ref);
  request.reply = std::move(payload);
  publish_answer(request, cell_flag::block_reply);
}

void dispatcher::write_error(nested_request& request, error_info error) {
  auto& cell = board_.request(request.worker, request.cell);
  auto place = error.place();
  output_archive counter;
  serialize_nested_error(counter, error, place);
  std::span<std::byte> room = cell.reply;
  cell.reply_bytes = std::min(counter.written(), room.size());
  if (counter.written() > room.size()) {
    try {
      request.reply = memory_.allocate(counter.written());
    } catch (const muster::error&) {  // an empty text fits into the line
      return write_error(request, error_info(error.code(), {}));
    }
    room = request.reply.bytes();
    const auto ref = request.reply.ref();
    std::memcpy(cell.reply.data(), &ref, sizeof ref);
  }
  output_archive out(room.first(counter.written()));
  serialize_nested_error(out, error, place);
  publish_answer(request, request.reply ? cell_flag::failed | cell_flag::block_reply : cell_flag::failed);
}

void dispatcher::publish_answer(nested_request& request, cell_flag flags) {
  auto& cell = board_.request(request.worker, request.cell);
  const auto before = cell_protocol::answer(cell.word, request.generation, flags);
  if (!before) ++counters_.corrupted;
  if (!before || before->has(cell_flag::abandoned)) request.reply.reset();
  // Nobody but the parent could tell a worker that sleeps on a word that was overwritten.
  wake_requester(cell, before.value_or(cell_word(0, cell_flag::waiter, cell_state::free)));
}

// ---- the death of the worker that made the calls

void dispatcher::forget_requests(std::size_t worker, finished_list& finished) {
  for (std::size_t cell = 0; cell < requests_per_worker; ++cell) {
    const auto found = cell_protocol::read(board_.request(worker, cell).word);
    auto& request = nested_request_of(worker, cell);
    if (request.generation == 0 && found == cell_word()) continue;  // it was never used
    forget_request(request, finished);
  }
}

// What the worker had let go runs to its end; what it would have waited for is withdrawn, or asked to stop.
void dispatcher::forget_request(nested_request& request, finished_list& finished) {
  auto& cell = board_.request(request.worker, request.cell);
  forget_postponed(request);
  if (request.reply) finished.free(std::move(request.reply));
  const auto found = cell_protocol::read(cell.word);
  const bool abandoned = found.has(cell_flag::abandoned);
  if (found.state() == cell_state::requested && abandoned && request.child == nullptr) accept(request, finished);
  if (auto* const record = std::exchange(request.child, nullptr);
      record != nullptr && record->phase() != task_phase::settled) {
    record->sink_ = nullptr;
    record->detached_ = true;
    if (!abandoned && withdraw(*record)) {
      settle(*record, failed(errc::cancelled, "the task that called it is dead"), finished);
    }
  }
  request.reply.reset();
  cell_protocol::retire(cell.word, cell_protocol::read(cell.word).generation());
}

// ---- cancelling

// Takes the task from where no worker has it yet; the caller settles it.
bool dispatcher::withdraw(task_record& record) {
  const auto where = record.where();
  if (where.phase == task_phase::waiting) {
    leave_backlog(record);
    return true;
  }
  if (where.phase != task_phase::posted) return false;
  if (!slot_protocol::try_revoke(board_.slot(where.slot).word, generation_of(record))) return false;
  leave_slot(record);
  return true;
}

}  // namespace muster
