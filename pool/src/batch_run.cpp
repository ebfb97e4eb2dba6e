// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/batch_run.hpp>

#include <algorithm>
#include <climits>
#include <cstring>

#include <muster/base/detail/futex.hpp>
#include <muster/base/room.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

namespace {

// Enough that a worker never waits for the parent, few enough that chunk sizes can still adapt.
std::size_t chunks_in_flight(const chunk_policy::limits& chunking, std::size_t workers) {
  constexpr std::size_t per_worker_by_time = 3;
  constexpr std::size_t per_worker_given = 16;
  return workers * (chunking.given == 0 ? per_worker_by_time : per_worker_given);
}

batch_header header_of(const block& batch) {
  batch_header header;
  std::memcpy(&header, batch.data(), sizeof header);
  return header;
}

error_info read_error(const block& kept) {
  try {
    input_archive in(kept.bytes());
    error_info error;
    in(error);
    return error;
  } catch (const std::exception& failure) {
    return {errc::corrupted, text("the worker's error record cannot be read: ", failure.what())};
  }
}

chunk_reply read_line(const task_reply& reply) {
  chunk_reply line;
  if (reply.bytes().size() >= sizeof line) std::memcpy(&line, reply.bytes().data(), sizeof line);
  return line;
}

}  // namespace

map_job::map_job(arena& memory, std::size_t state_bytes, function_token code, bool fail_fast, bool workers_stop)
    : block_(memory.allocate(job_header::state_offset + state_bytes, 1)), code_(code), fail_fast_(fail_fast) {
  header().stop.store(0, std::memory_order_relaxed);
  header().fail_fast = workers_stop ? 1 : 0;
}

batch_run::batch_run(std::shared_ptr<pool_core> core, std::shared_ptr<map_job> job, packed_batch batch, settings how)
    : core_(std::move(core)),
      job_(std::move(job)),
      settings_(std::move(how)),
      header_(header_of(batch.memory)),
      count_(header_.count),
      attachments_(std::move(batch.attachments)),
      batch_(std::move(batch.memory)),
      policy_(settings_.chunking) {
  failures_.reserve(1);
  const auto elements_end = header_.results_offset != 0 ? header_.results_offset : batch_.size();
  core_->count_argument_bytes(elements_end - header_.elements_offset, batch.referenced_bytes);
}

batch_run::~batch_run() = default;

void batch_run::start(std::function<void()> when_done) {
  auto reserved = core_->tasks().reserve();
  const bool accepted = !settings_.needs_place || core_->tasks().take_place();
  ending end;
  {
    const scoped_lock lock(mutex_);
    has_place_ = settings_.needs_place && accepted;
    begin(accepted);
    reserved_ = std::move(reserved);
    when_done_ = std::move(when_done);
    self_ = shared_from_this();
    end = end_if_complete();
  }
  announce(end);
}

// Throws std::bad_alloc when nothing has begun; when something has, the run fails.
void batch_run::begin(bool accepted) {
  try {
    if (accepted) return post_more();
    fail_all({errc::overflow, "there are already as many pending calls as may be (max_pending): submit later"});
  } catch (const std::bad_alloc&) {
    if (!in_flight_.empty()) return fail_for_memory();
    free_place();
    throw;
  }
}

void batch_run::abandon() {
  job_->stop();
  std::shared_ptr<batch_run> self;  // both released after unlocking
  dispatcher::reservation reserved;
  const scoped_lock lock(mutex_);
  given_up_ = true;
  free_place();
  reserved = std::move(reserved_);
  when_done_ = nullptr;
  if (in_flight_.empty()) self = std::move(self_);
}

bool batch_run::cancel() {
  ending end;
  {
    const scoped_lock lock(mutex_);
    if (is_done()) return false;
    stop_running();
    fail_all({errc::cancelled, "the map was cancelled"});
    end = end_if_complete();
  }
  announce(end);
  return true;
}

