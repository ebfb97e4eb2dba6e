// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <muster/base/requirements.hpp>

namespace muster {

/// An executable or shared library as loaded into this process.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct module_info {
  std::string path;      ///< empty for the executable itself
  std::string build_id;  ///< the GNU build-id as raw bytes; empty when the linker wrote none
  std::uintptr_t base = 0;
  std::uintptr_t code_begin = 0;  ///< executable segments lie in [code_begin, code_end)
  std::uintptr_t code_end = 0;

  [[nodiscard]] bool contains(std::uintptr_t address) const noexcept {
    return address >= code_begin && address < code_end;
  }

  /// What crosses processes: addresses mean nothing there.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(path, build_id);
  }
};

/// All modules with code, the executable first. Cost: about 5 µs.
/// Thread safety: safe.
[[nodiscard]] std::vector<module_info> loaded_modules();

/// Keeps it where it is for as long as the process lives, whoever closes it (RTLD_NODELETE). False when it is not
/// loaded any more.
///
/// Requires: the caller holds no lock that static objects of a library may wait for while it is loaded.
/// Thread safety: safe.
[[nodiscard]] bool keep_loaded(const module_info& module) noexcept;

/// A table for messages: one line per module with its build-id.
[[nodiscard]] std::string describe(std::span<const module_info> modules);

/// Why a worker with the modules `worker` cannot run the functions of a parent with the modules `parent`, or an empty
/// string when it can: the executables must have the same build-id, and so must all libraries of the same file name.
/// Libraries that only one of them has loaded do no harm.
[[nodiscard]] std::string find_mismatch(std::span<const module_info> parent, std::span<const module_info> worker);

}  // namespace muster
