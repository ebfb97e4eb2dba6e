// SPDX-License-Identifier: BSL-1.0
#include "standard_exceptions.hpp"

#include <algorithm>
#include <any>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <span>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <version>
#ifdef __cpp_lib_format
#include <format>
#endif

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/detail/restored_exception.hpp>

namespace muster::detail {

namespace {

/// All that one of the classes may hold.
struct standard_state {
  std::optional<std::string> text;  // of the class's base; nothing where it is the exception's what()
  std::error_code code;
  std::filesystem::path path1;
  std::filesystem::path path2;
  std::int32_t number = 0;
};

template <class T>
concept is_text = std::derived_from<T, std::runtime_error> || std::derived_from<T, std::logic_error>;
template <class T>
concept is_coded = std::derived_from<T, std::system_error> || std::same_as<T, std::future_error>;
template <class T>
concept is_filesystem = std::same_as<T, std::filesystem::filesystem_error>;
template <class T>
concept is_regex = std::same_as<T, std::regex_error>;

// The members of that state that the class has: the same for both archives.
template <class T, class Archive>
void transfer(Archive& archive, standard_state& state) {
  if constexpr (is_text<T>) archive(state.text);
  if constexpr (is_coded<T>) archive(state.code);
  if constexpr (is_filesystem<T>) archive(state.path1, state.path2);
  if constexpr (is_regex<T>) archive(state.number);
}

// The text that a base holds, whatever a derived class says instead.
template <class T>
std::string text_of(const T& exception) {
  if constexpr (std::derived_from<T, error>) {
    return exception.error::what();
  } else if constexpr (std::derived_from<T, std::runtime_error>) {
    return exception.std::runtime_error::what();
  } else {
    return exception.std::logic_error::what();
  }
}

template <class T>
standard_state state_of(const T& exception, const std::string& what) {
  standard_state state;
  if constexpr (is_text<T>) {
    auto text = text_of(exception);
    if (text != what) state.text = std::move(text);
  }
  if constexpr (is_coded<T>) state.code = exception.code();
  if constexpr (is_filesystem<T>) std::tie(state.path1, state.path2) = std::tuple(exception.path1(), exception.path2());
  if constexpr (is_regex<T>) state.number = exception.code();
  return state;
}

// filesystem_error puts the text of the code behind its own.
std::string without_code(const std::string& text, const std::error_code& code) {
  const auto added = ": " + code.message();
  return text.ends_with(added) ? text.substr(0, text.size() - added.size()) : text;
}

template <class T>
T construct(const standard_state& state, const std::string& text) {
  if constexpr (is_filesystem<T>) {
    return T(without_code(text, state.code), state.path1, state.path2, state.code);
  } else if constexpr (std::same_as<T, error>) {
    return T(state.code, text);
  } else if constexpr (std::same_as<T, std::ios_base::failure>) {
    return T(text, state.code);
  } else if constexpr (std::same_as<T, std::future_error>) {
    return T(static_cast<std::future_errc>(state.code.value()));
  } else if constexpr (is_coded<T>) {
    return T(state.code);
  } else if constexpr (is_regex<T>) {
    return T(static_cast<std::regex_constants::error_type>(state.number));
  } else if constexpr (is_text<T>) {
    return T(text);
  } else {
    return T();
  }
}

// Constructors make texts of their own: the base is given the right one afterwards.
template <class T>
T make(const standard_state& state, const std::string& text) {
  auto made = construct<T>(state, text);
  if constexpr (std::derived_from<T, std::runtime_error>) {
    static_cast<std::runtime_error&>(made) = std::runtime_error(text);
  } else if constexpr (is_text<T>) {
    static_cast<std::logic_error&>(made) = std::logic_error(text);
  }
  return made;
}

template <class T>
std::string encode_state(standard_state state) {
  output_archive counter;
  transfer<T>(counter, state);
  std::string encoded(counter.written(), '\0');
  output_archive out(std::as_writable_bytes(std::span(encoded)));
  transfer<T>(out, state);
  return encoded;
}

template <class T>
standard_state decode_state(const std::string& encoded) {
  standard_state state;
  input_archive in(std::as_bytes(std::span(encoded)));
  transfer<T>(in, state);
  return state;
}

template <class T>
class known_exception final : public standard_exception {
public:
  explicit constexpr known_exception(std::uint8_t number) noexcept : standard_exception(number, typeid(T)) {}

  [[nodiscard]] std::optional<std::string> save(const std::exception_ptr& exception,
                                                const std::string& what) const override {
    try {
      std::rethrow_exception(exception);
    } catch (const T& caught) {
      return encode_state<T>(state_of(caught, what));
    } catch (...) {  // it has two of them
      return std::nullopt;
    }
  }

  // A code or path of the sender's may be nonsense.
  [[noreturn]] void raise(const error_info& info) const override {
    std::optional<T> made;
    std::string reason;
    try {
      made.emplace(make<T>(decode_state<T>(info.exception()->standard_state), info.message()));
    } catch (const std::exception& failure) {
      reason = text_or_none(failure.what());
    }
    if (!made) raise_unrestored(info, reason);
    throw_with_text(std::move(*made), info);
  }

  void restore(std::exception& exception, const error_info& info) const override {
    if constexpr (is_text<T>) {
      auto* const part = dynamic_cast<T*>(&exception);
      if (part == nullptr) return;
      const auto state = decode_state<T>(info.exception()->standard_state);
      *part = make<T>(state, state.text.value_or(info.message()));
    }
  }
};

template <class T, std::uint8_t Number>
constexpr known_exception<T> known{Number};

/// A table of classes, numbered from 1.
template <class... Ts>
class exception_table {
public:
  template <class Match>
  [[nodiscard]] static const standard_exception* find(const Match& matches) noexcept {
    static constexpr auto all = list(std::index_sequence_for<Ts...>());
    const auto found = std::find_if(all.begin(), all.end(), matches);
    return found != all.end() ? *found : nullptr;
  }

private:
  template <std::size_t... Indices>
  static constexpr std::array<const standard_exception*, sizeof...(Ts)> list(std::index_sequence<Indices...> /*tag*/) {
    return {&known<Ts, std::uint8_t{Indices + 1}>...};
  }
};

using all_exceptions =
    exception_table<std::exception, std::bad_exception, std::bad_alloc, std::bad_array_new_length, std::bad_cast,
                    std::bad_typeid, std::bad_any_cast, std::bad_function_call, std::bad_optional_access,
                    std::bad_variant_access, std::bad_weak_ptr, std::logic_error, std::invalid_argument,
                    std::domain_error, std::length_error, std::out_of_range, std::future_error, std::runtime_error,
                    std::range_error, std::overflow_error, std::underflow_error, std::regex_error, std::system_error,
                    std::ios_base::failure, std::filesystem::filesystem_error,
#ifdef __cpp_lib_format
                    std::format_error,
#endif
                    error>;

}  // namespace

const standard_exception* standard_exception::find(const std::type_info& type) noexcept {
  return all_exceptions::find([&](const auto* each) { return each->type_ == type; });
}

const standard_exception* standard_exception::find(std::uint8_t number) noexcept {
  return all_exceptions::find([&](const auto* each) { return each->number_ == number; });
}

void restore_standard_base(std::exception& exception, const error_info& info) {
  const auto& encoded = info.exception();
  const auto* type = encoded != nullptr ? standard_exception::find(encoded->standard_type) : nullptr;
  if (type != nullptr) type->restore(exception, info);
}

}  // namespace muster::detail
