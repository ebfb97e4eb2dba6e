// SPDX-License-Identifier: BSL-1.0
#pragma once

// One output of a function: its values of slices are joined in the rank, and those of ranks in the caller. In the rank
// make_own() follows each add() but the last: what was added then may change, since a function may write the next
// slice's value where the one before lies.
//
// Thread safety: distinct objects: safe. Shared objects: unsafe.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/base/detail/float_state.hpp>
#include <muster/device/tensor.hpp>
#include <muster/parallel/detail/kept_blocks.hpp>
#include <muster/parallel/detail/tensor_accumulator.hpp>
#include <muster/parallel/output_op.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/transportable.hpp>

namespace muster::detail {

/// Throws errc::invalid_argument: there were no rows, and the op has no value for none.
[[noreturn]] void throw_no_rows(const value_name& what, output_op op);

/// Numbers are joined in the widest type of their kind.
template <class T>
using wide_sum = std::conditional_t<std::is_floating_point_v<T>, double,
                                    std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

template <class T, output_op Op>
class output_accumulator {
  static_assert(Op == output_op::none || std::is_arithmetic_v<T>,
                "muster: only numbers and tensors can be joined; for values of other types write none(), which gives "
                "those of all ranks");
  static_assert(Op != output_op::gather, "muster: gather joins the rows of tensors; for other values write none()");
  static_assert(Op == output_op::none || !std::is_same_v<T, bool>,
                "muster: a bool cannot be joined: write count_true(), which says how many are, or none(), or return a "
                "number");
};

/// What `what` returns, which computes with T's: the same in every thread (float_state.hpp).
template <class T, class F>
auto computed(const F& what) {
  if constexpr (std::is_same_v<T, long double>) {
    return in_fixed_long_double_state(what);
  } else if constexpr (std::is_floating_point_v<T>) {
    return in_fixed_float_state(what);
  } else {
    return what();
  }
}

/// The mean of numbers, each of which counts as its weight says. Of one it is that one; else their sum divided, unless
/// that is too large for a double, while no mean is.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class weighted_mean {
public:
  /// Requires: weight > 0.
  void add(double value, double weight) noexcept { join(weight * value, value, weight); }
  /// What another one has; as one value, if its mean `counts_once`.
  void merge(const weighted_mean& other, bool counts_once) noexcept;

  [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }
  /// Requires: !is_empty().
  [[nodiscard]] double value() const noexcept;

  /// Of its values only sum and mean go along: who reads it has one, if there are any.
  void write_to(frame_writer& out) const;
  [[nodiscard]] static weighted_mean read_from(frame_reader& in);

private:
  void join(double sum, double mean, double weight) noexcept;

  std::uint64_t count_ = 0;
  double sum_ = 0;
  double weight_ = 0;
  double mean_ = 0;  // of one the value; of several what it is but for its rounding, and never too large
};

template <class T>
concept joinable_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// Averages of integers are floating-point numbers.
template <joinable_number T, output_op Op>
  requires(Op == output_op::avg || Op == output_op::mean_of_ranks)
class output_accumulator<T, Op> {
public:
  using result = std::conditional_t<std::is_floating_point_v<T>, T, double>;
  explicit output_accumulator(const value_name& what) : what_(what) {}

  void add(T value, double weight) {
    computed<result>([&] { mean_.add(static_cast<double>(value), weight); });
  }
  void make_own() noexcept {}
  static constexpr bool is_archived = false;
  void save(frame_writer& out) const {
    in_fixed_float_state([&] { mean_.write_to(out); });
  }
  void merge(frame_reader& in) {
    in_fixed_float_state([&] { mean_.merge(weighted_mean::read_from(in), Op == output_op::mean_of_ranks); });
  }
  [[nodiscard]] result finish() const {
    if (mean_.is_empty()) throw_no_rows(what_, Op);
    return computed<result>([this] { return static_cast<result>(mean_.value()); });
  }

private:
  value_name what_;
  weighted_mean mean_;
};

