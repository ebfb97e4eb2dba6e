// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <muster/base/requirements.hpp>

namespace muster {

/// How a process ended: it exited with a code, a signal killed it, or nobody knows (somebody else reaped it).
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class exit_status {
public:
  /// How a process ended: it exited, a signal killed it, or its end is unknown (lost).
  enum class kind { exited, killed, lost };

  constexpr exit_status() noexcept = default;  ///< lost
  /// Returns the status of a process that exited with `code`.
  [[nodiscard]] static constexpr exit_status exited(int code) noexcept { return {kind::exited, code}; }
  /// Returns the status of a process that was killed by the signal of this number.
  [[nodiscard]] static constexpr exit_status killed(int signal) noexcept { return {kind::killed, signal}; }
  /// Returns the status of a process whose end is unknown, as a default-constructed one.
  [[nodiscard]] static constexpr exit_status lost() noexcept { return {}; }

  /// Returns how the process ended; code() or signal() has the number.
  [[nodiscard]] constexpr kind how() const noexcept { return how_; }
  /// The exit code; -1 unless it exited.
  [[nodiscard]] constexpr int code() const noexcept { return how_ == kind::exited ? value_ : -1; }
  /// The signal's number; 0 unless it was killed.
  [[nodiscard]] constexpr int signal() const noexcept { return how_ == kind::killed ? value_ : 0; }
  /// Returns whether the process exited with code 0.
  [[nodiscard]] constexpr bool success() const noexcept { return how_ == kind::exited && value_ == 0; }

  friend constexpr bool operator==(const exit_status&, const exit_status&) noexcept = default;

  /// For cereal: how the process ended, and the code or signal.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(how_, value_);
  }

private:
  constexpr exit_status(kind how, int value) noexcept : how_(how), value_(value) {}

  kind how_ = kind::lost;
  int value_ = 0;
};

/// "exited with code 3", "was killed by SIGSEGV (11)", "ended, and its exit status is lost: …", with how that comes.
[[nodiscard]] std::string to_string(const exit_status& status);

/// "SIGKILL"; "signal 77" where the number has no name.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace muster
