// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/nested_end.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include <muster/base/detail/futex.hpp>
#include <muster/base/detail/pending_work.hpp>
#include <muster/base/error.hpp>
#include <muster/base/spin.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/look.hpp>
#include <muster/memory/wait/outlook.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/queue/slot_protocol.hpp>
#include <muster/queue/worker_end.hpp>

#include "current_call.hpp"
#include "nested_error.hpp"

namespace muster {

namespace {

thread_local nested_end* this_threads_end = nullptr;

task_reply overwritten() {
  return task_reply(error_info(errc::corrupted, "the request of a nested call was overwritten in shared memory"));
}

}  // namespace

// ---- the reply

nested_reply::~nested_reply() {
  if (end_ != nullptr && end_->made_in_.is_here()) end_->release(cell_);
}

error_info nested_reply::error() const { return end_ != nullptr ? read_nested_error(bytes_) : own_.error(); }

// ---- a call

nested_call::~nested_call() {
  if (end_ != nullptr && !local_ && end_->made_in_.is_here()) end_->abandon(cell_, generation_);
}

cell_word nested_call::look() const noexcept {
  if (end_->closed_.load(std::memory_order_acquire)) return {};
  return cell_protocol::read(end_->cell(cell_).word);
}

void nested_call::require_this_thread() const {
  if (this_threads_end == end_.get() && end_ != nullptr) return;
  throw error(errc::invalid_argument,
              "the future of a nested call was used in another thread than its task's: get() it there, and hand on the "
              "value");
}

void nested_call::settle(task_reply reply) { local_.emplace(std::move(reply)); }

bool nested_call::is_done() const {
  if (end_ != nullptr) end_->require_here();
  if (local_) return true;
  const auto found = look();
  return found.generation() != generation_ || found.state() == cell_state::answered;
}

nested_call::stage nested_call::advance(cell_word& found, bool helps) {
  found = look();
  if (found.generation() != generation_ || found.state() == cell_state::free || found.state() > cell_state::answered) {
    settle(overwritten());
    return stage::over;
  }
  if (found.state() == cell_state::answered) return stage::over;
  if (helps && found.state() == cell_state::requested) {
    end_->require_depth();
    if (!cell_protocol::try_take_back(end_->cell(cell_).word, generation_)) return stage::again;
    settle(end_->run_taken_back(cell_, found.has(cell_flag::block_arguments)));
    return stage::over;
  }
  if (helps && found.state() == cell_state::posted) {
    if (const auto task = end_->try_claim(cell_)) {
      settle(end_->run_claimed(*task));
      return stage::over;
    }
  }
  return stage::elsewhere;
}

bool nested_call::wait(deadline until) {
  auto* const self = this;
  return wait_for_any(std::span(&self, 1), until);
}

bool nested_call::wait_for_any(std::span<nested_call* const> calls, deadline until) {
  std::array<nested_end::seen_cell, requests_per_worker> seen;
  for (;;) {
    const bool helps = !until.expired();
    std::size_t count = 0;
    bool again = false;
    for (auto* const each : calls) {
      if (each->end_ != nullptr) each->end_->require_here();
      if (each->local_) return true;
      each->require_this_thread();
      cell_word found;
      const auto how = each->advance(found, helps);
      if (how == stage::over) return true;
      again = again || how == stage::again;
      seen.at(count++) = {.cell = each->cell_, .word = found};
    }
    if (again) continue;
    if (!helps) return false;
    calls.front()->end_->spin_or_sleep(std::span(seen).first(count), until);
  }
}

nested_reply nested_call::take() {
  if (end_ != nullptr) end_->require_here();
  if (!local_) require_this_thread();
  const auto end = std::exchange(end_, nullptr);
  if (local_) return nested_reply(std::move(*local_));
  auto& cell = end->cell(cell_);
  const auto found = cell_protocol::read(cell.word);
  const bool failed = found.has(cell_flag::failed);
  std::span<const std::byte> bytes =
      std::span(cell.reply).first(std::min<std::size_t>(cell.reply_bytes, cell.reply.size()));
  if (found.has(cell_flag::block_reply)) {
    block_ref ref;
    std::memcpy(&ref, cell.reply.data(), sizeof ref);
    try {
      bytes = end->memory().view(ref);
    } catch (const error& failure) {
      end->release(cell_);
      return nested_reply(task_reply(error_info(errc::corrupted, failure.what())));
    }
  }
  return {*end, cell_, bytes, failed};
}

bool nested_call::cancel(cancellation how) {
  if (end_ != nullptr) end_->require_here();
  if (local_) return false;
  require_this_thread();
  const auto found = look();
  const bool mine = found.generation() == generation_;
  bool withdrawn = false;
  if (mine && found.state() == cell_state::requested) {
    withdrawn = cell_protocol::try_take_back(end_->cell(cell_).word, generation_);
    if (withdrawn) end_->drop_taken_back(cell_, found.has(cell_flag::block_arguments));
  }
  if (mine && !withdrawn && look().state() == cell_state::posted) {
    const auto task = end_->try_claim(cell_);
    withdrawn = task.has_value();
    if (withdrawn) {
      end_->drop_claimed(*task);
    } else if (how != cancellation::withdraw) {
      end_->ask_to_stop(cell_);
    }
  }
  if (withdrawn) settle(task_reply(error_info(errc::cancelled, "cancelled before a worker had begun it")));
  return withdrawn;
}

// ---- the worker's side

nested_end::nested_end(worker_end& worker) : worker_(worker) { this_threads_end = this; }

void nested_end::close() noexcept {
  closed_.store(true, std::memory_order_release);
  if (this_threads_end == this) this_threads_end = nullptr;
}

nested_end* nested_end::current() noexcept { return task_call::current() != nullptr ? this_threads_end : nullptr; }

nested_end& nested_end::require_current() {
  if (auto* const end = current()) {
    end->require_here();
    return *end;
  }
  throw error(errc::invalid_argument,
              "this_pool:: was used outside of a task: there is no pool that this code runs in; call the pool itself, "
              "or, in a thread that a task has started, leave the calls to the task's own thread");
}

arena& nested_end::memory() noexcept { return worker_.memory_; }

token_encoder& nested_end::functions() {
  if (!functions_) functions_.emplace(worker_.board_.modules(), token_encoder::entered_only{});
  return *functions_;
}

request_cell& nested_end::cell(std::size_t index) noexcept {
  return worker_.board_.request(worker_.options_.index, index);
}

void nested_end::require_depth() const {
  if (depth_ < most_nested_depth) return;
  throw error(errc::overflow, text("calls of this_pool:: run ", most_nested_depth,
                                   " deep inside of one another in one worker: end the recursion earlier, and do the "
                                   "rest in the task itself"));
}

std::optional<std::size_t> nested_end::find_free_cell() noexcept {
  for (std::size_t step = 0; step < requests_per_worker; ++step) {
    const auto index = (next_cell_ + step) % requests_per_worker;
    if (cell_protocol::read(cell(index).word).state() != cell_state::free) continue;
    next_cell_ = index + 1;
    return index;
  }
  return std::nullopt;
}

nested_call nested_end::submit(function_token function, outgoing_frame frame) {
  require_depth();
  const auto token = static_cast<std::uint64_t>(function);
  const bool in_block = !frame.is_inline();
  const auto line = frame.line();
  // Of blocks that go along, this process may die while another still borrows them: such calls are run in place.
  const auto attachments = frame.take_attachments();
  const auto index = attachments.empty() ? find_free_cell() : std::nullopt;
  if (!index) {
    const auto payload = frame.take_payload();  // until the call has ended
    return {shared_from_this(), run_unposted(token, line, in_block)};
  }
  static_cast<void>(frame.take_payload().lend());  // by `line`
  auto& request = cell(*index);
  const auto generation = cell_protocol::read(request.word).generation() + 1;
  request.token = token;
  request.arguments = line;
  cell_protocol::publish(request.word, generation, in_block ? cell_flag::block_arguments : cell_flag::none);
  enter_into_ring(*index, generation);
  return {shared_from_this(), *index, generation};
}

void nested_end::enter_into_ring(std::size_t cell, std::uint64_t generation) {
  worker_.board_.enter(worker_.options_.index, {.generation = static_cast<std::uint32_t>(generation),
                                                .slot = static_cast<std::uint16_t>(first_request_entry | cell)});
  worker_.ring_bell();
}

// ---- running a call in place

task_reply nested_end::run(task_call& call) {
  ++depth_;
  {
    const inner_call inside(call);
    try {
      worker_.functions_.decode<task_thunk>(static_cast<function_token>(call.slot_.token))(call);
    } catch (...) {
      worker_.fail(call);
    }
    task_returned();
  }
  --depth_;
  // Which stays noted: the task around it goes on.
  if (detail::pending_work::is_any()) worker_.finish(call, detail::pending_work::await);
  if (!call.keep_borrowed()) worker_.must_end_ = true;
  worker_.finished_ += call.count();
  auto reply = call.take_reply();
  if (!reply.succeeded()) {
    task_place here;
    here.worker = static_cast<int>(worker_.options_.index);
    here.pid = ::getpid();
    here.device = worker_.options_.device;
    reply.set_place(std::move(here));
  }
  return reply;
}

// In a slot that only this process has: a death is that of the task around it, and nobody else ever knew of the call.
task_reply nested_end::run_unposted(std::uint64_t token, const argument_line& arguments, bool in_block) {
  const auto owner = static_cast<unsigned>(worker_.options_.index) + 1;
  const slot_word claimed(1, owner, in_block ? slot_flag::block_arguments : slot_flag::none, slot_state::claimed);
  task_slot own{.word = claimed.bits(), .token = token, .arguments = arguments, .reply = {}, .reply_bytes = 0};
  task_call call(own, claimed, worker_.line_, memory(), worker_.functions_, worker_.cache_, worker_.made_in_);
  return run(call);
}

task_reply nested_end::run_taken_back(std::size_t index, bool in_block) {
  const auto token = cell(index).token;
  const auto arguments = cell(index).arguments;
  auto reply = run_unposted(token, arguments, in_block);
  if (in_block) reclaim(arguments);
  return reply;
}

void nested_end::drop_taken_back(std::size_t index, bool in_block) {
  if (in_block) reclaim(cell(index).arguments);
}

void nested_end::reclaim(const argument_line& arguments) {
  block_ref ref;
  std::memcpy(&ref, arguments.data(), sizeof ref);
  memory().reclaim(ref);
}

// Whoever finds this worker dead finds `current` naming the task around the call: this one had begun too, and nobody is
// left who would want its reply.
std::optional<nested_end::posted_task> nested_end::try_claim(std::size_t index) {
  auto& request = cell(index);
  const auto place = request.token;
  const auto slot = static_cast<std::size_t>(place & 0xffffU);
  if (slot >= worker_.board_.sizes().task_slots) return std::nullopt;
  auto& word = worker_.board_.slot(slot).word;
  const auto generation = static_cast<std::uint32_t>(place >> 16U);
  if (slot_protocol::read(word).state() == slot_state::queued) require_depth();
  const auto won = slot_protocol::try_claim(word, generation, static_cast<unsigned>(worker_.options_.index) + 1);
  if (!won) return std::nullopt;
  // The parent is to free the cell when it sees the end; the reply stays here.
  cell_protocol::request(request.word, cell_flag::abandoned);
  return posted_task{.slot = slot, .word = *won};
}

task_reply nested_end::run_claimed(const posted_task& task) {
  task_call call(worker_.board_.slot(task.slot), task.word, worker_.line_, memory(), worker_.functions_, worker_.cache_,
                 worker_.made_in_);
  const bool notes = worker_.notes_times();
  if (notes) worker_.note_begin(task.slot, worker_end::now());
  auto reply = run(call);
  if (notes) static_cast<void>(worker_.note_end(task.slot));
  complete(task, call);
  return reply;
}

void nested_end::drop_claimed(const posted_task& task) {
  task_call call(worker_.board_.slot(task.slot), task.word, worker_.line_, memory(), worker_.functions_, worker_.cache_,
                 worker_.made_in_);
  static_cast<void>(call.make_reply(0));
  complete(task, call);
}

void nested_end::complete(const posted_task& task, task_call& call) {
  const auto asked = slot_protocol::complete(worker_.board_.slot(task.slot).word, task.word, call.finish());
  worker_.announce({.slot = task.slot, .word = task.word}, asked);
}

void nested_end::ask_to_stop(std::size_t index) noexcept {
  const auto place = cell(index).token;
  const auto slot = static_cast<std::size_t>(place & 0xffffU);
  if (slot >= worker_.board_.sizes().task_slots) return;
  auto& word = worker_.board_.slot(slot).word;
  auto found = slot_protocol::read(word);
  // By compare-and-swap: the slot may get another task at any time.
  while (found.state() == slot_state::claimed && found.short_generation() == static_cast<std::uint32_t>(place >> 16U)) {
    auto expected = found.bits();
    const auto asked = expected | slot_word::flag_bits(slot_flag::stop);
    if (word.compare_exchange_weak(expected, asked, std::memory_order_acq_rel, std::memory_order_acquire)) return;
    found = slot_word(expected);
  }
}

// ---- waiting, and the end

// Returns when one of the words has changed, or for no reason.
void nested_end::spin_or_sleep(std::span<const seen_cell> seen, deadline until) {
  auto& board = worker_.board_;
  const auto waiting = [](const seen_cell& each) { return each.word.bits() | cell_word::flag_bits(cell_flag::waiter); };
  const auto has_changed = [&] {
    return std::any_of(seen.begin(), seen.end(), [&](const seen_cell& each) {
      const auto now = cell(each.cell).word.load(std::memory_order_acquire);
      return (now | cell_word::flag_bits(cell_flag::waiter)) != waiting(each);
    });
  };
  const bool spare = board.spinning().count() + 1 < worker_.spin_.processors;  // the parent needs a processor too
  const auto budget = spare ? worker_.spin_.budget : std::chrono::nanoseconds(0);
  const auto place_of = [&](std::size_t each) -> const place_word& { return board.line(each).place; };
  const auto workers = std::min(board.active(), board.sizes().workers);  // any worker may write what is active
  const auto ask = [&] {
    tell_place(worker_.line_.place);
    return outlook::of_others(board.sleeping(), workers, worker_.options_.index, place_of);
  };
  if (look_until(until.left(budget), has_changed, ask)) return;
  std::array<futex_expectation, requests_per_worker> words;
  std::size_t count = 0;
  for (const auto& each : seen) {
    auto& word = cell(each.cell).word;
    cell_protocol::request(word, cell_flag::waiter);
    words.at(count++) = {.word = futex_address(word), .expected = static_cast<std::uint32_t>(waiting(each))};
  }
  if (has_changed()) return;
  if (count == 1) {
    futex_wait(words[0].word, words[0].expected, futex_scope::shared, until);
  } else {
    futex_wait_any(std::span(words).first(count), futex_scope::shared, until);
  }
}

void nested_end::abandon(std::size_t index, std::uint64_t generation) noexcept {
  if (closed_.load(std::memory_order_acquire)) return;
  auto& word = cell(index).word;
  const auto found = cell_protocol::change(word, [&](const cell_word& now) -> std::optional<cell_word> {
    if (now.generation() != generation || now.state() == cell_state::free) return std::nullopt;
    if (now.state() == cell_state::answered) return cell_word(generation, cell_flag::none, cell_state::free);
    return cell_word(generation, now.flags() | cell_flag::abandoned, now.state());
  });
  const bool keeps_block = found && found->state() == cell_state::answered && found->has(cell_flag::block_reply);
  if (keeps_block && this_threads_end == this) enter_into_ring(index, generation);
}

void nested_end::release(std::size_t index) noexcept {
  auto& word = cell(index).word;
  const auto found = cell_protocol::read(word);
  cell_protocol::retire(word, found.generation());
  if (found.has(cell_flag::block_reply)) enter_into_ring(index, found.generation());  // the parent may free the block
}

}  // namespace muster
