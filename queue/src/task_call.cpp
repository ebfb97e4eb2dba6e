// SPDX-License-Identifier: BSL-1.0
#include <muster/queue/detail/task_call.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <muster/base/clock.hpp>
#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/queue/board.hpp>
#include <muster/queue/detail/worker_cache.hpp>
#include <muster/queue/reply_block.hpp>
#include <muster/queue/reply_seal.hpp>
#include <muster/queue/stop_watch.hpp>
#include <muster/queue/task_reply.hpp>
#include <muster/serialize/archive.hpp>

#include "current_call.hpp"

namespace muster {

namespace {

thread_local task_call* running_call = nullptr;  // what this_task:: talks about

// An error of ours keeps its code; anything else that a serialize function throws means that it could not.
error_info describe_transport_error(const char* what) {
  try {
    throw;
  } catch (const error& failure) {
    const bool ours = failure.code().category() == error_category();
    return {ours ? static_cast<errc>(failure.code().value()) : errc::not_serializable,
            std::string(what) + failure.what()};
  } catch (const std::exception& failure) {
    return {errc::not_serializable, std::string(what) + text_or_none(failure.what())};
  } catch (...) {
    return {errc::not_serializable, std::string(what) + "a serialize function threw"};
  }
}

}  // namespace

current_call::current_call(task_call& call) noexcept { running_call = &call; }
current_call::~current_call() { running_call = nullptr; }

inner_call::inner_call(task_call& call) noexcept : outer_(std::exchange(running_call, &call)) {}
inner_call::~inner_call() { running_call = outer_; }

task_call* task_call::current() noexcept { return running_call; }

task_call::task_call(task_slot& slot, const slot_word& claimed, worker_line& line, arena& memory,
                     token_decoder& functions, worker_cache& cache, const process_mark& made_in) noexcept
    : slot_(slot),
      claimed_(claimed),
      line_(line),
      memory_(memory),
      functions_(functions),
      cache_(cache),
      made_in_(made_in),
      attempt_(claimed.has(slot_flag::again) ? static_cast<std::uint32_t>(slot.reply_bytes) : 1) {}

task_call::~task_call() {
  if (carried_ != nullptr) give_back_carried();
}

void task_call::fail_with_current_exception() noexcept { fail(describe_current_exception()); }

task_call::element_marker::element_marker(task_call& call) noexcept
    : call_(call), mark_(call.line_.element), timed_(call.claimed_.has(slot_flag::timed)) {}

bool task_call::stop_requested() const noexcept {
  return slot_word(slot_.word.load(std::memory_order_relaxed)).has(slot_flag::stop);
}

stop_watch& task_call::watch_stop() {
  if (stop_watch_ == nullptr) stop_watch_ = std::make_unique<stop_watch>(slot_, claimed_);
  return *stop_watch_;
}

unsigned task_call::attempt() const noexcept {
  const bool later = first_element_ && *first_element_ != unseal_number(line_.element.load(std::memory_order_relaxed));
  return later ? 1 : attempt_;
}

bool task_call::keep_borrowed() noexcept {
  stop_watch_.reset();
  return carried_ == nullptr || keep_all_borrowed();
}

bool task_call::owns_slot() const noexcept {
  constexpr auto flags = slot_word::flag_bits(slot_flag{0xff});
  return ((slot_.word.load(std::memory_order_relaxed) ^ claimed_.bits()) & ~flags) == 0;
}

carried_blocks& task_call::blocks() {
  if (carried_ == nullptr) carried_ = cache_.take_carried();
  return *carried_;
}

std::size_t task_call::sent_count() const noexcept { return carried_ != nullptr ? carried_->sent.size() : 0; }

void task_call::note_start() noexcept {
  if (slot_word(slot_.word.load(std::memory_order_relaxed)).has(slot_flag::doomed)) await_death();
  line_.started.store(static_cast<std::uint64_t>(clock::now().time_since_epoch().count()), std::memory_order_relaxed);
}

void task_call::await_death() noexcept {
  for (;;) ::pause();
}

std::span<const std::byte> task_call::arguments() const {
  if (!claimed_.has(slot_flag::block_arguments)) return slot_.arguments;
  block_ref ref;
  std::memcpy(&ref, slot_.arguments.data(), sizeof ref);
  return memory_.view(ref);
}

// It has returned from the task, which is its parent's. It has nothing of the memory that a reply would be written to
// (mapping::inherit::no), so at this place it can still be told why.
void task_call::end_child() noexcept {
  std::fprintf(
      stderr,
      "muster: process %d, forked by a task in process %d, has returned from the task: it ends. A child that a "
      "task forks executes a program, or ends by itself (_exit)\n",
      ::getpid(), ::getppid());
  ::_exit(EXIT_FAILURE);
}

std::span<std::byte> task_call::make_reply(std::size_t bytes, std::size_t attachments) {
  end_forked_child();
  payload_.reset();
  if (carried_ != nullptr) drop_sent();
  if (attachments > 0) return make_reply_with(bytes, attachments);
  if (bytes <= small_reply_bytes) {
    reply_ = slot_flag::small_reply;
    if (!owns_slot()) return std::span(nowhere_).first(bytes);
    return std::as_writable_bytes(std::span(&slot_.token, 1)).first(bytes);
  }
  if (bytes <= inline_reply_bytes) {
    reply_ = slot_flag::line_reply;
    return line_room(bytes);
  }
  payload_ = memory_.allocate(bytes, 1);
  reply_ = slot_flag::block_reply;
  return payload_.bytes();
}

std::span<std::byte> task_call::make_reply_with(std::size_t bytes, std::size_t attachments) {
  if (attachments > reply_block::most_attachments) {
    throw error(errc::not_serializable, text("a result has ", attachments, " shared blocks; at most ",
                                             reply_block::most_attachments, " go with it: send copies"));
  }
  const reply_block what{.frame_bytes = bytes, .attachments = attachments};
  payload_ = memory_.allocate(what.total_bytes(), 0);
  reply_ = slot_flag::block_reply;
  blocks().names = payload_.data() + what.names_offset();
  frame_bytes_ = bytes;
  return payload_.bytes().first(bytes);
}

std::uint64_t task_call::sender::attach(const shared_block& what) {
  auto& blocks = call_.blocks();
  const auto name = call_.memory_.send(what);
  const auto index = blocks.sent.size();
  blocks.sent.push_back(name);
  std::memcpy(blocks.names + index * sizeof name, &name, sizeof name);
  return index;
}

shared_block task_call::borrower::take(std::uint64_t name) {
  auto& borrowed = call_.blocks().add_borrowed();
  call_.memory_.borrow_into(borrowed, name);
  return borrowed;
}

void task_call::give_back_carried() noexcept {
  drop_sent();
  cache_.give_back(std::move(carried_));
}

void task_call::drop_sent() noexcept {
  for (const auto name : carried_->sent) {
    try {
      memory_.receive(name).reset();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is gone already
    }
  }
  carried_->sent.clear();
}

bool task_call::keep_all_borrowed() noexcept {
  try {
    for (std::size_t index = 0; index < carried_->borrowed_count; ++index) {
      auto& each = carried_->borrowed[index];
      if (!each || each.is_unique()) continue;
      memory_.keep(each);
      each.reset();
    }
    carried_->forget_borrowed();
    return true;
  } catch (const std::exception&) {
    fail_with_current_exception();
    return false;
  }
}

std::span<std::byte, inline_reply_bytes> task_call::reply_line() noexcept {
  payload_.reset();
  reply_ = slot_flag::line_reply;
  return line_room(inline_reply_bytes).first<inline_reply_bytes>();
}

std::span<std::byte> task_call::line_room(std::size_t bytes) noexcept {
  end_forked_child();
  line_bytes_ = bytes;
  if (!owns_slot()) return std::span(nowhere_).first(bytes);
  slot_.reply_bytes = seal_of_line(claimed_.short_generation(), false, bytes);
  return std::span(slot_.reply).first(bytes);
}

void task_call::fail(const error_info& error) noexcept {
  const auto encode = [this](const error_info& what) {
    output_archive counter;
    counter(what);
    output_archive out(make_reply(counter.written()));
    out(what);
  };
  try {
    encode(error);
  } catch (const std::exception&) {
    encode(error_info(errc::out_of_memory, "no memory"));  // short enough for the line, which is always there
  }
  reply_ = reply_ | slot_flag::failed;
}

error_info task_call::describe_current_exception() const noexcept {
  switch (step_) {
    case step::decoding: return describe_transport_error("the arguments could not be decoded: ");
    case step::encoding: return describe_transport_error("the result could not be encoded: ");
    case step::running: break;
  }
  return capture_current_exception();
}

task_reply task_call::take_reply() {
  const auto read = [this]() -> task_reply {
    if (!owns_slot()) return task_reply(error_info(errc::corrupted, "somebody has overwritten the slot of this call"));
    const bool failed = (reply_ & slot_flag::failed) != slot_flag::none;
    if (payload_ && sent_count() > 0) return take_reply_with(failed);
    if (payload_) return {std::move(payload_), failed};
    const bool in_line = (reply_ & slot_flag::line_reply) != slot_flag::none;
    const auto line = std::as_bytes(std::span(slot_.reply)).first(std::min(line_bytes_, inline_reply_bytes));
    return {in_line ? line : std::as_bytes(std::span(&slot_.token, 1)), failed};
  };
  auto reply = read();
  static_cast<void>(make_reply(0));
  return reply;
}

task_reply task_call::take_reply_with(bool failed) {
  const reply_block what{.frame_bytes = frame_bytes_, .attachments = sent_count()};
  carried_->sent.clear();
  return {memory_, std::move(payload_), what, failed};
}

slot_flag task_call::finish() noexcept {
  const bool failed = (reply_ & slot_flag::failed) != slot_flag::none;
  if (payload_ && owns_slot()) {
    auto ref = payload_.lend();
    if (sent_count() > 0) {
      ref.size_bytes = reply_block{.frame_bytes = frame_bytes_, .attachments = sent_count()}.packed();
      carried_->sent.clear();  // they will arrive
    }
    std::memcpy(slot_.reply.data(), &ref, sizeof ref);
    slot_.reply_bytes = seal_of_block(claimed_.short_generation(), failed, ref);
  } else if (failed && owns_slot()) {  // errors do not fit into a small reply
    slot_.reply_bytes = seal_of_line(claimed_.short_generation(), failed, line_bytes_);
  }
  return reply_;
}

}  // namespace muster
