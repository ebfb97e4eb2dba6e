// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <string>

#include <muster/async/future.hpp>
#include <muster/params/detail/kv_owner.hpp>
#include <muster/params/store_key.hpp>
#include <muster/rpc/remote_ref.hpp>
#include <muster/rpc/rpc_options.hpp>

namespace muster::detail {

/// Sends a push to an owner, which answers when it has counted, or cannot count any more.
[[nodiscard]] future<kv_answer> send_push(const remote_ref<kv_owner>& to, const rpc_call_options& how,
                                          const store_key& key, const kv_push& what);

}  // namespace muster::detail
