// SPDX-License-Identifier: BSL-1.0
#include "device_member.hpp"

#include <algorithm>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/memory/detail/wait/look.hpp>

#include "broken_word.hpp"

namespace muster::detail {

namespace {

// How often a device is asked: at first without a pause, as the driver does it, and later with pauses that are a small
// part of what has gone by, so that nothing is held up for longer than that.
constexpr std::chrono::nanoseconds eager_time = std::chrono::milliseconds(1);
constexpr std::chrono::nanoseconds shortest_pause = std::chrono::microseconds(50);
constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(1);
constexpr int pauses_of_a_wait = 16;

std::chrono::nanoseconds pause_after(std::chrono::nanoseconds gone_by) {
  return std::clamp<std::chrono::nanoseconds>(gone_by / pauses_of_a_wait, shortest_pause, longest_pause);
}

// The first byte of a note: an offer comes, or a text that says why there is none.
constexpr std::byte offered{1};
constexpr std::byte declined{0};

std::vector<std::byte> note_of(std::byte kind, std::span<const std::byte> what) {
  what = what.first(std::min(what.size(), device_transport::most_offered));
  std::vector<std::byte> note(1 + what.size());
  note.front() = kind;
  std::ranges::copy(what, note.begin() + 1);
  return note;
}

}  // namespace

// ---- what this rank would do

bool device_member::offers(std::initializer_list<const tensor*> tensors) {
  std::optional<device> where;
  for (const auto* each : tensors) {
    if (each == nullptr) continue;
    if (each->device().is_cpu() || (where && *where != each->device())) return false;
    where = each->device();
  }
  if (!where || is_refused_ || (channel_ != nullptr && *where != where_)) return false;
  transport_ = transport_of(where->type());
  where_ = *where;
  return transport_ != nullptr;
}

device_way device_member::way() const {
  const scoped_lock lock(guard_);
  if (way_) return *way_;
  if (transport_of(device::kind::cuda) == nullptr) {
    return {.how = "by way of the host: this program is not linked with muster::nccl"};
  }
  return {.how = "by way of the host, until all ranks have made a collective over tensors on devices together"};
}

void device_member::set_way(const device_way& what) {
  const scoped_lock lock(guard_);
  way_ = what;
}

void device_member::refuse(const std::string& why) {
  drop();
  is_refused_ = true;
  set_way({.how = text("by way of the host: ", why)});
}

// ---- joining

std::vector<std::byte> device_member::own_note() {
  try {
    return note_of(offered, transport_->offer(where_, end_.rank()));
  } catch (const std::exception& failure) {
    const std::string why = failure.what();
    return note_of(declined, std::as_bytes(std::span(why)));
  }
}

std::optional<std::string> device_member::problem_in(const std::vector<std::vector<std::byte>>& notes) const {
  for (std::size_t rank = 0; rank < notes.size(); ++rank) {
    const auto& note = notes[rank];
    if (!note.empty() && note.front() == offered) continue;
    const std::string why(reinterpret_cast<const char*>(note.data()) + 1, note.empty() ? 0 : note.size() - 1);
    return text(describe({end_.member(rank)}), ": ", why);
  }
  return std::nullopt;
}

bool device_member::join(const char* operation, const call_options& how) {
  if (channel_ != nullptr) return true;
  auto notes = end_.exchange_notes(operation, how, own_note());
  if (const auto why = problem_in(notes)) return refuse(*why), false;
  for (auto& each : notes) each.erase(each.begin());
  return join_with(notes, operation, how);
}

bool device_member::join_with(std::span<const std::vector<std::byte>> offers, const char* operation,
                              const call_options& how) {
  std::optional<std::string> failure;
  try {
    channel_ = transport_->join(offers, where_, end_.rank());
    await(operation, how);
  } catch (const group_error&) {
    throw;
  } catch (const another_failed&) {  // NOLINT(bugprone-empty-catch): whoever did says why
  } catch (const std::exception& found) {
    failure = found.what();
  }
  end_.confirm(operation, how, failure ? &*failure : nullptr);
  std::optional<std::string> why;
  if (const auto failed = end_.failed_ranks(true); !failed.empty()) {
    why = text(describe({end_.member(failed.front())}), ": ", end_.report_of(failed.front()));
  }
  end_.confirm_again(operation, how);
  if (why) return refuse(*why), false;
  set_way({.is_direct = true, .how = text("directly, by ", transport_->name(), " on ", where_)});
  return true;
}

// ---- doing

void device_member::carry_out(const char* operation, const call_options& how, std::span<const device_step> steps,
                              std::vector<tensor> kept) {
  if (steps.empty()) return;
  channel_->launch(steps, std::move(kept));
  await(operation, how);
}

// What goes wrong with a library's work on a device rings no bell, so it is asked again and again; what other ranks do
// rings.
void device_member::await(const char* operation, const call_options& how) {
  waiting_for what{.operation = operation, .sequence = end_.sequence(), .timeout = how.timeout, .until_done = true};
  const auto& shape = end_.memory().shape();
  const auto began = clock::now();
  const auto until = deadline::after(how.timeout.value_or(shape.timeout));
  bool is_over = false;
  const auto look = [&] {
    if (channel_->is_done()) return true;
    is_over = end_.has_failed_next();
    return is_over;
  };
  if (!shape.is_crowded) look_until(until.left(eager_time), look, [&] { return end_.ask(rank_line::anybody); });
  for (;;) {
    const auto next = deadline::after(pause_after(clock::now() - began));
    if (end_.wait_until(what, next.when() < until.when() ? next : until, look)) {
      if (is_over) throw another_failed();
      return;
    }
    if (!until.expired()) continue;
    what.timeout = std::chrono::nanoseconds(0);
    end_.wait(what, [] { return false; });  // throws
  }
}

// ---- leaving

void device_member::drop() noexcept {
  if (channel_ == nullptr) return;
  channel_->abort();
  channel_.reset();
  const scoped_lock lock(guard_);
  way_.reset();
}

// A broken group has members whose devices may never answer.
void device_member::close() noexcept {
  if (channel_ == nullptr) return;
  if (end_.is_broken()) return drop();
  channel_->close();
  channel_.reset();
}

}  // namespace muster::detail
