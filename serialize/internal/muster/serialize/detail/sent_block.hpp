// SPDX-License-Identifier: BSL-1.0
#pragma once

// How the handle of a structure in shared memory is sent, of which its block is all: the block goes along where blocks
// can; elsewhere its name goes, and the program is to keep the structure until that has come.
//
// Thread safety: functions without state; safe.

#include <string>

#include <muster/memory/detail/shared_block.hpp>

namespace muster {

class domain;
class input_archive;
class output_archive;

namespace detail {

/// Requires: there is a block.
void save_block(output_archive& archive, const shared_block& block);
/// Throws errc::invalid_argument when it is of another domain, and as throw_block_gone().
[[nodiscard]] shared_block load_block(input_archive& archive, domain& where, const std::string& what);
/// Throws errc::invalid_argument: `what`, "an rpc_ticket of 'training'", is for what is not there any more.
[[noreturn]] void throw_block_gone(const std::string& what);

}  // namespace detail
}  // namespace muster
