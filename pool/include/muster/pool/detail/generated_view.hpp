// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <muster/base/detail/range_concepts.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster::detail {

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};

/// What gives one element after the other when it is called, and nothing at the end.
template <class G>
concept generator = !std::ranges::range<G> && std::invocable<G&> && is_optional<std::invoke_result_t<G&>>::value;

/// The elements that a generator gives, as a range that is gone over once.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
template <generator G>
class generated_view : public std::ranges::view_base {
public:
  using element_type = typename std::invoke_result_t<G&>::value_type;

private:
  struct state {
    explicit state(G given) : next(std::move(given)) {}
    void advance() { current = next(); }
    G next;
    std::optional<element_type> current;
  };

public:
  explicit generated_view(G next) : state_(std::make_unique<state>(std::move(next))) {}

  class iterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = element_type;
    using difference_type = std::ptrdiff_t;

    explicit iterator(generated_view& of) : of_(of.state_.get()) { of_->advance(); }
    [[nodiscard]] element_type& operator*() const { return *of_->current; }
    iterator& operator++() {
      of_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& each, std::default_sentinel_t) { return !each.of_->current.has_value(); }

  private:
    state* of_;
  };

  [[nodiscard]] iterator begin() { return iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
  std::unique_ptr<state> state_;  // a callable need not be assignable, but a view must be
};

/// What a stream takes its elements from.
template <class Xs>
concept stream_elements = std::ranges::viewable_range<Xs> || generator<std::remove_cvref_t<Xs>>;

/// What a map over a range gives its callable: the values of its elements, as they are sent.
template <class Xs>
using element_of = sent_as<std::ranges::range_value_t<Xs>>;

/// Those as a range: itself, or what the generator gives.
template <stream_elements Xs>
[[nodiscard]] decltype(auto) as_elements(Xs&& xs) {
  if constexpr (std::ranges::viewable_range<Xs>) {
    return std::forward<Xs>(xs);
  } else {
    return generated_view<std::remove_cvref_t<Xs>>(std::forward<Xs>(xs));
  }
}

}  // namespace muster::detail
