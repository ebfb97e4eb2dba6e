// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/clock.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/collectives/graph_link.hpp>

namespace muster::detail {

/// What is under way between ranks of one process: brings sends and receives together and copies.
///
/// Thread safety: safe.
class graph_exchange {
public:
  /// One end of a message.
  struct half {
    int from = 0;
    int to = 0;
    int tag = 0;
    bool sends = false;
    tensor elements;
  };

  [[nodiscard]] graph_link::ticket start(half what) MUSTER_EXCLUDES(mutex_);
  /// As graph_link::wait.
  [[nodiscard]] bool wait(graph_link::ticket which, deadline until) MUSTER_EXCLUDES(mutex_);
  [[nodiscard]] bool test(graph_link::ticket which) MUSTER_EXCLUDES(mutex_);
  void abort(int rank, std::string_view why) noexcept MUSTER_EXCLUDES(mutex_);

private:
  enum class phase : std::uint8_t { unused, open, done, refused };

  struct transfer {
    half what;
    phase state = phase::unused;
    std::uint64_t number = 0;  // they match in the order of their starts
    std::string problem;       // when refused
  };

  transfer& unused() MUSTER_REQUIRES(mutex_);
  transfer* partner_of(const half& what) MUSTER_REQUIRES(mutex_);
  static void bring_together(transfer& send, transfer& receive);
  /// Whether it has ended; gives its place free then.
  bool take(transfer& which) MUSTER_REQUIRES(mutex_);
  void require_none_gave_up() MUSTER_REQUIRES(mutex_);

  mutex mutex_;
  condition changed_;
  std::vector<transfer> transfers_ MUSTER_GUARDED_BY(mutex_);  // a ticket is an index, and one more
  std::uint64_t started_ MUSTER_GUARDED_BY(mutex_) = 0;
  bool aborted_ MUSTER_GUARDED_BY(mutex_) = false;
  std::string why_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::detail
