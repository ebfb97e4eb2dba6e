// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <typeinfo>

#include <muster/serialize/error_info.hpp>

namespace muster {

/// Which ends of a task are a reason to run it again; made of those in muster::retry, by `|`.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class retry_reasons {
public:
  /// None.
  constexpr retry_reasons() noexcept = default;

  /// Returns whether the death of its worker is a reason to run a task again.
  [[nodiscard]] constexpr bool after_death() const noexcept { return (bits_ & death) != 0; }
  /// Returns whether a task that ran for longer than its timeout is run again.
  [[nodiscard]] constexpr bool after_timeout() const noexcept { return (bits_ & timeout) != 0; }
  /// Whether there are exceptions after which.
  [[nodiscard]] constexpr bool after_exceptions() const noexcept { return matches_ != nullptr; }
  /// Whether this one, which the task has thrown, is among them.
  [[nodiscard]] bool after(const error_info& thrown) const {
    return matches_ != nullptr && !thrown.type_name().empty() && matches_(thrown);
  }

  /// Of two choices among exceptions, the later holds.
  friend constexpr retry_reasons operator|(retry_reasons a, retry_reasons b) noexcept {
    return {static_cast<std::uint8_t>(a.bits_ | b.bits_), b.matches_ != nullptr ? b.matches_ : a.matches_};
  }
  friend constexpr bool operator==(const retry_reasons&, const retry_reasons&) noexcept = default;

private:
  friend struct retry;
  using matcher = bool (*)(const error_info&);
  static constexpr std::uint8_t death = 1;
  static constexpr std::uint8_t timeout = 2;

  constexpr retry_reasons(std::uint8_t bits, matcher matches) noexcept : bits_(bits), matches_(matches) {}

  template <class... Exceptions>
  static bool is_one_of(const error_info& thrown) {
    return (thrown.is_of(typeid(Exceptions)) || ...);
  }
  static bool is_any(const error_info& /*thrown*/) { return true; }

  std::uint8_t bits_ = 0;
  matcher matches_ = nullptr;
};

/// The reasons there are: `{.retries = 3, .retry_on = retry::death() | retry::exceptions<network_error>()}`.
struct retry {
  /// Its worker was killed, crashed or exited while it ran.
  [[nodiscard]] static constexpr retry_reasons death() noexcept { return {retry_reasons::death, nullptr}; }
  /// It ran for longer than its timeout. Not when its deadline passed: then nothing is left to try.
  [[nodiscard]] static constexpr retry_reasons timeout() noexcept { return {retry_reasons::timeout, nullptr}; }
  /// It threw an exception of exactly one of these types; without types, any.
  template <class... Exceptions>
  [[nodiscard]] static constexpr retry_reasons exceptions() noexcept {
    if constexpr (sizeof...(Exceptions) == 0) {
      return {0, &retry_reasons::is_any};
    } else {
      return {0, &retry_reasons::is_one_of<Exceptions...>};
    }
  }
};

}  // namespace muster
