// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

#include <muster/base/detail/mutex.hpp>
#include <muster/queue/board.hpp>

namespace muster::detail {

/// Workers of one pool of threads, by index.
using local_worker_set = std::bitset<most_workers>;

/// What a worker of a pool of threads waits for: a task or a map of the same pool.
///
/// Thread safety: safe.
class local_wait {
public:
  local_wait() = default;
  local_wait(const local_wait&) = delete;
  local_wait& operator=(const local_wait&) = delete;
  virtual ~local_wait() = default;

  /// All without whom it does not end, as far as that is settled; nobody once it has ended, or end_hope() was true.
  [[nodiscard]] virtual local_worker_set needed() = 0;
  /// Wakes who waits, to give it up; if nobody has begun it, otherwise false. With `rest`, also a map of which elements
  /// have run, and none does.
  virtual bool end_hope(bool rest) = 0;
};

/// Which workers of a pool of threads wait for one another, without a time limit, and that they do not do it in a
/// circle.
///
/// It works as follows. A worker that is about to sleep enters what it waits for, under the mutex, and goes from worker
/// to worker by way of what each waits for. If it comes back to itself, none of these could ever go on: one of the
/// waits whose task or map nobody has begun is ended, its own if possible; where there is none on any way back, one for
/// the rest of a map. A circle is closed by whoever enters last,
/// since a worker that begins something waits for nothing; and what is found is one, since all of it stays as it is
/// until the first of these tasks ends, which none can. Where all have begun nothing can be ended, and they wait on.
///
/// Thread safety: safe. Cost: for who sleeps only, two mutex operations and a walk.
class local_waits {
public:
  explicit local_waits(std::size_t workers) : waiting_(workers) {}

  /// While it exists that worker waits for that.
  class scope {
  public:
    scope(local_waits& all, std::size_t worker, local_wait& what) : all_(all), worker_(worker) {
      all_.enter(worker, what);
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() { all_.leave(worker_); }

  private:
    local_waits& all_;
    const std::size_t worker_;
  };

private:
  void enter(std::size_t worker, local_wait& what) MUSTER_EXCLUDES(mutex_);
  void leave(std::size_t worker) MUSTER_EXCLUDES(mutex_);
  bool break_circle(std::size_t closing, bool rest) MUSTER_REQUIRES(mutex_);

  mutex mutex_;
  std::vector<local_wait*> waiting_ MUSTER_GUARDED_BY(mutex_);  // by worker; nullptr: it does not wait
};

}  // namespace muster::detail
