// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

#include <muster/serialize/exceptions.hpp>

namespace muster {

/// The member of an RPC group that was to serve a call has died, or has left: errc::peer_lost.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class member_lost : public task_error {
public:
  /// `service`: what service() returns; `what`: the same as the text is to name it.
  member_lost(const std::string& member, const std::string& service, const std::string& what, bool has_left,
              bool had_begun);

  /// Returns the name of the member.
  [[nodiscard]] const std::string& member() const noexcept { return member_; }
  /// Returns what was called: the name of a service, else what it was: "a function", "a remote value", "a barrier".
  [[nodiscard]] const std::string& service() const noexcept { return service_; }
  /// False: the call has not begun and never will, so that it is safe to repeat it. True: it may have had effects.
  [[nodiscard]] bool had_begun() const noexcept { return had_begun_; }

private:
  std::string member_;
  std::string service_;
  bool had_begun_;
};

}  // namespace muster