template <joinable_number T, output_op Op>
  requires(Op == output_op::sum || Op == output_op::prod || Op == output_op::min || Op == output_op::max)
class output_accumulator<T, Op> {
public:
  using result = T;
  explicit output_accumulator(const value_name& what) : what_(what) {}

  void add(T value, double /*weight*/) {
    computed<T>([&] { join(static_cast<wide_sum<T>>(value)); });
  }
  void make_own() noexcept {}
  static constexpr bool is_archived = false;
  void save(frame_writer& out) const {
    out.write(&joined_, sizeof joined_);
    out.write(&some_, sizeof some_);
  }
  void merge(frame_reader& in) {
    wide_sum<T> joined{};
    in.read(&joined, sizeof joined);
    const bool some = *in.take(1) != std::byte{0};
    if (some) computed<T>([&] { join(joined); });
  }
  [[nodiscard]] result finish() const {
    if (!some_ && !has_identity(Op)) throw_no_rows(what_, Op);
    if (!some_) return static_cast<T>(Op == output_op::prod ? 1 : 0);
    return computed<T>([this] { return static_cast<T>(joined_); });
  }

private:
  void join(wide_sum<T> value) {
    if (!std::exchange(some_, true)) {
      joined_ = value;
    } else if constexpr (std::is_floating_point_v<T>) {
      joined_ = Op == output_op::sum    ? joined_ + value
                : Op == output_op::prod ? joined_ * value
                                        : extreme(joined_, value);
    } else {
      using wrapping = std::uint64_t;
      const auto a = static_cast<wrapping>(joined_);
      const auto b = static_cast<wrapping>(value);
      joined_ = Op == output_op::sum    ? static_cast<wide_sum<T>>(a + b)
                : Op == output_op::prod ? static_cast<wide_sum<T>>(a * b)
                                        : extreme(joined_, value);
    }
  }
  // What is not a number is the result, as with tensors.
  static wide_sum<T> extreme(wide_sum<T> a, wide_sum<T> b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    if constexpr (Op == output_op::min) return b < a ? b : a;
    return a < b ? b : a;
  }

  value_name what_;
  bool some_ = false;
  wide_sum<T> joined_{};
};

/// How many are true, or not 0.
template <class T>
  requires std::is_arithmetic_v<T>
class output_accumulator<T, output_op::count_true> {
public:
  using result = std::int64_t;
  explicit output_accumulator(const value_name& /*what*/) {}

  void add(T value, double /*weight*/) {
    computed<T>([&] { count_ += value != T() ? 1 : 0; });
  }
  void make_own() noexcept {}
  static constexpr bool is_archived = false;
  void save(frame_writer& out) const { out.write(&count_, sizeof count_); }
  void merge(frame_reader& in) {
    std::uint64_t more = 0;
    in.read(&more, sizeof more);
    count_ += more;
  }
  [[nodiscard]] result finish() const noexcept { return static_cast<result>(count_); }

private:
  std::uint64_t count_ = 0;
};

/// What cannot lead to the content of another one. Of other types nobody can tell.
template <class T>
inline constexpr bool has_own_content = plain_type<T> || std::is_same_v<T, std::string>;

/// All values, by rank, then by slice. Tensors in them are copied: they may be replicas, or inputs, which change.
template <class T>
class output_accumulator<T, output_op::none> {
public:
  using result = std::vector<T>;
  explicit output_accumulator(const value_name& /*what*/) {}

  void add(T value, double /*weight*/) { all_.push_back(std::move(value)); }
  void make_own() {
    if constexpr (!has_own_content<T>) {
      auto own = with_own_content(all_.back());
      all_.pop_back();
      all_.push_back(std::move(own));
    }
  }
  static constexpr bool is_archived = true;
  void save(frame_writer& out) const {
    const frame_writer::copying content(out);
    static_cast<output_archive&>(out)(all_);
  }
  void merge(frame_reader& in) {
    std::vector<T> more;
    static_cast<input_archive&>(in)(more);
    for (auto&& each : more) all_.push_back(std::move(each));
  }
  [[nodiscard]] result finish() { return std::move(all_); }

private:
  std::vector<T> all_;
};