void batch_run::fail_all(error_info why) {
  given_up_ = true;
  failures_.push_back({.first = 0, .count = count_, .error = std::move(why)});
}

// No element is begun any more; those that run are asked to stop.
void batch_run::stop_running() {
  job_->stop();
  for (const auto& each : in_flight_) {
    if (each->task != nullptr) core_->tasks().ask_to_stop(*each->task);
  }
}

void batch_run::free_place() {
  if (std::exchange(has_place_, false)) core_->tasks().free_place();
}

std::span<const std::byte> batch_run::result_array() const noexcept {
  return std::span<const std::byte>(batch_.bytes()).subspan(header_.results_offset);
}

// ---- posting

bool batch_run::next_range(range& next) {
  if (given_up_) return false;
  if (!again_.empty()) {
    next = again_.back();
    again_.pop_back();
    return true;
  }
  if (untouched_ == count_) return false;
  next = {.first = untouched_, .count = policy_.next(count_ - untouched_)};
  untouched_ += next.count;
  return true;
}

void batch_run::post_more() {
  const auto deadline = settings_.terms.deadline;
  if (deadline != clock::time_point::max() && core_->tasks().is_over(settings_.terms)) return expire();
  const auto workers = settings_.route.workers(core_->workers());  // their number may have changed
  policy_.set_workers(workers);
  const auto most = chunks_in_flight(settings_.chunking, workers) + delayed_chunks();
  while (in_flight_.size() < most) {
    make_room(again_);  // a range that is taken can be put back
    range next;
    if (!next_range(next)) return;
    try {
      post(next);
    } catch (const error& refused) {  // the pool was closed meanwhile, or there is no shared memory
      const auto* why = remote_info(refused);
      fail(next.first, next.count, why != nullptr ? *why : error_info(errc::pool_closed, refused.what()), next.attempt);
    } catch (const std::bad_alloc&) {
      again_.push_back(next);
      if (in_flight_.empty()) throw;
      return;  // the next chunk that ends tries again
    }
  }
}

void batch_run::post(const range& which) {
  const chunk_arguments arguments{
      .job = job_->ref().handle(), .batch = batch_.ref().handle(), .first = which.first, .count = which.count};
  in_flight_.push_back(std::make_unique<chunk>(*this, which));
  try {
    in_flight_.back()->task = &core_->tasks().post({.function = job_->code(),
                                                    .frame = outgoing_frame::of(core_->memory(), arguments),
                                                    .label = settings_.label,
                                                    .sink = in_flight_.back().get(),
                                                    .terms = settings_.terms.some() ? &settings_.terms : nullptr,
                                                    .attempt = which.attempt,
                                                    .lane = core_->lane_for(settings_.route, settings_.urgency),
                                                    .chunk = true,
                                                    .admitted = admission::reserved,
                                                    .elements = which.count});
  } catch (...) {
    in_flight_.pop_back();
    throw;
  }
}

// Those that wait to be tried again keep no worker busy.
std::size_t batch_run::delayed_chunks() const {
  if (settings_.terms.retry_delay.count() == 0) return 0;
  return static_cast<std::size_t>(
      std::count_if(in_flight_.begin(), in_flight_.end(), [](const auto& each) { return each->delayed(); }));
}

// Nothing is begun any more: what is not under way has failed.
void batch_run::expire() {
  if (given_up_) return;
  const auto too_late = [&](std::size_t first, std::size_t count, unsigned attempt) MUSTER_REQUIRES(mutex_) {
    if (count == 0) return;
    core_->count_timeouts(count);
    fail(first, count, error_info(errc::timed_out, "the deadline passed before a worker had begun it"), attempt);
  };
  for (const auto& each : std::exchange(again_, {})) too_late(each.first, each.count, each.attempt);
  const auto first = std::exchange(untouched_, count_);
  too_late(first, count_ - first, 1);
}

// ---- chunks that end

