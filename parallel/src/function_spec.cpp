// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/function_spec.hpp>
#include <muster/parallel/detail/value_name.hpp>

#include <algorithm>
#include <ostream>

namespace muster::detail {

bool function_spec::has_sliceable() const noexcept {
  return std::ranges::any_of(variables, [](const variable_use& each) { return each.is_sliceable; });
}

bool function_spec::has_rows() const noexcept { return !rows.empty() || has_sliceable(); }

bool function_spec::is_reduced() const noexcept {
  return std::ranges::any_of(updates, [](const update_spec& each) { return each.kind == update_kind::reduced_into; });
}

std::ostream& operator<<(std::ostream& out, const value_name& name) {
  if (name.spec_ == nullptr) return out << name.text_;
  if (name.kind_ == value_name::kind::update) {
    return out << "the value of update " << name.index_ << " of function '" << name.spec_->name << '\'';
  }
  const auto& called = name.spec_->outputs[name.index_].name;
  out << "output " << name.index_;
  if (!called.empty()) out << " ('" << called << "')";
  return out << " of function '" << name.spec_->name << '\'';
}

}  // namespace muster::detail
