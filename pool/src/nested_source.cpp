// SPDX-License-Identifier: BSL-1.0
// Futures of calls that a task makes to its own pool. The task's thread notices their ends, and runs their callbacks.
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <muster/async/detail/task_thread.hpp>
#include <muster/base/log.hpp>
#include <muster/pool/detail/task_source.hpp>
#include <muster/queue/nested_end.hpp>

namespace muster::detail {

namespace {

/// A call, and the notice of its end.
///
/// Thread safety: as nested_call.
struct nested_work {
  explicit nested_work(nested_call made) : call(std::move(made)) {}

  nested_call call;
  std::unique_ptr<end_notice> notice;
};

/// Of the tasks of one worker that are as deep inside of one another: a task that waits runs others, which must not
/// wait for what it has begun.
///
/// Thread safety: belongs to the worker's thread; others only end it.
class task_home final : private task_thread, public future_home, public task_companion {
public:
  explicit task_home(const log_sink& log) : task_thread(log), future_home(task_thread::callbacks()) {}

  [[nodiscard]] task_thread* only_thread() noexcept override { return this; }
  void watch(std::shared_ptr<nested_work> work) { watched_.push_back(std::move(work)); }

  // What waiting throws here (the system's lack of means) leaves callbacks uncalled: their futures are never done.
  void task_returned() noexcept override {
    try {
      run_rest();
    } catch (const std::exception& failure) {
      log_to_stderr(log_level::error, failure.what());
      watched_.clear();
    }
  }

private:
  bool await_some(deadline until) override {
    if (watched_.empty()) return false;
    std::vector<nested_call*> calls;
    calls.reserve(watched_.size());
    for (const auto& each : watched_) calls.push_back(&each->call);
    if (!nested_call::wait_for_any(calls, until)) return false;
    tell_ended();
    return true;
  }

  // Telling posts a callback, and no more: nothing is watched anew meanwhile.
  void tell_ended() {
    for (const auto& each : watched_) {
      if (each->call.is_done()) end_notice::tell(std::move(each->notice));
    }
    std::erase_if(watched_, [](const auto& each) { return each->notice == nullptr; });
  }

  std::vector<std::shared_ptr<nested_work>> watched_;
};

nested_work& work_of(const held_source& which) noexcept { return *static_cast<nested_work*>(which.what.get()); }

std::shared_ptr<task_home> home_of(nested_end& here) {
  auto& companion = here.companion();
  if (companion == nullptr) companion = std::make_shared<task_home>(log_to_stderr);
  return std::static_pointer_cast<task_home>(companion);
}

bool wait_for_nested(const held_source& which, deadline until) { return work_of(which).call.wait(until); }

bool nested_is_done(const held_source& which) { return work_of(which).call.is_done(); }

bool cancel_nested(const held_source& which, cancellation how) { return work_of(which).call.cancel(how); }

void notify_of_nested(const held_source& which, std::unique_ptr<end_notice> notice) {
  auto& work = work_of(which);
  const bool watched = work.notice != nullptr;
  work.notice.swap(notice);
  if (!watched) static_cast<task_home&>(*which.home).watch(std::static_pointer_cast<nested_work>(which.what));
}

void drop_nested(const held_source& /*which*/) noexcept {}

// It is done, or has been taken to be run in this very thread.
bool nested_runs_here(const held_source& /*which*/) noexcept { return false; }

std::function<void(cancellation)> canceller_of_nested(const held_source& which) {
  return [which](cancellation how) { work_of(which).call.cancel(how); };
}

std::function<void(deadline)> waiter_of_nested(const held_source& which) {
  return [which](deadline until) { static_cast<void>(work_of(which).call.wait(until)); };
}

void read_nested(const held_source& which, const end_reader& reader) {
  const auto reply = work_of(which).call.take();
  reply_attachments attachments(reply.shared());
  std::optional<error_info> failure;
  if (!reply.succeeded()) failure.emplace(reply.error());
  reader.read({.bytes = reply.bytes(), .attachments = &attachments, .failure = failure ? &*failure : nullptr});
}

}  // namespace

const source_functions nested_functions{.wait = &wait_for_nested,
                                        .is_done = &nested_is_done,
                                        .cancel = &cancel_nested,
                                        .notify = &notify_of_nested,
                                        .drop = &drop_nested,
                                        .runs_here = &nested_runs_here,
                                        .canceller = &canceller_of_nested,
                                        .waiter = &waiter_of_nested,
                                        .read = &read_nested};

nested_end& require_nested_end() { return nested_end::require_current(); }

arena& memory_of(nested_end& here) noexcept { return here.memory(); }

token_encoder& functions_of(nested_end& here) { return here.functions(); }

held_source submit_nested(nested_end& here, function_token function, outgoing_frame frame) {
  auto home = home_of(here);
  return {.home = std::move(home), .what = std::make_shared<nested_work>(here.submit(function, std::move(frame)))};
}

}  // namespace muster::detail
