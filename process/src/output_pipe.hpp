// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <muster/base/unique_fd.hpp>

namespace muster::detail {

/// What a worker's stdout or stderr leads to: the parent reads without waiting, the worker's end blocks as usual.
struct output_pipe {
  unique_fd read_end;
  unique_fd write_end;  // above the standard descriptors and the control socket's, so that it can be put in their place
};

/// Throws EMFILE.
[[nodiscard]] output_pipe make_output_pipe();

}  // namespace muster::detail
