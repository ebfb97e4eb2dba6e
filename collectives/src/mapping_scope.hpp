// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "collective_calls.hpp"

namespace muster::detail {

/// Lets go of what a call has mapped, when the call has ended: should the owner of a block die meanwhile, nobody else
/// gets the memory that is still read and written.
class collective_calls::mapping_scope {
public:
  explicit mapping_scope(collective_calls& calls) : calls_(calls) {}
  mapping_scope(const mapping_scope&) = delete;
  mapping_scope& operator=(const mapping_scope&) = delete;
  ~mapping_scope() { calls_.unmap(); }

private:
  collective_calls& calls_;
};

}  // namespace muster::detail
