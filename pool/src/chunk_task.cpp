// SPDX-License-Identifier: BSL-1.0
#include <muster/pool/detail/chunk_task.hpp>

#include <algorithm>
#include <cstring>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/pool/detail/replacement.hpp>

namespace muster::detail {

namespace {

// Another process may read the handle at any time, should this one die.
void publish(std::uint64_t& word, std::uint64_t handle) noexcept {
  std::atomic_ref(word).store(handle, std::memory_order_release);
}

}  // namespace

void throw_outside_batch(std::size_t index) {
  throw error(errc::corrupted, text("element ", index, " does not lie in its batch"));
}

std::uint64_t seal_of(const chunk_arguments& arguments, const chunk_reply& reply) noexcept {
  std::uint64_t sum = 0;
  for (const auto word : {arguments.job, arguments.batch, arguments.first, arguments.count, reply.finished,
                          reply.elapsed_nanoseconds, reply.results, reply.error}) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
    sum ^= sum >> 32U;
  }
  return sum;
}

chunk_run::chunk_run(task_call& call) : call_(call), start_(clock::now()) {
  line() = {};  // the slot's line may still hold another chunk's
  std::memcpy(&arguments_, call.arguments().data(), sizeof arguments_);
  call.begin_chunk(arguments_.first);
  job_ = call.memory().view(block_ref::of_handle(arguments_.job));
  batch_ = call.memory().view(block_ref::of_handle(arguments_.batch));
  const bool whole = job_.size() >= job_header::state_offset && batch_.size() >= sizeof header_;
  if (!whole) throw error(errc::corrupted, "a chunk's blocks are too small to be its own");
  std::memcpy(&header_, batch_.data(), sizeof header_);
  const bool fits = header_.elements_offset <= batch_.size() && header_.results_offset <= batch_.size() &&
                    arguments_.count <= header_.count && arguments_.first <= header_.count - arguments_.count;
  if (!fits) throw error(errc::corrupted, "a chunk does not lie in its batch");
}

const std::atomic<bool>& chunk_run::process_is_unfit() noexcept { return replacement::of_this_process().is_due(); }

chunk_reply& chunk_run::line() const noexcept { return *reinterpret_cast<chunk_reply*>(call_.reply_line().data()); }

std::span<std::byte> chunk_run::append_result(std::size_t bytes) {
  const auto needed = result_prefix_bytes + round_up(bytes, frame_alignment);
  if (needed > results_.size() - used_bytes_) grow(needed);
  auto* const at = results_.data() + used_bytes_;
  const std::uint64_t size = bytes;
  std::memcpy(at, &size, sizeof size);
  used_bytes_ += needed;
  return {at + result_prefix_bytes, bytes};
}

// The old block is released only after the reply line leads to the new one, which has everything that is finished.
void chunk_run::grow(std::size_t bytes) {
  constexpr std::size_t first_bytes = 4096;
  auto larger = call_.memory().allocate(std::max({first_bytes, 2 * results_.size(), used_bytes_ + bytes}), 1);
  if (used_bytes_ > 0) std::memcpy(larger.data(), results_.data(), used_bytes_);
  publish(line().results, larger.ref().handle());
  results_ = std::move(larger);
}

block chunk_run::keep_error() {
  note_failed_task();
  const auto error = call_.describe_current_exception();
  output_archive counter;
  counter(error);
  auto kept = call_.memory().allocate(counter.written(), 1);
  output_archive out(kept.bytes());
  out(error);
  return kept;
}

void chunk_run::reply(std::uint64_t finished, bool failed) {
  block error;
  if (failed) {
    error = keep_error();  // if there is no room for it, the whole chunk fails for that reason
    if (shared().fail_fast != 0) shared().stop.store(1, std::memory_order_relaxed);
  }
  call_.count_more(finished > 0 ? finished - 1 : 0);
  chunk_reply whole{
      .finished = finished,
      .elapsed_nanoseconds = static_cast<std::uint64_t>(std::chrono::nanoseconds(clock::now() - start_).count())};
  if (results_) whole.results = results_.lend().handle();
  if (error) whole.error = error.lend().handle();
  whole.seal = seal_of(arguments_, whole);
  auto& answer = line();
  answer.finished = whole.finished;
  answer.elapsed_nanoseconds = whole.elapsed_nanoseconds;
  answer.seal = whole.seal;
  publish(answer.results, whole.results);
  publish(answer.error, whole.error);
}

}  // namespace muster::detail
