// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace muster::test {

/// A control group inside of this program's own, in which groups with limits of memory can be made; it goes with the
/// object. Where that may not be, `why_not` says why.
///
/// Thread safety: belongs to one thread.
class memory_group {
public:
  memory_group();
  memory_group(const memory_group&) = delete;
  memory_group& operator=(const memory_group&) = delete;
  ~memory_group();

  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int version() const { return version_; }

private:
  std::string why_not_;
  std::filesystem::path path_;
  int version_ = 0;
};

/// A group inside of that one whose processes can have so much memory together, without swapping: what they touch
/// beyond it, the kernel answers by killing one of them. Requires: why_not() is empty.
///
/// Thread safety: safe.
class limited_memory {
public:
  limited_memory(const memory_group& inside, std::size_t bytes);
  limited_memory(const limited_memory&) = delete;
  limited_memory& operator=(const limited_memory&) = delete;
  ~limited_memory();

  /// The calling process is in it from now on; what it has touched by now counts elsewhere.
  void enter() const;
  /// How many processes the kernel has killed.
  [[nodiscard]] std::uint64_t kills() const;

private:
  std::filesystem::path path_;
  int version_;
};

}  // namespace muster::test
