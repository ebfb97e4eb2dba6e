// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/outcome.hpp>

#include <new>
#include <system_error>
#include <utility>

#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

failure::failure(error_info error) noexcept {
  try {
    error_ = std::make_shared<const error_info>(std::move(error));
  } catch (const std::bad_alloc&) {
    thrown_ = std::current_exception();
  }
}

failure failure::of_library(std::exception_ptr thrown) noexcept {
  failure made(std::move(thrown));
  try {
    std::rethrow_exception(made.thrown_);
  } catch (const std::system_error& known) {
    if (known.code().category() == error_category()) made.code_ = static_cast<errc>(known.code().value());
  } catch (...) {  // NOLINT(bugprone-empty-catch): of the program, in a call of muster
  }
  return made;
}

error_info failure::error() const noexcept {
  if (error_ != nullptr) return error_info::copy_of(*error_);
  auto found = captured();
  if (code_ != errc::remote_exception) found.set_code(code_);
  return found;
}

error_info failure::captured() const noexcept {
  try {
    std::rethrow_exception(thrown_);
  } catch (const std::exception& exception) {
    if (const auto* remote = remote_info(exception)) return error_info::copy_of(*remote);
    return capture_current_exception();
  } catch (...) {
    return capture_current_exception();
  }
}

std::exception_ptr failure::exception() const noexcept {
  if (error_ == nullptr) return thrown_;
  try {
    error_->raise();
  } catch (...) {
    return std::current_exception();
  }
}

void failure::raise() const {
  if (error_ != nullptr) error_->raise();
  std::rethrow_exception(thrown_);
}

}  // namespace muster::detail
