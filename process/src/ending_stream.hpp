// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <muster/base/detail/fork_count.hpp>

namespace muster::detail {

/// One end of a connection, whose other end takes its closing for the end of this process: so forked children, which
/// may live on, close theirs.
///
/// Thread safety: as stream_descriptor.
/// Process safety: not to be used, or destroyed, in a forked child.
class ending_stream : public boost::asio::posix::stream_descriptor {
  using stream = boost::asio::posix::stream_descriptor;

public:
  explicit ending_stream(boost::asio::io_context& loop) : stream(loop) {}
  /// Owns the descriptor from then on.
  ending_stream(boost::asio::io_context& loop, int descriptor) : stream(loop) { assign(descriptor); }

  /// Likewise. Requires: it has none. When it throws, the descriptor is the caller's.
  void assign(int descriptor) {
    closed_.emplace(descriptor);
    try {
      stream::assign(descriptor);
    } catch (...) {
      closed_.reset();
      throw;
    }
  }

private:
  std::optional<closed_in_children> closed_;
};

}  // namespace muster::detail
