// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <muster/base/error.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

/// How another rank of the same call failed.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct rank_failure {
  std::size_t rank = 0;  ///< that failed
  error_info info;       ///< how it failed
};

/// A call of a world failed, because of a rank: it threw, died, or was too late, even if it came back. Nothing of the
/// call has happened: no variable has changed, in any rank. A rank that is gone is replaced before the next call.
///
/// Of several ranks that failed the error is that of the first; others() has the rest. A rank whose error names another
/// rank of the call (group_error, member_failed, also nested) comes behind that rank. A dead rank comes before all
/// failures at which its process had ended, and behind all others. Otherwise ranks come in the order in which
/// exceptions left their functions.
///
/// what() says which rank, in which function, and why; then, in lines of their own, how some of the others failed. What
/// a rank threw is nested in it as itself, where its type is known here (std::rethrow_if_nested), else as
/// remote_exception; info() has it as data.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
class rank_error : public error {
public:
  /// The code is info.code(); what() returns the text `what`.
  rank_error(error_info info, std::string what, std::size_t rank, std::string function,
             std::vector<rank_failure> others = {})
      : error(info.code(), std::move(what)),
        info_(std::move(info)),
        rank_(rank),
        function_(std::move(function)),
        others_(std::move(others)) {}

  /// What happened in the rank. Its code is that of the error: errc::remote_exception for what a function threw,
  /// errc::worker_died, errc::timed_out.
  [[nodiscard]] const error_info& info() const noexcept { return info_; }
  /// Returns the rank that failed first.
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  /// The name of the function that was called.
  [[nodiscard]] const std::string& function() const noexcept { return function_; }
  /// The failures behind it, in the order in which they happened. A rank that was too late, and threw when it came
  /// back, is here too.
  [[nodiscard]] const std::vector<rank_failure>& others() const noexcept { return others_; }

private:
  error_info info_;
  std::size_t rank_;
  std::string function_;
  std::vector<rank_failure> others_;
};

}  // namespace muster
