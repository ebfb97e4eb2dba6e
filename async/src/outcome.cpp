// SPDX-License-Identifier: BSL-1.0
#include <muster/async/detail/outcome.hpp>

#include <new>

#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

failure::failure(error_info error) noexcept {
  try {
    error_ = std::make_shared<const error_info>(std::move(error));
  } catch (const std::bad_alloc&) {
    thrown_ = std::current_exception();
  }
}

error_info failure::error() const noexcept {
  if (error_ != nullptr) return error_info::copy_of(*error_);
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
