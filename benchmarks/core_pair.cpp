// SPDX-License-Identifier: BSL-1.0
#include "core_pair.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include <muster/base/system_call.hpp>
#include <muster/queue/detail/task_call.hpp>
#include <muster/queue/worker_end.hpp>

#include "comparison.hpp"

namespace bench {

namespace {

void empty_task(muster::task_call&) {}

}  // namespace

core_pair::core_pair(std::size_t processor)
    : domain_({.arena_bytes = std::size_t{64} << 20U, .max_participants = 8, .inherited = true}),
      board_({.workers = 1, .task_slots = 64}, muster::spin_policy::of_process(), muster::pages_without_signals(),
             muster::mapping::inherit::yes),
      functions_(board_.modules()),
      tasks_(board_, domain_.blocks(), {}),
      worker_id_(domain_.participants().enrol()),
      worker_(muster::system_call("fork", [] { return ::fork(); })) {
  if (worker_ == 0) work(processor);
  tasks_.set_worker(0, worker_);
}

core_pair::~core_pair() {
  ::kill(worker_, SIGKILL);
  ::waitpid(worker_, nullptr, 0);
}

void core_pair::work(std::size_t processor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(0, processor);
  const auto copy = [](const muster::unique_fd& file) { return muster::unique_fd(::dup(file.get())); };
  muster::domain joined({.control = copy(domain_.files().control), .arena = copy(domain_.files().arena)}, worker_id_);
  muster::token_decoder functions(board_.modules());
  muster::worker_end end(board_, joined.blocks(), functions, {.index = 0});
  while (end.run_next()) continue;
  ::_exit(0);
}

void core_pair::run(std::size_t count) {
  const auto function = functions_.encode(&empty_task);
  for (std::size_t index = 0; index < count; ++index) {
    muster::task_request request;
    request.function = function;
    auto& record = tasks_.post(std::move(request));
    tasks_.wait(record);
    tasks_.take(record);
  }
}

}  // namespace bench
