// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/base/requirements.hpp>

namespace muster {

/// A rank of a group and the process that it was.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct group_member {
  std::size_t rank = 0;  ///< in its group
  pid_t pid = 0;         ///< 0: it has not joined

  friend bool operator==(const group_member&, const group_member&) = default;
};

/// What went wrong in a group's operation, and with whom: errc::timed_out, errc::cancelled (aborted), and
/// errc::peer_lost as peer_lost. A group that has thrown one is broken: its operations throw at once, until shrink();
/// but for messages and subsets that have timed out, which break nothing.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class group_error : public error {
public:
  /// What the error is made of; the members of the same names return it.
  struct particulars {
    std::string operation;                     ///< "all_reduce", "send"; see operation()
    std::uint64_t sequence = 0;                ///< from 1; 0: a message or subset
    std::vector<group_member> missing = {};    ///< alive, as far as is known, and not there
    std::vector<group_member> lost = {};       ///< dead, or they have left
    std::vector<group_member> broken_by = {};  ///< the rank that broke the group before; empty: none did
  };

  /// what() returns the text `what`.
  group_error(errc code, std::string what, particulars about)
      : error(code, std::move(what)), about_(std::move(about)) {}

  /// What this rank was at: the name of the member function, without _async; of messages "send" or "receive", however
  /// they were sent and are waited for.
  [[nodiscard]] const std::string& operation() const noexcept { return about_.operation; }
  /// The number of the operation in its group, from 1; the same on all ranks. Messages and subsets have none: 0.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return about_.sequence; }
  /// Returns the ranks that this rank waited for when its time was up, and that are alive as far as is known.
  [[nodiscard]] const std::vector<group_member>& missing() const noexcept { return about_.missing; }
  /// Returns the ranks that are dead or have left.
  [[nodiscard]] const std::vector<group_member>& lost() const noexcept { return about_.lost; }
  /// The rank that broke the group before, by abort() or because it gave up waiting; empty where none has.
  [[nodiscard]] const std::vector<group_member>& broken_by() const noexcept { return about_.broken_by; }

private:
  particulars about_;
};

/// A member died, or left, and others waited for it.
class peer_lost : public group_error {
public:
  /// The code is errc::peer_lost; what() returns the text `what`.
  peer_lost(std::string what, particulars about) : group_error(errc::peer_lost, std::move(what), std::move(about)) {}
};

/// Some ranks could not do their part of a collective: errc::invalid_argument before anything was done,
/// errc::remote_exception when results are undefined. Each of these ranks throws what it failed with, and all other
/// ranks throw this. The group goes on.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class member_failed : public error {
public:
  /// `failed`: the ranks that could not do their part, at least one. what() returns the text `what`.
  member_failed(errc code, std::string what, std::vector<group_member> failed)
      : error(code, std::move(what)), failed_(std::move(failed)) {}

  /// Never empty; in the order of ranks.
  [[nodiscard]] const std::vector<group_member>& failed() const noexcept { return failed_; }

private:
  std::vector<group_member> failed_;
};

}  // namespace muster
