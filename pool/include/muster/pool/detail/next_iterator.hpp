// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// The iterator of what gives one value after the other by `next()`, and nothing at the end: for range-for. It takes
/// the first when it is made.
///
/// Thread safety: as what it is of, which it borrows.
template <class From>
class next_iterator {
public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = typename From::value_type;
  using difference_type = std::ptrdiff_t;

  next_iterator() = default;
  explicit next_iterator(From& from) : from_(&from), current_(from.next()) {}
  [[nodiscard]] value_type& operator*() const { return *current_; }
  next_iterator& operator++() {
    current_ = from_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const next_iterator& each, std::default_sentinel_t) { return !each.current_.has_value(); }

private:
  From* from_ = nullptr;
  mutable std::optional<value_type> current_;
};

}  // namespace muster::detail
