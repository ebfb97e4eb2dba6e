// SPDX-License-Identifier: BSL-1.0
#include <muster/serialize/exception_type.hpp>

#include <functional>
#include <string_view>

#include <muster/base/detail/demangle.hpp>

#include "table_lock.hpp"

namespace muster {

/// The registrations of this process.
///
/// Thread safety: safe.
class exception_type::registry {
public:
  constexpr registry() noexcept = default;

  void add(const exception_type& type) noexcept MUSTER_EXCLUDES(detail::table_mutex) {
    const detail::table_lock lock;
    type.next_ = std::exchange(newest_, &type);
  }

  void remove(const exception_type& type) noexcept MUSTER_EXCLUDES(detail::table_mutex) {
    const detail::table_lock lock;
    if (newest_ == &type) newest_ = type.next_;
    for (const auto* each = newest_; each != nullptr; each = each->next_) {
      if (each->next_ == &type) each->next_ = type.next_;
    }
  }

  template <class Match>
  [[nodiscard]] const exception_type* find(const Match& matches) const noexcept MUSTER_EXCLUDES(detail::table_mutex) {
    const detail::table_lock lock;
    const auto* each = newest_;
    while (each != nullptr && !matches(*each)) each = each->next_;
    return each;
  }

private:
  const exception_type* newest_ MUSTER_GUARDED_BY(detail::table_mutex) = nullptr;
};

namespace {

// In a library without a build-id. Its name tells the type from others then, unless it has internal linkage.
object_token token_of_name(const std::type_info& type) noexcept {
  if (has_internal_linkage(type)) return object_token::none;
  return static_cast<object_token>(std::hash<std::string_view>()(type.name()) | 1U);
}

}  // namespace

// Constant-initialized and never destroyed: it is there before the first registration and after the last.
exception_type::registry& exception_type::registered() noexcept {
  static constinit registry instance;
  return instance;
}

exception_type::~exception_type() { registered().remove(*this); }

void exception_type::enrol() noexcept { registered().add(*this); }

std::string exception_type::name() const { return name_of(type_); }

object_token exception_type::token() const noexcept {
  auto found = token_.load(std::memory_order_relaxed);  // all threads compute the same
  if (found != object_token::none) return found;
  found = token_of(&type_);
  if (found == object_token::none) found = token_of_name(type_);
  token_.store(found, std::memory_order_relaxed);
  return found;
}

// One type may have several type_infos, in as many libraries, and several registrations. That of the very type_info is
// taken first: two builds of one class may be loaded in libraries that do not see each other.
const exception_type* exception_type::find(const std::type_info& type) noexcept {
  const auto* exact = registered().find([&](const exception_type& each) { return &each.type_ == &type; });
  if (exact != nullptr) return exact;
  return registered().find([&](const exception_type& each) { return is_same_type(each.type_, type); });
}

const exception_type* exception_type::find(object_token token) noexcept {
  if (token == object_token::none) return nullptr;
  return registered().find([&](const exception_type& each) { return each.token() == token; });
}

std::string detail::without_additions(const std::string& wanted, const std::string& made) {
  const auto at = made.find(wanted);
  if (at == std::string::npos) return wanted;
  const auto before = std::string_view(made).substr(0, at);
  const auto behind = std::string_view(made).substr(at + wanted.size());
  const bool has_both =
      wanted.size() >= before.size() + behind.size() && wanted.starts_with(before) && wanted.ends_with(behind);
  if (!has_both) return wanted;
  return wanted.substr(before.size(), wanted.size() - before.size() - behind.size());
}

}  // namespace muster