/// Tensors that are all kept: none and gather.
class tensor_list {
public:
  explicit tensor_list(const value_name& what) : what_(what) {}

  void add(const tensor& value, double weight);
  void make_own();
  static constexpr bool is_archived = false;
  void save(frame_writer& out) const;
  void merge(frame_reader& in);

protected:
  /// As merge(), with memory of their own.
  void merge_copies(frame_reader& in);
  [[nodiscard]] std::vector<tensor> take() noexcept { return std::move(all_); }
  [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
  /// Throws errc::invalid_argument where there are no dimensions, so no rows.
  void require_rows(const tensor& value) const;
  /// Throws errc::invalid_argument for tensors from `first_unknown` on that differ from the first one in more than the
  /// number of their rows, or have none.
  void require_joinable(std::size_t first_unknown) const;
  /// Requires: require_joinable has not thrown for any.
  [[nodiscard]] tensor joined(memory where) const;
  /// Makes one of them, where some are smaller than a piece of shared memory, of which each would take one in the
  /// caller. Requires: likewise.
  void join_small();

private:
  value_name what_;
  std::vector<tensor> all_;
  bool is_last_own_ = true;
};

template <>
class output_accumulator<tensor, output_op::none> : public tensor_list {
public:
  using result = std::vector<tensor>;
  using tensor_list::tensor_list;
  void merge(frame_reader& in) { merge_copies(in); }
  [[nodiscard]] result finish() noexcept { return take(); }
};

template <>
class output_accumulator<tensor, output_op::gather> : public tensor_list {
public:
  using result = tensor;
  using tensor_list::tensor_list;
  /// Throws errc::invalid_argument for a tensor without dimensions, and for one whose rows differ from those before: in
  /// the rank that gave both.
  void add(const tensor& value, double weight) {
    require_rows(value);
    tensor_list::add(value, weight);
    require_joinable(count() - 1);
  }
  /// What is sent stays until this is destroyed: who reads it borrows the memory.
  void save(frame_writer& out) {
    join_small();
    tensor_list::save(out);
  }
  void merge(frame_reader& in) {
    const auto known = count();
    tensor_list::merge(in);
    require_joinable(known);
  }
  [[nodiscard]] result finish() const { return joined(memory::shared); }
};

/// Tensors that become one, element by element.
class tensor_output {
public:
  tensor_output(output_op op, const value_name& what) : op_(op), what_(what), joined_(op, what) {}

  void add(const tensor& value, double weight) { joined_.add(value, weight); }
  void make_own() { joined_.make_own(); }
  static constexpr bool is_archived = false;
  /// What is sent stays until this is destroyed, as with lists: who reads it borrows the memory.
  void save(frame_writer& out);
  void merge(frame_reader& in);
  /// In memory of its own.
  [[nodiscard]] tensor finish() const;

private:
  output_op op_;
  value_name what_;
  tensor_accumulator joined_;
  std::optional<tensor> sent_;
};

template <output_op Op>
  requires(Op != output_op::none && Op != output_op::gather)
class output_accumulator<tensor, Op> : public tensor_output {
public:
  using result = tensor;
  explicit output_accumulator(const value_name& what) : tensor_output(Op, what) {}
};

/// A result of one of these, with a content of its own.
template <class T>
[[nodiscard]] T own_copy(const T& result) {
  return result;
}
[[nodiscard]] inline tensor own_copy(const tensor& result) { return result.clone(); }
[[nodiscard]] std::vector<tensor> own_copy(const std::vector<tensor>& result);
template <class T>
[[nodiscard]] std::vector<T> own_copy(const std::vector<T>& result) {
  if constexpr (has_own_content<T>) {
    return result;
  } else {
    return with_own_content(result);
  }
}

}  // namespace muster::detail
