// SPDX-License-Identifier: BSL-1.0
// Tasks that wait for a slot: those for anybody in a queue for each priority, those for one worker in a queue of that
// worker's.
#include <muster/queue/dispatcher.hpp>

#include <algorithm>
#include <utility>

namespace muster {

namespace {

// How many slots the tasks of one worker only may have: half of them for all workers together.
std::size_t share_of_slots(std::size_t slots, std::size_t workers) {
  return std::max<std::size_t>(1, slots / (2 * workers));
}

}  // namespace

// Whether a new task for that lane need not wait behind others.
bool dispatcher::may_place_in(std::size_t lane) const {
  if (lane < board::shared_lanes) {
    if (!has_slot_for(lane)) return false;
    return waiting_ == 0 || std::all_of(backlog_.begin(), backlog_.begin() + static_cast<std::ptrdiff_t>(lane) + 1,
                                        [](const auto& each) { return each.empty(); });
  }
  const auto& own = private_[lane - board::shared_lanes];
  return own.waiting.empty() && own.posted < share_of_slots(in_slot_.size(), board_.active());
}

// Until there is a slot for it, which may be at once.
void dispatcher::enter_waiting(task_record& record, bool first, finished_list& finished) {
  const bool noticed = ends_must_be_noticed();
  enter_backlog(record, first);
  feed();
  if (!noticed && ends_must_be_noticed())
    request_all_notifications(finished);  // workers must say when a slot gets free
}

void dispatcher::enter_backlog(task_record& record, bool first) {
  const bool shared = record.lane_ < board::shared_lanes;
  if (!shared) list_private(record.lane_ - board::shared_lanes);
  auto& where = shared ? backlog_[record.lane_] : private_[record.lane_ - board::shared_lanes].waiting;
  where.insert(first ? where.begin() : where.end(), record);
  ++(shared ? waiting_ : private_waiting_);
  if (record.has_terms_) watch_waiting(record);
  if (record.timed_) timing_.of(record.timing_).is_new = false;
}

void dispatcher::leave_backlog(task_record& record) {
  if (record.has_terms_ && std::exchange(terms_.of(record).delayed, false)) return;  // it is in none
  const bool shared = record.lane_ < board::shared_lanes;
  auto& where = shared ? backlog_[record.lane_] : private_[record.lane_ - board::shared_lanes].waiting;
  where.erase(where.iterator_to(record));
  --(shared ? waiting_ : private_waiting_);
}

// Gives free slots to waiting tasks; the caller wakes workers for them once it has unlocked. Those of one worker come
// first: they can take half of the slots only.
void dispatcher::feed() {
  if (private_waiting_ > 0) feed_private_lanes();
  while (auto* const from = next_backlog()) {
    auto& next = from->front();
    if (!try_place(next, next.kept_arguments())) return;
    wake_waiter(next);
    from->pop_front();
    --waiting_;
    ++fed_;
  }
}

// Of the most urgent that wait; every so often of the least urgent instead, so that they never starve. nullptr: none
// can go on.
dispatcher::waiting_list* dispatcher::next_backlog() {
  if (waiting_ == 0) return nullptr;
  constexpr unsigned aging = 16;
  const auto waits = [](const auto& each) { return !each.empty(); };
  auto& first = *std::find_if(backlog_.begin(), backlog_.end(), waits);
  auto& last = *std::find_if(backlog_.rbegin(), backlog_.rend(), waits);
  if (!has_slot_for(static_cast<std::size_t>(&first - backlog_.data()))) return nullptr;
  return &first != &last && ++feeds_ % aging == 0 ? &last : &first;
}

// Some slots are kept for what is more urgent, which so overtakes any number of others. (On a small board there are
// none to spare.)
bool dispatcher::has_slot_for(std::size_t lane) const {
  constexpr std::size_t share = 32;
  const auto urgency = lane < board::shared_lanes ? lane : std::size_t{1};
  return free_slots_.size() > urgency * (in_slot_.size() / share);
}

void dispatcher::list_private(std::size_t worker) {
  if (!std::exchange(private_[worker].listed, true)) private_listed_.push_back(worker);
}

// The worker with the task that has waited longest comes first.
void dispatcher::feed_private_lanes() {
  for (const auto worker : private_listed_) feed_private_lane(worker);
  std::erase_if(private_listed_, [this](std::size_t worker) MUSTER_REQUIRES(mutex_) {
    private_[worker].listed = !private_[worker].waiting.empty();
    return !private_[worker].listed;
  });
}

// Nobody else can run them, so their worker is woken here.
void dispatcher::feed_private_lane(std::size_t worker) {
  auto& waiting = private_[worker].waiting;
  const auto& posted = private_[worker].posted;  // grows with each that is placed
  const auto share = share_of_slots(in_slot_.size(), board_.active());
  bool fed = false;
  while (!waiting.empty() && posted < share && try_place(waiting.front(), waiting.front().kept_arguments())) {
    wake_waiter(waiting.front());
    waiting.pop_front();
    --private_waiting_;
    fed = true;
  }
  if (fed) board_.wake(worker);
}

// ---- another number of workers

void dispatcher::set_active(std::size_t workers) {
  const scoped_lock lock(mutex_);
  make_requests(workers);
  board_.set_active(workers);
  ask_for_times();
}

void dispatcher::note_private(std::size_t worker) {
  ++private_[worker].posted;
  if (worker >= board_.active() && options_.call_back) options_.call_back(worker);
}

bool dispatcher::needs_worker(std::size_t worker) const {
  const scoped_lock lock(mutex_);
  return private_[worker].posted > 0 || !private_[worker].waiting.empty();
}

}  // namespace muster
