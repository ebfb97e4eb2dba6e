// SPDX-License-Identifier: BSL-1.0
#pragma once

// Tensors in files, as other libraries write and read them: the format safetensors
// (https://github.com/huggingface/safetensors), a header in JSON and the elements behind one another.
//
//     muster::write_safetensors("model.safetensors", {.tensors = {{"w", w}, {"b", b}}});
//     const auto model = muster::read_safetensors("model.safetensors");
//     std::cout << model.at("w");

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <muster/device/tensor.hpp>

namespace muster {

/// What such a file has.
///
/// Thread safety: as its tensors.
struct safetensors {
  std::vector<std::pair<std::string, tensor>> tensors;             ///< by name, each name once
  std::vector<std::pair<std::string, std::string>> metadata = {};  ///< texts that say more, by name

  /// Returns whether there is such a tensor.
  [[nodiscard]] bool contains(std::string_view name) const noexcept;
  /// Returns a tensor. Throws errc::invalid_argument, with the names there are, where there is none.
  [[nodiscard]] const tensor& at(std::string_view name) const;
};

/// Writes a file, whose place is taken at once: readers find what was there before, or all of this, also where this
/// process, or the machine, stops meanwhile; what a killed process has written so far stays beside it, as *.tmp.
/// Returns when it is on the disk. Tensors may lie anywhere, with any strides; a file has the larger dtypes first.
/// Throws errc::invalid_argument for dtype c128, which the format has not, for a name that is there twice, is
/// "__metadata__" or no UTF-8; and what the system says.
///
/// Thread safety: as reading the tensors. Cost: what is not contiguous, or not on the host, is copied, one by one.
void write_safetensors(const std::string& path, const safetensors& what);

/// Reads a file: tensors in memory of that kind, in the order in which they lie in the file. Throws errc::corrupted for
/// one that is not whole, or not of this format, with what is wrong; what the system says; errc::out_of_memory.
///
/// Thread safety: safe.
[[nodiscard]] safetensors read_safetensors(const std::string& path, memory where = memory::shared);

}  // namespace muster
