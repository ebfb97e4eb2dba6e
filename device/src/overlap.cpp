// SPDX-License-Identifier: BSL-1.0
#include <muster/device/overlap.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>

#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>

namespace muster {

namespace {

// ---- sums

using integer = std::int64_t;  // of addresses and what they differ by: all of a process's are less than 2^57

// `step` times 0 to `most`.
struct term {
  integer step = 0;
  integer most = 0;
};

// Terms of two tensors.
struct term_list {
  std::array<term, 2 * tensor::max_dimensions> each;
  std::size_t count = 0;

  void add(term what) noexcept {
    if (what.step != 0 && what.most != 0) each[count++] = what;
  }
  [[nodiscard]] std::span<const term> all() const noexcept { return {each.data(), count}; }
};

integer sum_of_most(std::span<const term> terms) noexcept {
  return std::accumulate(terms.begin(), terms.end(), integer{0},
                         [](integer sum, const term& each) { return sum + each.step * each.most; });
}

// Rounded up, of a positive divisor.
integer quotient_above(integer number, integer divisor) noexcept {
  return number / divisor + (number % divisor > 0 ? 1 : 0);
}

/// Whether a sum of terms is in a range. From the largest step on: of strides that contain one another one number is
/// possible for each, or two.
///
/// Thread safety: belongs to one thread.
class sum_search {
public:
  /// True also when it would take too long to say no.
  static bool is_possible(term_list terms, integer first, integer last) noexcept {
    const std::span all(terms.each.data(), terms.count);
    std::ranges::sort(all, std::greater<>(), &term::step);
    return sum_search().search(all, first, last);
  }

private:
  bool search(std::span<const term> terms, integer first, integer last) noexcept {
    if (last < 0 || first > sum_of_most(terms)) return false;
    if (first <= 0) return true;
    const auto& [step, most] = terms.front();
    const auto rest = terms.subspan(1);
    const auto least = std::max<integer>(0, quotient_above(first - sum_of_most(rest), step));
    const auto greatest = std::min(most, last / step);
    constexpr integer few = 4;
    if (greatest - least > few && !has_multiple(terms, first, last)) return false;
    for (auto times = greatest; times >= least; --times) {
      if (++steps_ > most_steps) return true;
      if (search(rest, first - times * step, last - times * step)) return true;
    }
    return false;
  }

  // Of what all steps are multiples of.
  static bool has_multiple(std::span<const term> terms, integer first, integer last) noexcept {
    const auto common = std::accumulate(terms.begin(), terms.end(), integer{0},
                                        [](integer divisor, const term& each) { return std::gcd(divisor, each.step); });
    return common != 0 && quotient_above(first, common) * common <= last;
  }

  static constexpr int most_steps = 16'384;
  int steps_ = 0;
};

// ---- elements as such sums

/// Bytes: `first`, and further ones at the terms' steps; at each of these places `run` of them.
struct byte_set {
  integer first = 0;
  integer run = 0;
  term_list terms;

  [[nodiscard]] integer last() const noexcept { return first + sum_of_most(terms.all()) + run; }
};

integer address_of(const tensor& which) {
  return static_cast<integer>(which.device().is_cpu() ? reinterpret_cast<std::uintptr_t>(which.const_data())
                                                      : which.device_address());
}

byte_set bytes_of(const tensor& which) {
  byte_set found{.first = address_of(which), .run = static_cast<integer>(dtype_size(which.dtype())), .terms = {}};
  if (which.is_contiguous()) {
    found.run = static_cast<integer>(which.nbytes());
    return found;
  }
  for (std::size_t dimension = 0; dimension < which.dimensions(); ++dimension) {
    const auto step = which.strides()[dimension] * found.run;
    const auto most = static_cast<integer>(which.shape()[dimension]) - 1;
    if (step < 0) found.first += step * most;
    found.terms.add({.step = std::abs(step), .most = most});
  }
  return found;
}

bool are_in_one_memory(const tensor& a, const tensor& b) {
  if (a.size() == 0 || b.size() == 0 || a.device() != b.device()) return false;
  if (!a.device().is_cpu() || a.storage() == b.storage()) return true;
  const auto one = a.storage()->bytes();
  const auto other = b.storage()->bytes();
  const std::less<> before;
  return before(one.data(), other.data() + other.size()) && before(other.data(), one.data() + one.size());
}

bool are_counterparts(const tensor& a, const tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || address_of(a) != address_of(b)) return false;
  for (std::size_t dimension = 0; dimension < a.dimensions(); ++dimension) {
    if (a.shape()[dimension] > 1 && a.strides()[dimension] != b.strides()[dimension]) return false;
  }
  return true;
}

// A place of one is less than a run away from one of the other: the difference of two sums is in a range. Counted from
// the other's last place, the difference is a sum itself.
bool share_a_byte(const byte_set& a, const byte_set& b) noexcept {
  if (a.last() <= b.first || b.last() <= a.first) return false;
  if (a.terms.count == 0 && b.terms.count == 0) return true;
  auto terms = a.terms;
  for (const auto& each : b.terms.all()) terms.add(each);
  const auto from = b.first + sum_of_most(b.terms.all()) - a.first;
  return sum_search::is_possible(terms, from - (a.run - 1), from + (b.run - 1));
}

}  // namespace

