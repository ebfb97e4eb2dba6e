// SPDX-License-Identifier: BSL-1.0
#include "cuda_block.hpp"

#include <muster/base/assert.hpp>

namespace muster::detail {

cuda_block::~cuda_block() { of_->give_back(piece_); }

void cuda_block::write_to(frame_writer& /*out*/) const { MUSTER_ASSERT(is_shareable()); }

void foreign_block::write_to(frame_writer& /*out*/) const { MUSTER_ASSERT(is_shareable()); }

}  // namespace muster::detail
