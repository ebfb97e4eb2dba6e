// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/task_source.hpp>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <muster/pool/detail/pool_core.hpp>
#include <muster/queue/dispatcher.hpp>

namespace muster::detail {

namespace {

pool_core& core_of(const held_source& which) noexcept { return static_cast<pool_core&>(*which.home); }

dispatcher& tasks_of(const held_source& which) noexcept { return core_of(which).tasks(); }

task_record& record_of(const held_source& which) noexcept { return *static_cast<task_record*>(which.what.get()); }

/// Tells a notice of the end of a task. It lies in the notice.
///
/// Thread safety: as completion_sink.
class notice_sink final : public completion_sink {
public:
  explicit notice_sink(end_notice* whom) noexcept : whom_(whom) {}
  void settled(task_record& /*its holder's*/) noexcept override {
    end_notice::tell(std::unique_ptr<end_notice>(whom_));
  }
  void abandoned() noexcept override { delete whom_; }

private:
  end_notice* whom_;
};
static_assert(sizeof(notice_sink) <= sizeof(end_notice::room) && std::is_trivially_destructible_v<notice_sink>);

bool wait_for_task(const held_source& which, deadline until) { return tasks_of(which).wait(record_of(which), until); }

bool task_is_done(const held_source& which) { return tasks_of(which).is_done(record_of(which)); }

bool cancel_task(const held_source& which, cancellation how) { return tasks_of(which).cancel(record_of(which), how); }

void notify_of_task(const held_source& which, std::unique_ptr<end_notice> notice) {
  auto* const whom = notice.release();
  auto* const sink = ::new (whom->for_source().bytes.data()) notice_sink(whom);
  tasks_of(which).subscribe(record_of(which), *sink);
}

void drop_task(const held_source& which) noexcept { tasks_of(which).detach(record_of(which)); }

bool task_runs_here(const held_source& /*which*/) noexcept { return false; }

std::function<void(cancellation)> canceller_of_task(const held_source& which) {
  return [which, id = record_of(which).id()](cancellation how) {
    tasks_of(which).cancel_if_still(record_of(which), id, how);
  };
}

std::function<void(deadline)> waiter_of_task(const held_source& /*which*/) { return nullptr; }

void read_task(const held_source& which, const end_reader& reader) {
  const auto reply = tasks_of(which).take(record_of(which));
  reply_attachments attachments(reply.shared());
  std::optional<error_info> failure;
  if (!reply.succeeded()) failure.emplace(reply.error());
  reader.read({.bytes = reply.bytes(), .attachments = &attachments, .failure = failure ? &*failure : nullptr});
}

}  // namespace

const source_functions task_functions{.wait = &wait_for_task,
                                      .is_done = &task_is_done,
                                      .cancel = &cancel_task,
                                      .notify = &notify_of_task,
                                      .drop = &drop_task,
                                      .runs_here = &task_runs_here,
                                      .canceller = &canceller_of_task,
                                      .waiter = &waiter_of_task,
                                      .read = &read_task};

}  // namespace muster::detail
