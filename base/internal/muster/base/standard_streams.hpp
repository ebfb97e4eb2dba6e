// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>

#include <muster/base/unique_fd.hpp>

namespace muster {

/// The descriptor, or another for the same if it has one of the three numbers of the standard streams, as descriptors
/// get in a process that has closed those: what is printed would be written to it. Closed on exec.
/// Throws muster::error (EMFILE).
///
/// Thread safety: safe.
[[nodiscard]] unique_fd above_standard_streams(unique_fd made);

/// While it lives, standard streams that are closed lead to /dev/null: for descriptors that others make.
///
/// Thread safety: distinct objects: safe, others may open files meanwhile.
class standard_streams_filled {
public:
  standard_streams_filled();

private:
  std::array<unique_fd, 3> held_;
};

}  // namespace muster
