// SPDX-License-Identifier: BSL-1.0
#pragma once

// std::error_code and std::error_condition as values that cross processes.
//
// A code is a number and the address of a category, and an address means nothing in another process. So a code travels
// as the number, the name of its category and, where the receiver may not have that category, its text. The receiver
// finds the category among those of the standard library, muster's own and the registered ones:
//
//     MUSTER_REGISTER_ERROR_CATEGORY(database::error_category())   // at namespace scope, in a header or source
//
// A code of a category that is not registered arrives with a stand-in: a category of the same name, and the same text.
// Such a code equals itself and no std::errc. Sent back to a process that has registered the category, it is of that
// category again.
//
// Thread safety: all functions here are safe.

#include <concepts>
#include <cstdint>
#include <string>
#include <system_error>
#include <type_traits>

#include <cereal/macros.hpp>

#include <muster/serialize/detail/object_token.hpp>
#include <muster/serialize/holds_pointers.hpp>

// Declared, not included: few programs have them.
namespace boost::system {
class error_code;
class error_condition;
}  // namespace boost::system

namespace muster {

class input_archive;
class output_archive;

// Their bytes hold the category's address.
/// @cond
template <>
inline constexpr bool holds_pointers<std::error_code> = true;
template <>
inline constexpr bool holds_pointers<std::error_condition> = true;
template <>
inline constexpr bool holds_pointers<boost::system::error_code> = true;
template <>
inline constexpr bool holds_pointers<boost::system::error_condition> = true;
/// @endcond

/// The registration of one category, made by MUSTER_REGISTER_ERROR_CATEGORY before main(), or while a library is
/// loaded; it ends when the library is unloaded.
///
/// Thread safety: safe.
class registered_category {
public:
  /// Lifetime: borrows `category`, which must outlive this object.
  explicit registered_category(const std::error_category& category) noexcept;
  registered_category(const registered_category&) = delete;
  registered_category& operator=(const registered_category&) = delete;
  ~registered_category();

private:
  friend class category_registry;

  const std::error_category* category_;
  mutable const registered_category* next_ = nullptr;  // guarded by table_mutex
};

namespace detail {

/// A code or condition as it travels. Layout: docs/formats/frame.md.
struct encoded_code {
  /// The categories that every program has.
  enum class kind : std::uint8_t { generic, system, iostream, future, muster, other };

  kind category = kind::generic;
  std::int32_t value = 0;
  // Of other categories:
  object_token token{};  // of the category's object; none for those on the heap
  std::string name{};
  std::string text{};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(category, value);
    if (category == kind::other) archive(token, name, text);
  }
};

[[nodiscard]] encoded_code encode(const std::error_code& code);
[[nodiscard]] encoded_code encode(const std::error_condition& condition);
/// Returns the category that `code` is of: a stand-in where this process does not know it. Lifetime: until the process
/// ends, or the library that has registered it is unloaded.
[[nodiscard]] const std::error_category& category_of(const encoded_code& code);

template <class T>
concept coded_value = std::same_as<T, std::error_code> || std::same_as<T, std::error_condition>;

}  // namespace detail

// The functions that cereal looks up. Templates, because the archives are not defined yet.

template <std::same_as<output_archive> Archive, detail::coded_value Code>
void CEREAL_SAVE_FUNCTION_NAME(Archive& archive, const Code& code) {
  archive(detail::encode(code));
}

template <std::same_as<input_archive> Archive, detail::coded_value Code>
void CEREAL_LOAD_FUNCTION_NAME(Archive& archive, Code& code) {
  detail::encoded_code encoded;
  archive(encoded);
  code.assign(encoded.value, detail::category_of(encoded));
}

}  // namespace muster

#define MUSTER_DETAIL_JOIN_2(a, b) a##b
#define MUSTER_DETAIL_JOIN(a, b) MUSTER_DETAIL_JOIN_2(a, b)

/// Lets error codes and conditions of a category cross processes: they are equal to themselves on the other side. The
/// expression is a const std::error_category&; it is evaluated before main(). Use at namespace scope, once or in a
/// header.
#define MUSTER_REGISTER_ERROR_CATEGORY(...)                                                                            \
  namespace {                                                                                                          \
  [[maybe_unused]] const ::muster::registered_category MUSTER_DETAIL_JOIN(muster_category_, __COUNTER__)(__VA_ARGS__); \
  }
