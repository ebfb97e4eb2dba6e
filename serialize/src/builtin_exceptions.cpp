// SPDX-License-Identifier: BSL-1.0
#include "builtin_exceptions.hpp"

#include <any>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <stdexcept>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <variant>

#include <muster/base/demangle.hpp>

namespace muster::detail {

namespace {

/// `T` made anew, with the remote what(): the constructors of these types would put the text together differently.
template <class T>
class with_text final : public T, public remote_details {
public:
  with_text(const T& original, const error_info& info) : T(original), remote_details(info) {}
  [[nodiscard]] const char* what() const noexcept override { return info().message().c_str(); }
};

// An error code as two words; categories of other libraries become the generic one, the text stays right.
std::string save_code(const std::error_code& code) {
  return (code.category() == std::system_category() ? "s" : "g") + std::to_string(code.value());
}

std::error_code load_code(const std::string& state) {
  if (state.size() < 2) return {};
  const auto value = std::stoi(state.substr(1));
  return {value, state.front() == 's' ? std::system_category() : std::generic_category()};
}

std::string save_muster_code(const std::error_code& code) {
  return code.category() == error_category() ? "m" + std::to_string(code.value()) : save_code(code);
}

std::error_code load_muster_code(const std::string& state) {
  if (!state.starts_with('m')) return load_code(state);
  return {std::stoi(state.substr(1)), error_category()};
}

using save_function = std::string (*)(const std::exception_ptr&);
using raise_function = void (*)(const error_info&, const std::string&);

/// One of the types below.
class builtin_exception final : public exception_type {
public:
  builtin_exception(const std::type_info& type, save_function saver, raise_function raiser)
      : exception_type(type), save_(saver), raise_(raiser) {}

  [[nodiscard]] std::string save(const std::exception_ptr& exception) const override { return save_(exception); }
  [[noreturn]] void raise(const error_info& info, const std::string& state) const override {
    raise_(info, state);
    throw remote_exception(info);  // not reached: raise_ throws
  }

private:
  save_function save_;
  raise_function raise_;
};

/// Types whose only content is what().
template <class T>
builtin_exception from_text() {
  return {typeid(T), [](const std::exception_ptr&) { return std::string(); },
          [](const error_info& info, const std::string&) { throw with_text<T>(T(info.message()), info); }};
}

/// Types without content.
template <class T>
builtin_exception from_nothing() {
  return {typeid(T), [](const std::exception_ptr&) { return std::string(); },
          [](const error_info& info, const std::string&) { throw with_text<T>(T(), info); }};
}

template <class T>
std::string code_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const T& caught) {
    return save_muster_code(caught.code());
  }
}

builtin_exception ios_failure() {
  using failure = std::ios_base::failure;
  return {typeid(failure), code_of<failure>, [](const error_info& info, const std::string& state) {
            throw with_text<failure>(failure(info.message(), load_code(state)), info);
          }};
}

builtin_exception filesystem_failure() {
  using failure = std::filesystem::filesystem_error;
  return {typeid(failure), code_of<failure>, [](const error_info& info, const std::string& state) {
            throw with_text<failure>(failure(info.message(), load_code(state)), info);
          }};
}

builtin_exception system_failure() {
  return {typeid(std::system_error), code_of<std::system_error>, [](const error_info& info, const std::string& state) {
            throw with_text<std::system_error>(std::system_error(load_muster_code(state)), info);
          }};
}

builtin_exception muster_failure() {
  return {typeid(error), code_of<error>, [](const error_info& info, const std::string& state) {
            throw with_text<error>(error(load_muster_code(state), info.message()), info);
          }};
}

}  // namespace

const exception_type* find_builtin_exception(const std::string& name) {
  static const builtin_exception types[] = {
      // NOLINT(*-avoid-c-arrays): the objects cannot move
      from_text<std::logic_error>(),
      from_text<std::invalid_argument>(),
      from_text<std::domain_error>(),
      from_text<std::length_error>(),
      from_text<std::out_of_range>(),
      from_text<std::runtime_error>(),
      from_text<std::range_error>(),
      from_text<std::overflow_error>(),
      from_text<std::underflow_error>(),
      from_nothing<std::exception>(),
      from_nothing<std::bad_exception>(),
      from_nothing<std::bad_alloc>(),
      from_nothing<std::bad_array_new_length>(),
      from_nothing<std::bad_cast>(),
      from_nothing<std::bad_typeid>(),
      from_nothing<std::bad_any_cast>(),
      from_nothing<std::bad_function_call>(),
      from_nothing<std::bad_optional_access>(),
      from_nothing<std::bad_variant_access>(),
      from_nothing<std::bad_weak_ptr>(),
      ios_failure(),
      filesystem_failure(),
      system_failure(),
      muster_failure(),
  };
  for (const auto& type : types) {
    if (type.name() == name) return &type;
  }
  return nullptr;
}

}  // namespace muster::detail
