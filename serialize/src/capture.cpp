// SPDX-License-Identifier: BSL-1.0
// What a worker keeps of an exception.
#include <cxxabi.h>

#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include <muster/base/demangle.hpp>
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

// The library throws types of its own, derived from the type that is meant: std::throw_with_nested, and streams.
bool is_of_library(const std::type_info& type) {
  const std::string_view name = type.name();
  return name.starts_with("St17_Nested_exception") || name == "St13__ios_failure";
}

// Where a remote_exception that is thrown on came from. Requires: called inside a catch block, in which what is
// returned is used.
const error_info* origin_of_task_error() {
  const error_info* found = nullptr;
  try {
    throw;
  } catch (const task_error& exception) {
    found = &exception.info();
  } catch (...) {  // NOLINT(bugprone-empty-catch): it is of here
  }
  return found != nullptr && !found->type_name().empty() ? found : nullptr;
}

// Where the exception that is being handled was thrown, if that is another process: it stays what it was there, however
// many it goes through. Requires: as above.
const error_info* origin_of_current_exception() {
  const auto* origin = detail::find_origin(object_of(std::current_exception()));
  return origin != nullptr ? origin : origin_of_task_error();
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

// The nearest class that is registered, and catches it, saves it.
void save_registered(encoded_exception& to, const std::exception_ptr& exception, const class_list& classes) {
  for (const auto* each : classes) {
    const auto* type = exception_type::find(*each);
    if (type == nullptr) continue;
    auto state = type->save(exception);
    if (!state) continue;
    to.saved_type = type->token();
    to.state = std::move(*state);
    return;
  }
}

// A task_error is none of the receiver's: its worker lives. std::exception is a base of all, and less than
// remote_exception.
void save_standard(encoded_exception& to, const std::exception_ptr& exception, const std::string& message,
                   const class_list& classes) {
  for (const auto* each : classes) {
    if (*each == typeid(task_error)) return;
    if (*each == typeid(std::exception) && each != classes.front()) continue;
    const auto* type = detail::standard_exception::find(*each);
    if (type == nullptr) continue;
    auto state = type->save(exception, message);
    if (!state) continue;
    to.standard_type = type->number();
    to.standard_state = std::move(*state);
    return;
  }
}

// Requires: called inside a catch block. Throws std::bad_alloc.
encoded_exception encode_current_exception(const std::type_info& type, const std::string& message,
                                           const class_list& classes) {
  encoded_exception encoded{.local_type = local_token_of(type)};
  const auto exception = std::current_exception();
  try {
    save_registered(encoded, exception, classes);
    save_standard(encoded, exception, message, classes);
  } catch (...) {
    encoded = {.local_type = encoded.local_type, .save_failure = text_of_current_exception()};
  }
  return encoded;
}

// Requires: called inside a catch block.
nested_error describe_current_exception() {
  if (const auto* origin = origin_of_current_exception()) {
    return {.type_name = origin->type_name(), .message = origin->message(), .exception = origin->exception()};
  }
  const auto* thrown = ::abi::__cxa_current_exception_type();
  if (thrown == nullptr) return {.type_name = "unknown", .message = "an exception of another language"};
  auto classes = detail::classes_of(*thrown);
  if (classes.size() > 1 && is_of_library(*thrown)) classes.erase(classes.begin());
  const auto& type = *classes.front();
  auto message = text_of_current_exception();
  auto encoded = encode_current_exception(type, message, classes);
  return {.type_name = name_of(type),
          .message = std::move(message),
          .exception = std::make_shared<const encoded_exception>(std::move(encoded))};
}

// Requires: called inside a catch block.
void append_nested(std::vector<nested_error>& chain) {
  constexpr std::size_t longest_chain = 64;  // an exception may be nested in itself
  if (chain.size() == longest_chain) return;
  if (const auto* origin = detail::find_origin(object_of(std::current_exception()))) {
    chain.insert(chain.end(), origin->nested().begin(), origin->nested().end());
    return;
  }
  try {
    throw;
  } catch (const std::nested_exception& outer) {
    if (outer.nested_ptr() == nullptr) return;
    try {
      outer.rethrow_nested();
    } catch (...) {
      chain.push_back(describe_current_exception());
      append_nested(chain);
    }
  } catch (...) {  // a copy of a remote_exception, or the end of the chain
    if (const auto* origin = origin_of_task_error()) {
      chain.insert(chain.end(), origin->nested().begin(), origin->nested().end());
    }
  }
}

}  // namespace

error_info capture_current_exception() noexcept {
  try {
    error_info captured(describe_current_exception());
    append_nested(captured.nested_);
    if (const auto* origin = origin_of_current_exception()) captured.place_ = origin->place();
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
