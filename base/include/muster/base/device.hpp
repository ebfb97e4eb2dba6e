// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <muster/base/requirements.hpp>

namespace muster {

/// Whose memory something lies in: the host's, "cpu", or a GPU's, "cuda:0" and so on. It is a name: whether there is
/// such a device, and whether this build can use it, whoever uses it says.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class device {
public:
  /// The kinds of memory: that of the host, and that of a GPU that CUDA drives.
  enum class kind : std::uint8_t { cpu, cuda };

  /// The host.
  constexpr device() noexcept = default;
  /// Returns the name of the host.
  [[nodiscard]] static constexpr device cpu() noexcept { return {}; }
  /// Returns the name of GPU number `index`, counted from 0. Does not check that there is one.
  [[nodiscard]] static constexpr device cuda(std::uint16_t index = 0) noexcept { return {kind::cuda, index}; }

  /// From "cpu", "cuda" (which is the first one) or "cuda:3". Throws errc::invalid_argument for anything else.
  [[nodiscard]] static device parse(std::string_view name);

  /// Returns the kind of memory: kind::cpu or kind::cuda.
  [[nodiscard]] constexpr kind type() const noexcept { return kind_; }
  /// Which of its kind; 0 for the host.
  [[nodiscard]] constexpr std::uint16_t index() const noexcept { return index_; }
  /// Returns whether this names the host.
  [[nodiscard]] constexpr bool is_cpu() const noexcept { return kind_ == kind::cpu; }

  [[nodiscard]] friend constexpr auto operator<=>(const device&, const device&) noexcept = default;

  /// What parse() reads: "cpu", "cuda:3".
  friend std::ostream& operator<<(std::ostream& out, device which);

private:
  constexpr device(kind which, std::uint16_t index) noexcept : kind_(which), index_(index) {}

  kind kind_ = kind::cpu;
  std::uint16_t index_ = 0;
};

}  // namespace muster
