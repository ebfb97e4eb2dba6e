// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/error_code.hpp>

#include <array>
#include <future>
#include <ios>
#include <utility>

#include <muster/base/error.hpp>

#include "category_registry.hpp"
#include "stand_in_category.hpp"

namespace muster {

namespace {

// Constant-initialized and never destroyed: it is there before the first registration and after the last.
constinit category_registry registered_categories;

using kind = detail::encoded_code::kind;

struct known_category {
  kind number;
  const std::error_category& category;
};

std::array<known_category, 5> known_categories() {
  return {{{kind::generic, std::generic_category()},
           {kind::system, std::system_category()},
           {kind::iostream, std::iostream_category()},
           {kind::future, std::future_category()},
           {kind::muster, error_category()}}};
}

kind kind_of(const std::error_category& category) {
  for (const auto& each : known_categories()) {
    if (each.category == category) return each.number;
  }
  return kind::other;
}

// A stand-in is sent as its original.
object_token token_of_category(const std::error_category& category) {
  const auto* stand_in = dynamic_cast<const stand_in_category*>(&category);
  return stand_in != nullptr ? stand_in->token() : token_of(&category);
}

template <class Code>
detail::encoded_code encode_any(const Code& code) {
  detail::encoded_code encoded{.category = kind_of(code.category()), .value = code.value()};
  if (encoded.category == kind::other) {
    encoded.token = token_of_category(code.category());
    encoded.name = code.category().name();
    encoded.text = code.message();
  }
  return encoded;
}

}  // namespace

registered_category::registered_category(const std::error_category& category) noexcept : category_(&category) {
  registered_categories.add(*this);
}

registered_category::~registered_category() { registered_categories.remove(*this); }

void category_registry::add(registered_category& category) noexcept {
  const detail::table_lock lock;
  category.next_ = std::exchange(newest_, &category);
}

void category_registry::remove(const registered_category& category) noexcept {
  const detail::table_lock lock;
  if (newest_ == &category) newest_ = category.next_;
  for (const auto* each = newest_; each != nullptr; each = each->next_) {
    if (each->next_ == &category) each->next_ = category.next_;
  }
}

const std::error_category* category_registry::find(object_token token, const std::string& name) const noexcept {
  const detail::table_lock lock;
  const std::error_category* of_name = nullptr;
  bool is_ambiguous = false;
  for (const auto* each = newest_; each != nullptr; each = each->next_) {
    const auto& category = *each->category_;
    if (name != category.name()) continue;
    const auto its_token = token_of(&category);
    if (token != object_token::none && its_token == token) return &category;
    if (token != object_token::none && its_token != object_token::none) continue;
    is_ambiguous |= of_name != nullptr && *of_name != category;
    of_name = &category;
  }
  return is_ambiguous ? nullptr : of_name;
}

detail::encoded_code detail::encode(const std::error_code& code) { return encode_any(code); }
detail::encoded_code detail::encode(const std::error_condition& condition) { return encode_any(condition); }

const std::error_category& detail::category_of(const encoded_code& code) {
  for (const auto& each : known_categories()) {
    if (each.number == code.category) return each.category;
  }
  if (const auto* known = registered_categories.find(code.token, code.name)) return *known;
  auto& stand_in = stand_in_categories::of_this_process().get(code.token, code.name);
  stand_in.keep_text(code.value, code.text);
  return stand_in;
}

}  // namespace muster