// Nothing may be thrown here, and the end must be told: for want of memory the whole run fails.
void batch_run::chunk_ended(chunk& which, task_record& record) noexcept {
  const auto self = shared_from_this();  // the last chunk gives up what kept this alive
  {
    const scoped_lock lock(mutex_);
    which.task = nullptr;
  }
  const auto element = record.element();
  const auto place = place_of(record);
  auto reply = core_->tasks().take(record);
  ending end;
  {
    const scoped_lock lock(mutex_);
    try {
      if (!is_done()) account(which.elements, reply, element, place);  // else what there is was published, and stays
      erase(which);
      post_more();
    } catch (const std::bad_alloc&) {
      erase(which);
      fail_for_memory();
    }
    end = end_if_complete();
    if (in_flight_.empty() && (given_up_ || is_complete())) self_ = nullptr;
  }
  announce(end);
}

task_place batch_run::place_of(const task_record& record) const noexcept {
  try {
    return core_->tasks().place_of(record);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void batch_run::erase(const chunk& which) {
  std::erase_if(in_flight_, [&](const auto& each) { return each.get() == &which; });
}

// All of it, since what it had may be known in part. There is always room for this one.
void batch_run::fail_for_memory() noexcept {
  if (is_done()) return;
  stop_running();
  fail_all(error_info::described(errc::out_of_memory,
                                 [] { return std::string("no memory is left for the map's results"); }));
}

void batch_run::account(const range& which, task_reply& reply, std::size_t element, const task_place& place) {
  if (reply.succeeded()) return account_reply(which, reply, place);
  auto error = reply.error();
  if (error.code() == errc::worker_died) return account_death(which, reply, element);
  if (error.code() == errc::timed_out) return account_timeout(which, reply, element, std::move(error));
  fail(which.first, which.count, std::move(error), which.attempt);  // the chunk as such could not be run
}

void batch_run::account_reply(const range& which, task_reply& reply, const task_place& place) {
  const auto line = read_line(reply);
  const chunk_arguments sent{
      .job = job_->ref().handle(), .batch = batch_.ref().handle(), .first = which.first, .count = which.count};
  if (line.seal != seal_of(sent, line)) {
    error_info why(errc::corrupted,
                   "a chunk's reply is not that of its elements: somebody has overwritten one of them");
    why.set_place(place);
    return fail(which.first, which.count, std::move(why), which.attempt);
  }
  const auto finished = std::min<std::uint64_t>(line.finished, which.count);
  account_finished(which, finished, reply);
  const auto time = std::chrono::nanoseconds(line.elapsed_nanoseconds);
  policy_.observe(finished, time);
  elapsed_ += time;
  if (line.error != 0 && finished < which.count) {
    auto error = read_error(reply.take_attached(error_attachment));
    error.set_place(place);
    const auto attempt = finished == 0 ? which.attempt : 1;
    if (may_try_again(attempt) && settings_.terms.retry_on.after(error)) {
      try_again(which, finished, finished == 0 ? which.deaths : 0);
    } else {
      account_failure(which, finished, std::move(error));
    }
  } else if (finished < which.count && !given_up_) {
    // It was told to stop by a chunk whose failure is still on its way to us, or was lost with its worker; or its
    // worker is to be replaced before it runs anything else.
    job_->resume();
    range rest{.first = which.first + finished, .count = which.count - finished};
    if (finished == 0) rest = which;
    again_.push_back(rest);
  }
}

// What the dead worker said may be anything.
std::size_t batch_run::finished_before(const range& which, std::size_t element) {
  const bool inside = element >= which.first && element < which.first + which.count;
  return inside ? element - which.first : 0;
}

void batch_run::account_death(const range& which, task_reply& reply, std::size_t element) {
  const auto finished = finished_before(which, element);
  account_finished(which, finished, reply);
  const auto deaths = (finished == 0 ? which.deaths : 0) + 1;
  const bool again = may_try_again(finished == 0 ? which.attempt : 1) && settings_.terms.retry_on.after_death();
  const bool poisonous = core_->quarantine_after() != 0 && deaths >= core_->quarantine_after();
  if (again && !poisonous) return try_again(which, finished, deaths);
  core_->count_element_loss(again);
  auto error = reply.error();
  if (again) {
    const auto words = error.words();
    error = error_info::quarantined(error.status(), deaths);
    error.set_words(words);
  }
  account_failure(which, finished, std::move(error));
}

void batch_run::account_timeout(const range& which, task_reply& reply, std::size_t element, error_info error) {
  const auto finished = finished_before(which, element);
  account_finished(which, finished, reply);
  const auto& terms = settings_.terms;
  const bool again = may_try_again(finished == 0 ? which.attempt : 1) && terms.retry_on.after_timeout();
  if (again && !core_->tasks().is_over(terms)) return try_again(which, finished, finished == 0 ? which.deaths : 0);
  account_failure(which, finished, std::move(error));
}

// The element behind the finished ones; if it has to wait, those behind it do not wait with it.
void batch_run::try_again(const range& which, std::size_t finished, unsigned deaths) {
  core_->count_element_retry();
  range again{.first = which.first + finished,
              .count = which.count - finished,
              .attempt = (finished == 0 ? which.attempt : 1) + 1,
              .deaths = deaths};
  if (settings_.terms.retry_delay.count() > 0 && again.count > 1) {
    again_.push_back({.first = again.first + 1, .count = again.count - 1});
    again.count = 1;
  }
  again_.push_back(again);
}

void batch_run::account_finished(const range& which, std::size_t finished, task_reply& reply) {
  if (finished == 0) return;
  settled_ += finished;
  if (settings_.progress) settings_.progress->add(finished);
  pieces_.push_back({.first = which.first, .count = finished, .results = reply.take_attached(results_attachment)});
}

// The element behind the finished ones failed; those behind it get another chunk, unless one failure is enough.
void batch_run::account_failure(const range& which, std::size_t finished, error_info error) {
  fail(which.first + finished, 1, std::move(error), finished == 0 ? which.attempt : 1);
  const auto done = finished + 1;
  if (done < which.count && !given_up_) {
    again_.push_back({.first = which.first + done, .count = which.count - done});
  }
}

void batch_run::fail(std::size_t first, std::size_t count, error_info error, unsigned attempt) {
  auto place = error.place();
  place.element = settings_.first_element + first;
  place.attempt = attempt;
  if (place.label.empty()) place.label = settings_.label;
  error.set_place(std::move(place));
  if (failures_.capacity() < failures_.size() + 2)
    failures_.reserve(2 * failures_.size() + 2);  // one for fail_for_memory
  failures_.push_back({.first = first, .count = count, .error = std::move(error)});
  settled_ += count;
  if (settings_.progress) settings_.progress->add(count);
  if (!job_->fails_fast()) return;
  stop_running();
  given_up_ = true;
}

// ---- the end

bool batch_run::is_complete() const { return settled_ == count_ || (given_up_ && !failures_.empty()); }

batch_run::ending batch_run::end_if_complete() {
  if (!is_complete() || is_done()) return {};
  std::sort(pieces_.begin(), pieces_.end(), [](const piece& a, const piece& b) { return a.first < b.first; });
  std::sort(failures_.begin(), failures_.end(), [](const failure& a, const failure& b) { return a.first < b.first; });
  free_place();  // so that who has seen the end finds room
  done_.store(1, std::memory_order_release);
  return {.now = true,
          .then = std::exchange(when_done_, nullptr),
          .self = in_flight_.empty() ? std::exchange(self_, nullptr) : shared_from_this(),
          .reserved = std::move(reserved_)};
}

void batch_run::announce(const ending& end) {
  if (!end.now) return;
  futex_wake(futex_address(done_), INT_MAX, futex_scope::within_process);
  if (end.then) end.then();
}

}  // namespace muster::detail
