// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/rank_process.hpp>

#include <atomic>

#include <muster/parallel/detail/world_member.hpp>
#include <muster/pool/this_worker.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster::detail {

namespace {

// What a worker does as long as it is a rank.
void be_rank(const world_ticket& ticket, std::size_t rank) {
  const auto memory = world_memory::attach(ticket.memory.bytes());
  if (rank >= memory.shape().ranks) return;
  // Whatever the program calls its device, here it is the first one.
  const auto on = this_worker::device().is_cpu() ? device::cpu() : device::cuda(0);
  world_member member(domain::of_program(), memory, rank, world_member::seat::own_process, on);
  member.join();
  member.serve();
}

}  // namespace

void rank_process::start(const world_ticket& ticket, const world_memory& memory) {
  identity_ = {};
  auto& line = memory.line(rank_);
  line.member.store(0, std::memory_order_relaxed);
  line.answer.store(0, std::memory_order_relaxed);
  line.news.bytes = 0;
  line.news.block = 0;
  ending_ = std::make_shared<ending>();
  auto task = asked(ticket, memory);
  cancel_ = future_access::canceller_of(task);
  // No callback: who waits for this has the world, and the program's sink, which runs where callbacks do, may wait for
  // it. The memory, which holds the bell, outlives the pool.
  future_access::when_done<void>(std::move(task), [ending = ending_, memory](const outcome<void>& how) {
    const scoped_lock lock(ending->guard);
    ending->number = memory.count_failure();
    ending->how = how.has_value() ? error_info(errc::cancelled, "it has left the world") : how.error();
    ring(memory.bell());
  });
}

// What cannot be asked for has ended, and is asked for again.
future<void> rank_process::asked(const world_ticket& ticket, const world_memory& memory) {
  try {
    return pool_.on(worker_).apply_async(be_rank, ticket, rank_);
  } catch (...) {
    const scoped_lock lock(ending_->guard);
    ending_->number = memory.count_failure();
    ending_->how = capture_current_exception();
    throw;
  }
}

bool rank_process::is_there(const world_memory& memory) noexcept {
  if (identity_.pid != 0) return true;  // what stands there by now does not change that
  auto& line = memory.line(rank_);
  const auto found = answer_word::unpack(line.answer.load(std::memory_order_seq_cst));
  if (found.what == rank_phase::absent) return false;
  identity_ = rank_identity::unpack(line.member.load(std::memory_order_acquire));
  return identity_.pid != 0;
}

void rank_process::kill() {
  if (cancel_) cancel_(cancellation::kill);
}

std::optional<error_info> rank_process::ended() const {
  const scoped_lock lock(ending_->guard);
  return ending_->how;
}

std::uint64_t rank_process::ended_as() const {
  const scoped_lock lock(ending_->guard);
  return ending_->number;
}

}  // namespace muster::detail
