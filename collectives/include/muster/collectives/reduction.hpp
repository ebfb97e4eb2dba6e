// SPDX-License-Identifier: BSL-1.0
#pragma once

// How the elements of several ranks become one: by a sum, by the least of them, by a function of the program's own.
//
// What a reduction gives is fixed to the bit: elements are joined in the order of the ranks, whoever computes, on
// whatever processor, and however the work is cut. Only *which* NaN a sum, average or product is, where it is one, is
// not.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <muster/base/detail/function_type.hpp>
#include <muster/device/dtype.hpp>

namespace muster {

/// What elements are joined by. Stable values: they cross processes.
///
/// Computed in the elements' own type: integers wrap around, f16 and bf16 are computed with as float and rounded once,
/// at the end.
enum class reduction_op : std::uint8_t {
  sum = 0,     ///< of bools: whether any is true; how many are, is the sum of numbers: convert() them
  avg = 1,     ///< the sum, not wrapped around, divided once; integers are truncated towards 0. Not for bools
  prod = 2,    ///< of bools: whether all are true; complex: (ac - bd, ad + bc), whatever is infinite
  min = 3,     ///< the first of equal ones; if any is NaN, the first NaN. Not for complex numbers
  max = 4,     ///< likewise
  band = 5,    ///< bitwise and; for bools and integers, as are the next two
  bor = 6,     ///< bitwise or
  bxor = 7,    ///< bitwise exclusive or
  custom = 8,  ///< a function of the program's own: reduction::custom
};

/// As the enumerator is called. Any other number gives "unknown".
[[nodiscard]] std::string_view reduction_op_name(reduction_op op) noexcept;

/// Prints reduction_op_name.
std::ostream& operator<<(std::ostream& out, reduction_op op);

namespace detail {

/// A function of the program's own, over many elements.
class element_function {
public:
  element_function(std::string name, dtype type) : name_(std::move(name)), type_(type) {}
  element_function(const element_function&) = delete;
  element_function& operator=(const element_function&) = delete;
  virtual ~element_function() = default;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] dtype type() const noexcept { return type_; }

  /// Each of `accumulated` becomes the function of itself and its counterpart in `next`. Throws what the function does.
  virtual void apply(std::byte* accumulated, const std::byte* next, std::size_t count) const = 0;

private:
  std::string name_;
  dtype type_;
};

template <class T, class F>
class element_function_of final : public element_function {
public:
  element_function_of(std::string name, F function)
      : element_function(std::move(name), dtype_of<T>), function_(std::move(function)) {}

  void apply(std::byte* accumulated, const std::byte* next, std::size_t count) const override {
    auto* const results = reinterpret_cast<stored<T>*>(accumulated);
    const auto* const values = reinterpret_cast<const stored<T>*>(next);
    for (std::size_t index = 0; index < count; ++index) {
      results[index] = static_cast<T>(function_(T(results[index]), T(values[index])));
    }
  }

private:
  F function_;
};

}  // namespace detail

/// A reduction_op, or a function of the program's own with its name. All ranks of a call give the same.
///
/// Thread safety: a value; distinct objects: safe, also copies that share a function, which several threads call at
/// once. Shared objects: safe while nobody assigns.
/// Process safety: each process makes its own; they are compared by `fingerprint`.
class reduction {
public:
  /// Throws errc::invalid_argument for reduction_op::custom, which takes a function, and for what is no reduction_op.
  reduction(reduction_op op);

  /// For elements that are T: `function(accumulated, next)`, in the order of the ranks, beginning with the first two's
  /// elements; of one rank, nothing is called. It should be associative, or the order shows in what comes out; it may
  /// throw, which ends the call on the ranks that compute. It runs in the floating-point state of the thread that made
  /// the call, also where the call is asynchronous.
  /// `name` stands for the function: equal names on all ranks promise equal functions. It is part of messages.
  /// Throws errc::invalid_argument for an empty name.
  template <tensor_element T, class F>
    requires std::is_invocable_r_v<T, const F&, T, T>
  [[nodiscard]] static reduction custom(std::string name, F function) {
    return reduction(std::make_shared<const detail::element_function_of<T, F>>(std::move(name), std::move(function)));
  }

  /// Returns what elements are joined by; reduction_op::custom for a function of the program's own.
  [[nodiscard]] reduction_op op() const noexcept { return op_; }

  /// That of the op, or the one the function was given.
  [[nodiscard]] std::string_view name() const noexcept;

  /// Equal on all ranks that made the same reduction, in whatever process: the same op, or the same name of a function
  /// of the same dtype. Different ones differ; two different names do but for chance, 1 in 2^63.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept;

  /// Throws errc::invalid_argument unless elements of dtype `type` can be reduced so; the text names both, and what is
  /// possible.
  void require(dtype type) const;

  /// The function of a custom reduction, null for others: for those who compute.
  [[nodiscard]] const detail::element_function* function() const noexcept { return function_.get(); }

private:
  explicit reduction(std::shared_ptr<const detail::element_function> function);

  reduction_op op_;
  // Shared by the copies: they may be many, and the function large.
  std::shared_ptr<const detail::element_function> function_;
};

}  // namespace muster
