// SPDX-License-Identifier: BSL-1.0
#pragma once

// boost::system::error_code, which Boost.Asio uses, as a value that crosses processes: as std::error_code does, by the
// name of its category (error_code.hpp). Codes of the system, of errno and of Boost.Asio are equal after crossing; a
// category of another library is registered:
//
//     MUSTER_REGISTER_ERROR_CATEGORY(database::boost_category())
//
// Without this header a value with such a code does not compile.
//
// Thread safety: all functions here are safe.

#include <concepts>
#include <system_error>

#include <boost/system/error_code.hpp>
#include <cereal/macros.hpp>

#include <muster/serialize/error_code.hpp>

namespace muster {

namespace detail {

/// Boost's conversion finds the original of every category but these two.
[[nodiscard]] inline boost::system::error_code boost_code_of(const std::error_code& code) noexcept {
  if (code.category() == std::generic_category()) return {code.value(), boost::system::generic_category()};
  if (code.category() == std::system_category()) return {code.value(), boost::system::system_category()};
  return code;
}

}  // namespace detail

// The code's type is deduced: enumerations convert to it.
template <std::same_as<output_archive> Archive, std::same_as<boost::system::error_code> Code>
void CEREAL_SAVE_FUNCTION_NAME(Archive& archive, const Code& code) {
  archive(static_cast<std::error_code>(code));
}

template <std::same_as<input_archive> Archive, std::same_as<boost::system::error_code> Code>
void CEREAL_LOAD_FUNCTION_NAME(Archive& archive, Code& code) {
  std::error_code arrived;
  archive(arrived);
  code = detail::boost_code_of(arrived);
}

}  // namespace muster
