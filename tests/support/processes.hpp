// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include <muster/base/exit_status.hpp>
#include <muster/base/memfd.hpp>
#include <muster/base/unique_fd.hpp>
#include <muster/memory/detail/mapping.hpp>

namespace muster::test {

/// Forked ranks of a test: each runs a function and exits with what it returns. Those still there at the end are
/// killed. Fork without exec is right here: a test's ranks share what was mapped before.
class processes {
public:
  using rank_function = std::function<int(std::size_t rank)>;

  processes() = default;
  processes(const processes&) = delete;
  processes& operator=(const processes&) = delete;
  ~processes();

  /// Starts one more rank.
  void add(const rank_function& run);
  void kill(std::size_t rank);
  void freeze(std::size_t rank);
  void thaw(std::size_t rank);
  /// Waits for the end of a rank.
  exit_status wait(std::size_t rank);
  [[nodiscard]] pid_t pid(std::size_t rank) const { return ranks_[rank].pid; }
  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  /// Kills and reaps the rank, then starts another in its place.
  void replace(std::size_t rank, const rank_function& run);

private:
  struct member {
    pid_t pid = 0;
    unique_fd process;
    bool reaped = false;
  };
  static member start(std::size_t rank, const rank_function& run);

  std::vector<member> ranks_;
};

/// Starts `count` ranks that run `run`.
[[nodiscard]] std::unique_ptr<processes> spawn(std::size_t count, const processes::rank_function& run);

/// A `T` in memory that forked ranks share.
template <class T>
class shared {
public:
  shared()
      : file_(make_memfd("muster-test", sizeof(T))),
        memory_(file_, sizeof(T), mapping::inherit::yes),
        object_(new(memory_.bytes().data()) T()) {}
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

private:
  unique_fd file_;
  mapping memory_;
  T* object_;
};

/// Whether the process, or rather its first thread, is asleep in the kernel until somebody wakes a futex.
[[nodiscard]] bool sleeps_on_futex(pid_t pid);

/// Takes as long as real work would, without using the processor. Not for waiting until something has happened.
void work_for(std::chrono::nanoseconds time);

/// Waits until `condition()` holds, looking again and again; false after a generous time. For what has no event.
bool eventually(const std::function<bool()>& condition);

}  // namespace muster::test