overlap overlap_of(const tensor& a, const tensor& b) {
  if (!are_in_one_memory(a, b)) return overlap::none;
  if (are_counterparts(a, b)) return overlap::same;
  return share_a_byte(bytes_of(a), bytes_of(b)) ? overlap::partial : overlap::none;
}

// Two places are one where a sum of steps is 0, each taken as often forwards or backwards as the dimension is long. Of
// the dimensions that are used at all the one with the largest step is used forwards.
bool repeats_elements(const tensor& which) {
  if (which.size() < 2 || which.is_contiguous()) return false;
  term_list smaller;
  for (std::size_t dimension = 0; dimension < which.dimensions(); ++dimension) {
    const auto most = static_cast<integer>(which.shape()[dimension]) - 1;
    if (most == 0) continue;
    if (which.strides()[dimension] == 0) return true;
    smaller.add({.step = std::abs(which.strides()[dimension]), .most = most});
  }
  const std::span all(smaller.each.data(), smaller.count);
  std::ranges::sort(all, std::less<>(), &term::step);
  for (std::size_t index = 1; index < all.size(); ++index) {
    const auto reach = sum_of_most(all.first(index));
    if (all[index].step > reach) continue;
    term_list both_ways;
    for (const auto& each : all.first(index)) both_ways.add({.step = each.step, .most = 2 * each.most});
    both_ways.add({.step = all[index].step, .most = all[index].most - 1});
    const auto wanted = reach - all[index].step;
    if (sum_search::is_possible(both_ways, wanted, wanted)) return true;
  }
  return false;
}

namespace {

std::size_t rows_of(const tensor& which) { return which.dimensions() == 0 ? 1 : which.shape()[0]; }

bool have_like_rows(const tensor& a, const tensor& b) {
  for (std::size_t dimension = 1; dimension < a.dimensions(); ++dimension) {
    if (a.shape()[dimension] > 1 && a.strides()[dimension] != b.strides()[dimension]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::size_t> first_row_in(const tensor& whole, const tensor& part) {
  if (!are_in_one_memory(whole, part) || !have_like_rows(whole, part)) return std::nullopt;
  const auto rows = rows_of(whole);
  const auto wanted = rows_of(part);
  const auto way = address_of(part) - address_of(whole);
  if (rows == 1) return way == 0 && wanted == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  const auto step = whole.strides()[0] * static_cast<integer>(dtype_size(whole.dtype()));
  if (step == 0 || way % step != 0 || way / step < 0) return std::nullopt;
  const auto row = static_cast<std::size_t>(way / step);
  const bool goes_on_alike = wanted == 1 || part.strides()[0] == whole.strides()[0];
  return goes_on_alike && row < rows && wanted <= rows - row ? std::optional(row) : std::nullopt;
}

address_range range_of(const tensor& which) {
  const auto found = bytes_of(which);
  return {.first = static_cast<std::uint64_t>(found.first), .last = static_cast<std::uint64_t>(found.last())};
}

// ---- texts

namespace {

std::string form_of(std::string_view name, const tensor& which) {
  detail::text_writer out;
  out << name << ", " << which.dtype() << ' ' << which.shape();
  if (!which.is_contiguous()) out << " with strides " << which.strides();
  return std::move(out).str();
}

integer memory_of(const tensor& which) {
  return which.device().is_cpu()
             ? static_cast<integer>(reinterpret_cast<std::uintptr_t>(which.storage()->bytes().data()))
             : static_cast<integer>(which.storage()->on_device()->address());
}

}  // namespace

std::string describe_overlap(std::string_view name, const tensor& which, std::string_view other_name,
                             const tensor& other) {
  const auto from = std::min(memory_of(which), memory_of(other));
  const auto one = bytes_of(which);
  const auto another = bytes_of(other);
  return text(form_of(name, which), ", lies at bytes ", one.first - from, " to ", one.last() - from, ", and ",
              form_of(other_name, other), ", at bytes ", another.first - from, " to ", another.last() - from,
              " of the same memory");
}

std::string describe_repetition(std::string_view name, const tensor& which) {
  return form_of(name, which) + ", has several elements in one place";
}

detail::apart_source::apart_source(const tensor& to, const tensor& from) : from_(from) {
  if (overlap_of(to, from) == overlap::partial) copy_ = from.clone(memory::local);
}

}  // namespace muster
