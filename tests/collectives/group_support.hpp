// SPDX-License-Identifier: BSL-1.0
#pragma once

// Groups of threads of this process, or of forked processes.

#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <muster/base/exit_status.hpp>
#include <muster/group.hpp>
#include <muster/memory/domain.hpp>

#include "processes.hpp"

namespace muster::test {

enum class rank_kind { threads, processes };
std::ostream& operator<<(std::ostream& out, rank_kind kind);
/// Both; under ThreadSanitizer, which does not look beyond a process, only threads.
std::vector<rank_kind> rank_kinds();
/// For INSTANTIATE_TEST_SUITE_P.
std::string name_of(rank_kind kind);

/// What a rank does. Expectations that fail in a process are printed there, and its exit code tells.
using rank_body = std::function<void(group&)>;
/// The same of one that joins by itself, or does not.
using ticket_body = std::function<void(const group_ticket&, std::size_t rank)>;

/// Forked processes that take part in the program's domain, and are the ranks of a group.
class rank_processes {
public:
  rank_processes(std::size_t ranks, const rank_body& run, const group_options& options = {});
  rank_processes(std::size_t ranks, const ticket_body& run, const group_options& options = {});
  rank_processes(const rank_processes&) = delete;
  rank_processes& operator=(const rank_processes&) = delete;
  ~rank_processes();

  void kill(std::size_t rank) { processes_.kill(rank); }
  void freeze(std::size_t rank) { processes_.freeze(rank); }
  void thaw(std::size_t rank) { processes_.thaw(rank); }
  [[nodiscard]] pid_t pid(std::size_t rank) const { return processes_.pid(rank); }
  /// Waits for its end, and recovers what it had.
  exit_status end(std::size_t rank);
  /// All that have not ended yet must end well.
  void expect_all_end_well();

private:
  int run(std::size_t rank, const ticket_body& body);

  std::shared_ptr<domain> domain_;
  std::vector<participant_id> ids_;
  std::vector<bool> ended_;
  class admission;
  std::vector<std::unique_ptr<admission>> admissions_;
  processes processes_;
};

/// Runs `run` in all ranks of a new group, and waits until all are done.
void run_group(rank_kind kind, std::size_t ranks, const rank_body& run, const group_options& options = {});

/// The text of what `call` throws, which must be an E; else a text that says so.
template <class E, class Call>
std::string text_thrown_by(Call call) {
  try {
    call();
  } catch (const std::exception& found) {
    const bool right = dynamic_cast<const E*>(&found) != nullptr;
    return (right ? "" : "another exception: ") + std::string(found.what());
  }
  return "nothing was thrown";
}

}  // namespace muster::test
