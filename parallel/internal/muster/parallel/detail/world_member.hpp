// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <muster/memory/detail/wait/sleeper.hpp>
#include <muster/memory/domain.hpp>
#include <muster/parallel/detail/failure_order.hpp>
#include <muster/parallel/detail/frame_port.hpp>
#include <muster/parallel/detail/pinned_inputs.hpp>
#include <muster/parallel/detail/share_run.hpp>
#include <muster/parallel/detail/world_memory.hpp>
#include <muster/parallel/detail/world_words.hpp>
#include <muster/serialize/detail/function_token.hpp>

namespace muster::detail {

/// One rank of a world, in whatever process: takes part in calls.
///
/// Thread safety: one thread at a time.
/// Process safety: a rank is one process; if it dies another may become it.
/// Lifetime: borrows the memory.
class world_member final : private contribution_exchange {
public:
  struct function {
    function_spec spec;
    std::shared_ptr<rank_function> code{};  ///< none: it could not be made of what was sent
    function_token factory{};
    std::vector<std::byte> sent{};
  };

  enum class seat : std::uint8_t { own_process, caller };

  /// `who`: whose bell it sleeps on, and whose place it tells; a process of its own has its line's.
  /// `on`: where the rank's functions get their tensors.
  world_member(std::shared_ptr<domain> where, const world_memory& memory, std::size_t rank, seat who, device on);

  /// Makes this process the rank, as far as the caller is concerned: it answers that it is ready.
  void join();
  /// Takes part in all calls until the caller closes the world. A rank that cannot even wait ends its process: one that
  /// only left would be waited for.
  void serve() noexcept;
  /// Takes part in what was ordered with that epoch, whose arguments are there; answers done, failed or dropped.
  void take_part(std::uint64_t epoch, world_order what);

  /// What the caller, who is a rank himself, need not send.
  void learn(std::uint32_t number, function what) { functions_[number] = std::move(what); }
  void forget(std::uint32_t number) {
    functions_.erase(number);
    buffers_.erase(number);
  }
  /// For the caller: who waits for other ranks' results gives up at `until`, and when `hopeless` says so, which is
  /// asked before each sleep. Nobody else would tell him.
  void watch(std::function<bool()> hopeless, deadline until) {
    hopeless_ = std::move(hopeless);
    until_ = until;
  }
  [[nodiscard]] variable_table& variables() noexcept { return variables_; }
  /// What the last call failed with, in this process; null if it did not.
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

private:
  [[nodiscard]] std::vector<std::vector<contribution>> exchange(std::vector<contribution> own) override;
  void note_failure() noexcept override;
  [[nodiscard]] std::vector<contribution> read_contributions(std::size_t rank);
  void read_news();
  void make_code(function& what);
  void require_code();
  void tend();
  void wait_for_device();
  void run(std::uint64_t epoch, world_order what);
  void run(std::uint64_t epoch, const world_call_header& header, const function& what, frame_reader& values);
  void end_loans();
  void end_work() noexcept;
  [[nodiscard]] bool is_reachable(const tensor& value) const noexcept;
  void fail(std::uint64_t epoch) noexcept;
  [[nodiscard]] bool have_all_computed() const noexcept;
  [[nodiscard]] prospect ask_computing() const noexcept;
  void answer(std::uint64_t epoch, rank_phase phase) noexcept;
  [[nodiscard]] std::atomic<std::uint32_t>& own_bell() const noexcept {
    return is_caller_ ? memory_.bell() : line_.bell;
  }
  [[nodiscard]] command_word command() const noexcept;
  [[nodiscard]] answer_word answer_of(std::size_t rank) const noexcept;

  std::shared_ptr<domain> domain_;
  world_memory memory_;
  std::size_t rank_;
  const device device_;
  world_line& line_;
  const bool is_caller_;
  sleeper sleeper_;
  token_decoder decoder_;
  std::unordered_map<std::uint32_t, function> functions_;
  variable_table variables_;
  std::unordered_map<std::uint32_t, std::vector<tensor>> buffers_;  // by function

  frame_outbox reply_;
  frame_outbox exchange_;
  borrowing_source lent_;                              // by caller and ranks, for the call
  std::vector<std::array<tensor, 2>> made_;            // on the device, until the caller has references
  std::vector<std::shared_ptr<const void>> mappings_;  // of what others offered last: most likely they do so again
  pinned_inputs pins_;                                 // in memory that is lent until a call ends, and kept after
  std::vector<contribution> offered_;                  // others may read it until the call has ended
  std::unique_ptr<rank_outputs> outputs_;              // likewise
  std::uint64_t epoch_ = 0;                            // of the last call
  std::exception_ptr failure_;
  std::uint64_t failed_as_ = 0;  // in the present call; 0: it has not failed
  rank_set ended_;               // ranks that were not known to be alive then
  std::function<bool()> hopeless_;
  deadline until_;
};

}  // namespace muster::detail
