// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include <muster/rpc/detail/rpc_core.hpp>

namespace muster::detail {

/// Makes the calling process that member; returns the incarnation. Waits where the one before is dead and that is not
/// known yet. Throws errc::invalid_argument when it lives.
///
/// Thread safety: safe.
[[nodiscard]] std::uint32_t claim_member(const group_table& table, const domain& where, std::size_t member);
/// Says what the member is, unless its name has been joined anew.
void set_presence(const group_table& table, std::size_t member, std::uint32_t incarnation, std::uint64_t now) noexcept;
/// Its name is free again.
void release_member(const group_table& table, std::size_t member, std::uint32_t incarnation) noexcept;

/// Why calls end that are not answered.
///@{
[[nodiscard]] std::exception_ptr timeout_of(const group_table& table, const pending_call& which, bool had_begun);
[[nodiscard]] std::exception_ptr cancelled_by_leaving(const group_table& table, std::size_t member);
///@}

/// Takes a claimed request out of a ring; null where it is none.
[[nodiscard]] std::shared_ptr<rpc_job> take_request(message_ring& from, ring_position at) noexcept;

}  // namespace muster::detail
