// SPDX-License-Identifier: BSL-1.0
#include <muster/base/detail/abi.hpp>

namespace muster::abi {

const char MUSTER_ABI = 0;
#if defined(MUSTER_ASIO)
const char MUSTER_ASIO = 0;
#endif

}  // namespace muster::abi
