// SPDX-License-Identifier: BSL-1.0
// How a worker encodes the exception that it handles.
#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <muster/base/detail/demangle.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/error_info.hpp>
#include <muster/serialize/exception_type.hpp>
#include <muster/serialize/exceptions.hpp>

#include "base_classes.hpp"
#include "standard_exceptions.hpp"

namespace muster {

namespace {

using class_list = std::vector<const std::type_info*>;

// An exception_ptr is a pointer to the thrown object, in libstdc++ as in libc++.
const void* object_of(const std::exception_ptr& exception) {
  static_assert(sizeof exception == sizeof(const void*));
  const void* object = nullptr;
  std::memcpy(&object, &exception, sizeof object);  // NOLINT(bugprone-*): it is read only
  return object;
}

// Libraries throw types of their own, derived from the type that is meant: std::throw_with_nested, streams, and
// boost::throw_exception, which Asio uses, and whose type has another base before that one. Returns how many classes
// come before the type that is meant.
std::size_t count_wrappers(const std::type_info& type) {
  const std::string_view name = type.name();
  if (name.starts_with("St17_Nested_exceptionI") || name == "St13__ios_failure") return 1;
  return name.starts_with("N5boost10wrapexceptI") ? 2 : 0;
}

// Requires: called inside a catch block.
std::string text_of_current_exception() {
  try {
    throw;
  } catch (const std::exception& exception) {
    return text_or_none(exception.what());
  } catch (const std::string& message) {
    return message;
  } catch (const char* message) {
    return text_or_none(message);
  } catch (...) {
    return "an exception that is not derived from std::exception";
  }
}

/// The exception that is being handled. Throwing it again costs a microsecond, so its classes are looked at first.
///
/// Requires: made and used inside one catch block.
class handled_exception {
public:
  handled_exception() : exception_(std::current_exception()), type_(::abi::__cxa_current_exception_type()) {
    if (type_ == nullptr) return;
    classes_ = detail::classes_of(*type_);
    if (const auto wrappers = count_wrappers(*type_); wrappers < classes_.size()) {
      classes_.erase(classes_.begin(), classes_.begin() + static_cast<std::ptrdiff_t>(wrappers));
    }
    type_ = classes_.front();
    thrown_origin_ = detail::find_origin(object_of(exception_));
    origin_ = thrown_origin_ != nullptr ? thrown_origin_ : origin_of_task_error();
  }

  /// The record that has come from another process; null for an exception of this one. It is passed on as it is.
  [[nodiscard]] const error_info* origin() const noexcept { return origin_; }
  [[nodiscard]] nested_error describe() const;
  /// Adds the inner exceptions, outermost first.
  void append_inner(std::vector<nested_error>& chain) const;

private:
  [[nodiscard]] bool is_derived_from(const std::type_info& base) const {
    return std::any_of(classes_.begin(), classes_.end(), [&](const auto* each) { return *each == base; });
  }
  [[nodiscard]] const error_info* origin_of_task_error() const;
  [[nodiscard]] encoded_exception encode(const std::string& message) const;
  void save_registered(encoded_exception& to) const;
  void save_standard(encoded_exception& to, const std::string& message) const;

  std::exception_ptr exception_;
  const std::type_info* type_;                 // null: of another language
  class_list classes_;                         // its own first
  const error_info* thrown_origin_ = nullptr;  // of the very object
  const error_info* origin_ = nullptr;         // of that, or of the task_error that it is
};

// A remote_exception that is thrown on, also by way of a copy.
const error_info* handled_exception::origin_of_task_error() const {
  if (!is_derived_from(typeid(task_error))) return nullptr;
  const error_info* found = nullptr;
  try {
    throw;
  } catch (const task_error& exception) {
    found = &exception.info();
  } catch (...) {  // NOLINT(bugprone-empty-catch): it has two of them
  }
  return found != nullptr && !found->type_name().empty() ? found : nullptr;
}

// The nearest class that is registered, and catches it, saves it. One that has no token is not found elsewhere.
void handled_exception::save_registered(encoded_exception& to) const {
  for (const auto* each : classes_) {
    const auto* type = exception_type::find(*each);
    if (type == nullptr || type->token() == object_token::none) continue;
    auto state = type->save(exception_);
    if (!state) continue;
    to.saved_type = type->token();
    to.state = std::move(*state);
    return;
  }
}

// A task_error is none of the receiver's: its worker lives. std::exception is a base of all, and less than
// remote_exception.
void handled_exception::save_standard(encoded_exception& to, const std::string& message) const {
  for (const auto* each : classes_) {
    if (*each == typeid(task_error)) return;
    if (*each == typeid(std::exception) && each != type_) continue;
    const auto* type = detail::standard_exception::find(*each);
    if (type == nullptr) continue;
    auto state = type->save(exception_, message);
    if (!state) continue;
    to.standard_type = type->number();
    to.standard_state = std::move(*state);
    return;
  }
}

encoded_exception handled_exception::encode(const std::string& message) const {
  encoded_exception encoded{.local_type = local_token_of(*type_)};
  try {
    save_registered(encoded);
    save_standard(encoded, message);
  } catch (...) {
    encoded = {.local_type = encoded.local_type, .save_failure = text_of_current_exception()};
  }
  return encoded;
}

nested_error handled_exception::describe() const {
  if (origin_ != nullptr) {
    return {.type_name = origin_->type_name(), .message = origin_->message(), .exception = origin_->exception()};
  }
  if (type_ == nullptr) return {.type_name = "unknown", .message = "an exception of another language"};
  auto message = text_of_current_exception();
  auto encoded = std::make_shared<const encoded_exception>(encode(message));
  return {.type_name = name_of(*type_), .message = std::move(message), .exception = std::move(encoded)};
}

void handled_exception::append_inner(std::vector<nested_error>& chain) const {
  constexpr std::size_t longest_chain = 64;  // an exception may be nested in itself
  if (chain.size() >= longest_chain) return;
  if (thrown_origin_ == nullptr && is_derived_from(typeid(std::nested_exception))) {
    try {
      throw;
    } catch (const std::nested_exception& outer) {
      if (outer.nested_ptr() == nullptr) return;
      try {
        outer.rethrow_nested();
      } catch (...) {
        const handled_exception inner;
        chain.push_back(inner.describe());
        inner.append_inner(chain);
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch): it has two of them
    }
  } else if (origin_ != nullptr) {
    chain.insert(chain.end(), origin_->nested().begin(), origin_->nested().end());
  }
}

}  // namespace

error_info capture_current_exception() noexcept {
  try {
    const handled_exception thrown;
    error_info captured(thrown.describe());
    thrown.append_inner(captured.nested_);
    if (thrown.origin() != nullptr) captured.place_ = thrown.origin()->place();
    return captured;
  } catch (const std::exception& failure) {  // memory has run out
    try {
      return {errc::remote_exception, text("an exception that could not be described: ", text_or_none(failure.what()))};
    } catch (const std::bad_alloc&) {
      return {};
    }
  } catch (...) {
    return {};
  }
}

}  // namespace muster
