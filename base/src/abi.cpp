// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/abi.hpp>

namespace muster::abi {

const char MUSTER_ABI = 0;

}  // namespace muster::abi
