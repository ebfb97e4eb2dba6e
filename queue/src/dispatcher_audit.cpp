// SPDX-License-Identifier: BSL-1.0
// What the dispatcher does about shared words that somebody has overwritten. Why it is right: docs/design/integrity.md.
#include <algorithm>
#include <cstring>

#include <muster/base/text.hpp>
#include <muster/queue/dispatcher.hpp>
#include <muster/queue/slot_protocol.hpp>

#include "current_task.hpp"
#include "nested_request.hpp"

namespace muster {

namespace {

// So much can be an accident. After that the words that nobody has looked at are not to be trusted either.
constexpr unsigned most_damages = 4;

bool is_same_claim(const slot_word& a, const slot_word& b) noexcept {
  return a.generation() == b.generation() && a.owner() == b.owner() && a.state() == b.state();
}

}  // namespace

// ---- one task

bool dispatcher::is_possible(const slot_word& found, const task_record& record) const {
  if (found.generation() != generation_of(record)) return false;
  switch (found.state()) {
    case slot_state::queued: return found.owner() == 0;
    case slot_state::claimed:
    case slot_state::done: return found.owner() >= 1 && found.owner() <= worker_pids_.size();
    case slot_state::free: break;
  }
  return false;
}

// The slot is not used again before the board is renewed: some worker may be at the task, and write there.
task_reply dispatcher::lose(task_record& record, std::string_view reason) noexcept {
  slot_protocol::seize(board_.slot(record.where().slot).word, generation_of(record));
  vacate(record);
  ++lost_slots_;
  ++counters_.corrupted;
  note_damage();
  return failed(errc::corrupted, reason);
}

task_reply dispatcher::lose_to(task_record& record, const slot_word& found) noexcept {
  const auto expected = generation_of(record);
  const auto why = error_info::described(errc::corrupted, [&] {
    return text("the slot's word was ", found.bits(), " where generation ", expected,
                " was expected: a process has overwritten it");
  });
  return lose(record, why.message());
}

void dispatcher::fail_corrupted(task_record& record, const slot_word& found, finished_list& finished) {
  settle(record, lose_to(record, found), finished);
}

dispatcher::argument_line dispatcher::arguments_of(const task_record& record) {
  auto line = board_.slot(record.where().slot).arguments;
  if (record.reply_.kept()) {
    const auto ref = record.reply_.kept().ref();
    std::memcpy(line.data(), &ref, sizeof ref);
  }
  return line;
}

// ---- counting

void dispatcher::note_damage() {
  ++damages_;
  ++counters_.damaged;
}

void dispatcher::report_damage() {
  const scoped_lock lock(mutex_);
  note_damage();
}

// Under the lock: the number of workers is in the header, and may be changed.
bool dispatcher::restore_header() {
  const scoped_lock lock(mutex_);
  const bool was_wrong = board_.restore_header();
  if (was_wrong) note_damage();
  return was_wrong;
}

void dispatcher::suspect(std::size_t worker) {
  if (suspects_[worker]) return;
  suspects_[worker] = true;
  note_damage();
}

// At most so many entries can have been made by that worker: completions; requests, each of which became a task, waits
// in its cell, or was run by the worker itself, of which only its cells' generations tell; and what says that a
// request's reply was read. Requires: the ring's tail was read before.
std::uint64_t dispatcher::attempts(std::size_t worker) const {
  std::uint64_t requests = 0;
  for (std::size_t cell = 0; cell < requests_per_worker; ++cell) {
    requests += cell_protocol::read(board_.request(worker, cell).word).generation();
  }
  return 3 * (counters_.accepted + counters_.retried + counters_.requeued) + 2 * requests + requests_per_worker;
}

// ---- the audit

audit_report dispatcher::audit() {
  audit_report report;
  finished_list finished;
  bool wake = false;
  {
    const scoped_lock lock(mutex_);
    for (std::size_t worker = 0; worker < board_.used(); ++worker) {
      if (!absent_[worker]) audit_line(worker, finished);
      if (suspects_[worker]) report.suspects.push_back(worker);
    }
    const bool queued = audit_slots(finished);
    if (queued) audit_lanes();
    feed();  // a damaged lane may have looked full
    wake = take_fed() > 0 || queued;
    audited_up_to_ = counters_.accepted;
    report.repeated = damages_ >= most_damages || 2 * lost_slots_ >= in_slot_.size();
    report.more = pending_ > 0;
    if (!report.more) attention_ = true;
    watched_ = report.more;
  }
  finished.finish();
  if (wake) {
    auto spinning = board_.spinning();
    for (std::size_t worker = 0; worker < 64 && spinning.check_any(); ++worker) spinning.remove(worker);
    board_.wake_all();
  }
  if (report.more) arm_bell();
  return report;
}

// What only one worker writes.
void dispatcher::audit_line(std::size_t worker, finished_list& finished) {
  const auto& line = board_.line(worker);
  const auto completed = line.finished.load(std::memory_order_relaxed);
  if (completed < finished_seen_[worker] || line.leaving.load(std::memory_order_relaxed) > 1) suspect(worker);
  finished_seen_[worker] = completed;
  const auto current = line.current.load(std::memory_order_acquire);
  if (current == 0) return;
  const auto slot = static_cast<std::size_t>(current >> 32U & 0xffffU);
  if (slot >= in_slot_.size() || current != current_task(slot, static_cast<std::uint32_t>(current))) {
    suspect(worker);
    return;
  }
  auto* const record = in_slot_[slot];
  if (record == nullptr || record->where().generation != static_cast<std::uint32_t>(current))
    return;  // it was its last
  // The word was changed before the line was: it says that this worker has the task, or that it is done.
  const auto found = slot_protocol::read(board_.slot(slot).word);
  if (found.owner() != worker + 1) fail_corrupted(*record, found, finished);
}

// True when a task that was there at the audit before waits for a worker.
bool dispatcher::audit_slots(finished_list& finished) {
  bool queued = false;
  for (auto*& record : in_slot_) {
    if (record != nullptr && record->id_ <= audited_up_to_) queued |= audit_slot(*record, finished);
  }
  return queued;
}

// True when the task waits for a worker. One that is done is settled: whoever should have been told may not have been.
bool dispatcher::audit_slot(task_record& record, finished_list& finished) {
  const auto found = slot_protocol::read(board_.slot(record.where().slot).word);
  const bool claimed = found.state() == slot_state::claimed;
  if (!is_possible(found, record) || (claimed && is_elsewhere(record, found))) {
    fail_corrupted(record, found, finished);
    return false;
  }
  if (found.state() == slot_state::done) settle_done(record, finished);
  return found.state() == slot_state::queued;
}

// Whether the worker that the word names cannot be at the task: it is at another, it sleeps, or there is none. What it
// wrote before the claim is seen after it, so each of these is impossible unless the word has changed meanwhile.
bool dispatcher::is_elsewhere(const task_record& record, const slot_word& claimed) {
  const auto slot = record.where().slot;
  const auto worker = claimed.owner() - 1;
  const auto& line = board_.line(worker);
  const auto current = line.current.load(std::memory_order_acquire);
  const bool sleeps = line.parked.load(std::memory_order_acquire) == 1;
  const bool is_named = current == current_task(slot, claimed.short_generation());
  const bool at_another = current != 0 && !is_named && !was_called_by(record, worker);
  if (!absent_[worker] && !at_another && (current != 0 || !sleeps)) return false;
  return is_same_claim(slot_protocol::read(board_.slot(slot).word), claimed);
}

// ---- hints

void dispatcher::audit_lanes() {
  std::vector<bool> hinted(in_slot_.size());
  std::vector<bool> damaged(board::shared_lanes + board_.used());
  for (std::size_t index = 0; index < damaged.size(); ++index) damaged[index] = !mark_hints(index, hinted);
  // The words are read after the heads: where the head has passed a hint, a worker had found the task claimed before.
  const auto& queued = queued_records();
  for (const auto* record : queued) {
    if (!hinted[record->where().slot]) damaged[record->lane_] = true;
  }
  for (std::size_t index = 0; index < damaged.size(); ++index) {
    if (!damaged[index]) continue;
    note_damage();
    rebuild_lane(index, queued);
  }
}

// False when the lane is not as it was left.
bool dispatcher::mark_hints(std::size_t index, std::vector<bool>& hinted) {
  const auto& lane = board_.lane_at(index);
  const auto tail = lane_tails_[index];
  const auto head = lane.head();
  if (tail - head > lane.capacity()) return false;  // also when it is past the tail
  for (auto ticket = head; ticket != tail; ++ticket) {
    const auto entry = lane.peek(ticket);
    if (!entry.some) return false;
    const auto* const record = entry.hint.slot < in_slot_.size() ? in_slot_[entry.hint.slot] : nullptr;
    if (record == nullptr || record->lane_ != index) continue;
    if (record->where().generation == entry.hint.generation) hinted[entry.hint.slot] = true;
  }
  return true;
}

// In the order in which they were accepted.
const std::vector<task_record*>& dispatcher::queued_records() {
  auto& queued = queued_;
  queued.clear();  // its memory was reserved with the board's: a fresh board needs none
  for (auto* const record : in_slot_) {
    if (record == nullptr) continue;
    const auto found = slot_protocol::read(board_.slot(record->where().slot).word);
    if (is_possible(found, *record) && found.state() == slot_state::queued) queued.push_back(record);
  }
  std::sort(queued.begin(), queued.end(), [](const auto* a, const auto* b) { return a->id_ < b->id_; });
  return queued;
}

void dispatcher::rebuild_lane(std::size_t index, const std::vector<task_record*>& queued) {
  auto& lane = board_.lane_at(index);
  lane.reset(lane_tails_[index]);
  lane_heads_[index] = lane_tails_[index];
  for (const auto* record : queued) {
    if (record->lane_ != index) continue;
    const auto where = record->where();
    lane.put(lane_tails_[index]++, {.generation = where.generation, .slot = where.slot});
  }
}

// ---- a fresh board

void dispatcher::renew() {
  finished_list finished;
  {
    const scoped_lock lock(mutex_);
    const auto& queued = queued_records();
    std::for_each(queued.rbegin(), queued.rend(), [this](task_record* record) MUSTER_REQUIRES(mutex_) {
      take_back(*record);
      enter_backlog(*record, true);
    });
    for (auto*& record : in_slot_) {  // recovery has dealt with everything that can be explained
      if (record == nullptr) continue;
      fail_corrupted(*record, slot_protocol::read(board_.slot(record->where().slot).word), finished);
    }
    board_.renew();
    ask_for_times();
    free_slots_.clear();
    for (auto slot = in_slot_.size(); slot > 0; --slot) free_slots_.push_back(static_cast<std::uint16_t>(slot - 1));
    std::fill(lane_tails_.begin(), lane_tails_.end(), 0);
    std::fill(lane_heads_.begin(), lane_heads_.end(), 0);
    for (auto& head : ring_heads_) head.store(0, std::memory_order_relaxed);
    for (auto& requests : requests_) {  // those of the dead were forgotten; the cells are new
      for (std::size_t cell = 0; requests != nullptr && cell < requests->size(); ++cell)
        (*requests)[cell].generation = 0;
    }
    lost_slots_ = 0;
    damages_ = 0;
    feed();
    fed_ = 0;  // those to come will look
  }
  finished.finish();
  arm_bell();
}

}  // namespace muster
