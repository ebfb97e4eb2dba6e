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
  std::size_t rank = 0;
  pid_t pid = 0;  ///< 0: it has not joined

  friend bool operator==(const group_member&, const group_member&) = default;
};

/// What went wrong in a group's operation, and with whom: errc::timed_out, errc::cancelled (aborted), and
/// errc::peer_lost as peer_lost. A group that has thrown one is broken: its operations throw at once, until shrink();
/// but for messages and subsets that have timed out, which break nothing.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class group_error : public error {
public:
  struct particulars {
    std::string operation;
    std::uint64_t sequence = 0;
    std::vector<group_member> missing = {};  ///< alive, as far as is known, and not there
    std::vector<group_member> lost = {};     ///< dead, or they have left
    std::vector<group_member> broken_by = {};
  };

  group_error(errc code, std::string what, particulars about)
      : error(code, std::move(what)), about_(std::move(about)) {}

  /// What this rank was at: the name of the member function, without _async; of messages "send" or "receive", however
  /// they were sent and are waited for.
  [[nodiscard]] const std::string& operation() const noexcept { return about_.operation; }
  /// The number of the operation in its group, from 1; the same on all ranks. Messages and subsets have none: 0.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return about_.sequence; }
  [[nodiscard]] const std::vector<group_member>& missing() const noexcept { return about_.missing; }
  [[nodiscard]] const std::vector<group_member>& lost() const noexcept { return about_.lost; }
  /// The rank that broke the group before, by abort() or because it gave up waiting; empty where none has.
  [[nodiscard]] const std::vector<group_member>& broken_by() const noexcept { return about_.broken_by; }

private:
  particulars about_;
};

/// A member died, or left, and others waited for it.
class peer_lost : public group_error {
public:
  peer_lost(std::string what, particulars about) : group_error(errc::peer_lost, std::move(what), std::move(about)) {}
};

/// Some ranks could not do their part of a collective: errc::invalid_argument before anything was done,
/// errc::remote_exception when results are undefined. Each of these ranks throws what it failed with, and all other
/// ranks throw this. The group goes on.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class member_failed : public error {
public:
  member_failed(errc code, std::string what, std::vector<group_member> failed)
      : error(code, std::move(what)), failed_(std::move(failed)) {}

  /// Never empty; in the order of ranks.
  [[nodiscard]] const std::vector<group_member>& failed() const noexcept { return failed_; }

private:
  std::vector<group_member> failed_;
};

}  // namespace muster
