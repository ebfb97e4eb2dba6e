// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <muster/base/cpu_list.hpp>

namespace muster::detail {

/// The processors that are nearest to a PCI device, by its address as lspci -D says it; nothing when the machine, whose
/// files are below `system_root`, does not tell.
///
/// Thread safety: safe.
[[nodiscard]] std::optional<cpu_list> cpus_near(const std::filesystem::path& system_root, const std::string& address);

/// Those that are in both lists.
///
/// Thread safety: safe.
[[nodiscard]] cpu_list in_both(const cpu_list& one, const cpu_list& other);

}  // namespace muster::detail
