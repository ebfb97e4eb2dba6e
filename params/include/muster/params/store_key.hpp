// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster {

/// What a value of a store is found by: a text, or a whole number of 64 bits. 3 is not "3".
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
class store_key {
public:
  /// How many bytes a text may have.
  static constexpr std::size_t most_bytes = 176;

  /// The empty text.
  store_key() = default;
  /// Stands for a text. Each function of a store throws errc::invalid_argument for one of more than most_bytes.
  ///@{
  store_key(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor): as written
  store_key(std::string_view text) : text_(text) {}        // NOLINT(google-explicit-constructor)
  store_key(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  ///@}
  /// Stands for a number. Of an unsigned one, what does not fit into 63 bits is none: it throws errc::invalid_argument.
  template <std::integral I>
    requires(!std::same_as<I, bool> && !std::same_as<I, char>)
  store_key(I number) : number_(to_number(number)), is_number_(true) {}  // NOLINT(google-explicit-constructor)

  /// Returns whether it is a number.
  [[nodiscard]] bool is_number() const noexcept { return is_number_; }
  /// Returns the number; 0 of a text.
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }
  /// Returns the text; empty of a number.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  /// For cereal.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text_, number_, is_number_);
  }

  /// Numbers come before texts.
  friend std::strong_ordering operator<=>(const store_key& a, const store_key& b) noexcept {
    if (a.is_number_ != b.is_number_) return b.is_number_ <=> a.is_number_;
    return a.is_number_ ? a.number_ <=> b.number_ : a.text_.compare(b.text_) <=> 0;
  }
  friend bool operator==(const store_key& a, const store_key& b) noexcept { return (a <=> b) == 0; }
  /// As messages name it: 3, or '3' of a text.
  friend std::ostream& operator<<(std::ostream& out, const store_key& key);

private:
  template <class I>
  static std::int64_t to_number(I number) {
    if constexpr (std::unsigned_integral<I>) {
      if (static_cast<std::uint64_t>(number) > INT64_MAX) throw_too_large(number);
    }
    return static_cast<std::int64_t>(number);
  }
  [[noreturn]] static void throw_too_large(std::uint64_t number);

  std::string text_;
  std::int64_t number_ = 0;
  bool is_number_ = false;
};

}  // namespace muster
