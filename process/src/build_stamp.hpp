// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>
#include <vector>

#include <muster/base/detail/abi.hpp>
#include <muster/base/text.hpp>
#include <muster/base/version.hpp>
#include <muster/serialize/detail/modules.hpp>

namespace muster::detail {

/// A hash, in hexadecimal, of all sources of muster that decide what lies in shared memory and how it is used. The
/// build makes it (cmake/MusterBuildStamp.cmake).
///
/// Thread safety: safe.
[[nodiscard]] const char* source_hash() noexcept;

/// Which muster a program is linked with, and what else is loaded there, for messages. Two programs can share a domain
/// if the first is the same: libraries that were made of the same sources, for the same standard library. It does not
/// matter whether it is the same file, nor which compiler made it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct build_stamp {
  std::string muster;
  std::vector<module_info> modules;

  /// That of this process.
  [[nodiscard]] static build_stamp of_process() {
    return {.muster = text("muster " MUSTER_VERSION_STRING " of sources ", source_hash(),
                           ", built with " MUSTER_BUILT_WITH_STRING),
            .modules = loaded_modules()};
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(muster, modules);
  }
};

}  // namespace muster::detail
