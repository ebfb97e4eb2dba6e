// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

/// A call of a world failed, because of a rank: it threw, died, or was too late, even if it came back. Nothing of the
/// call has happened: no variable has changed, in any rank. A rank that is gone is replaced before the next call.
///
/// what() says which rank, in which function, and why. What a rank threw is nested in it as itself, where its type is
/// known here (std::rethrow_if_nested), else as remote_exception; info() has it as data.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, all members are const.
class rank_error : public error {
public:
  rank_error(error_info info, std::string what, std::size_t rank, std::string function)
      : error(info.code(), std::move(what)), info_(std::move(info)), rank_(rank), function_(std::move(function)) {}

  /// What happened in the rank. Its code is that of the error: errc::remote_exception for what a function threw,
  /// errc::worker_died, errc::timed_out.
  [[nodiscard]] const error_info& info() const noexcept { return info_; }
  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  /// The name of the function that was called.
  [[nodiscard]] const std::string& function() const noexcept { return function_; }

private:
  error_info info_;
  std::size_t rank_;
  std::string function_;
};

}  // namespace muster
