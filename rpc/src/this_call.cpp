// SPDX-License-Identifier: BSL-1.0
#include <muster/rpc/this_call.hpp>

#include <muster/base/error.hpp>
#include <muster/rpc/detail/rpc_core.hpp>
#include <muster/rpc/detail/served_call.hpp>
#include <muster/rpc/rpc_group.hpp>

namespace muster {

namespace {

const detail::served_call& require_call() {
  const auto* const found = detail::served_call::current();
  if (found != nullptr) return *found;
  throw error(errc::invalid_argument,
              "this_call was asked outside of a call: only a thread that serves a call of an RPC group has one");
}

}  // namespace

rpc_group this_call::group() { return rpc_group(require_call().core().shared_from_this(), false); }

std::string this_call::caller() {
  const auto& call = require_call();
  return call.core().table().name_of(call.head().caller);
}

deadline this_call::deadline() { return require_call().until(); }

bool this_call::stop_requested() noexcept {
  const auto* const found = detail::served_call::current();
  return found != nullptr && !found->is_wanted();
}

}  // namespace muster
