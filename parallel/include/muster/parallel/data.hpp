// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the inputs of calls are kept in: an array in shared memory, with room to grow.

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <muster/base/detail/range_concepts.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

/// What a data is made with. Its dtype and number of dimensions are fixed for life, so both must follow from these.
///
///     muster::data x({.value = images, .minibatch = true, .name = "x"});
///     muster::data y({.type = muster::dtype::i32, .dimensions = 1, .name = "y"});
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct data_options {
  /// Copied. Its dtype is the data's unless there is a type; its shape wins over dimensions and shape.
  std::optional<tensor> value{};
  /// Its dtype; needed unless there is a value.
  std::optional<muster::dtype> type{};
  /// How many dimensions; needed unless there is a value or a shape.
  std::optional<std::size_t> dimensions{};
  /// Zeros of this shape.
  std::optional<tensor_shape> shape{};
  /// Whether it holds just the rows that a call selects, in the call's order (run_options::batch), and no others.
  bool minibatch = false;
  /// As in value_options, for the value.
  bool force_cast = false;
  /// As in value_options, for the value or the shape.
  double oversize = 1.0;
  /// What messages call it.
  std::string name{};
};

/// How a value is put into a data.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct value_options {
  /// Also take a value of a dtype that has numbers which the data's has not: they are converted as in convert_into.
  bool force_cast = false;
  /// Where memory must be allocated, that for so many times the elements, rounded down: from 1 to 2.
  double oversize = 1.0;
};

/// An array in shared memory that stays when its shape changes, as long as it fits: feeding a call with one batch after
/// another allocates once. To functions goes `value()`, by reference.
///
/// A data owns its memory alone and so can be moved but not copied: copies that share elements would go apart at the
/// first change of shape, and others would copy gigabytes unseen. Who wants to share elements takes a tensor, who wants
/// another array makes one of that. As with a tensor, a const data has elements that can be assigned to; what it keeps
/// is the shape. Members called with what does not fit throw errc::invalid_argument, whose text names the data, what
/// was given and what would fit; those that allocate throw errc::out_of_memory. Where one throws, nothing has changed.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe while one thread changes value or shape.
/// Process safety: lives in one process; the elements are the same for all that have a tensor of them. Nobody may
/// change them while a call that was given them runs. Lifetime: the memory is released with the data, or when it is
/// replaced, and the last tensor of it: a tensor that was taken before keeps the old memory as it is, and does not see
/// what is written later. One that has been moved from may be assigned to or destroyed. Cost: replacing the memory has
/// the old and the new at once; call free_memory first where that is too much.
class data {
public:
  /// Throws errc::invalid_argument, also where dtype or number of dimensions is missing, or given twice and differs.
  explicit data(const data_options& options);
  /// Takes over the memory. The other data may then only be assigned to or destroyed.
  data(data&&) noexcept = default;
  data& operator=(data&&) noexcept = default;

  // ---- what it is

  /// Returns the type of the elements, which never changes.
  [[nodiscard]] muster::dtype dtype() const noexcept { return memory_.dtype(); }
  /// Returns how many dimensions there are, which never changes.
  [[nodiscard]] std::size_t dimensions() const noexcept { return shape_.size(); }
  /// Returns what messages call it: data_options::name.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Returns whether it holds just the rows that a call selects: data_options::minibatch.
  [[nodiscard]] bool minibatch() const noexcept { return minibatch_; }
  /// All 0 at first.
  [[nodiscard]] const tensor_shape& shape() const noexcept { return shape_; }
  /// How many elements there are; 0 for one without dimensions that has no value yet.
  [[nodiscard]] std::size_t size() const noexcept;
  /// The size of the first dimension. Throws errc::invalid_argument where there is none.
  [[nodiscard]] std::size_t rows() const;
  /// How many elements there is memory for.
  [[nodiscard]] std::size_t alloc_size() const noexcept { return memory_.size(); }

  // ---- changing value and shape. Memory is allocated only for more elements than alloc_size() says; it never shrinks,
  // except by free_memory. An oversize that is not from 1 to 2 is refused whether it is used or not.

  /// Takes the elements and the shape of `value`, of as many dimensions. A dtype other than the data's is converted if
  /// is_lossless says so, or by force. The value may lie in the data's own memory.
  /// Cost: one pass; one allocation where it does not fit.
  void set_value(const tensor& value, value_options options = {});
  /// The same, of elements in row-major order. Throws errc::invalid_argument unless there are as many as the shape
  /// says.
  template <detail::elements_in_a_row Values>
  void set_value(const Values& values, const tensor_shape& shape, value_options options = {}) {
    using element = std::remove_cv_t<std::ranges::range_value_t<Values>>;
    set_value(dtype_of<element>, std::as_bytes(std::span<const element>(values)), shape, options);
  }
  /// Of one dimension.
  template <detail::elements_in_a_row Values>
  void set_value(const Values& values) {
    set_value(values, {std::ranges::size(values)});
  }
  /// The same, for a data without dimensions. The number may be of any type, as with tensor::fill.
  template <tensor_element T>
  void set_value(T number) {
    auto made = tensor::empty(dtype(), {}, memory::local);
    made.fill(number);
    set_value(made);
  }

  /// Keeps the rows that are in the old and the new length; more rows are 0.
  void set_length(std::size_t length, double oversize = 1.0);
  /// Of as many dimensions. Keeps rows as set_length does where only the first dimension changes; where another one
  /// changes keeps nothing: all elements are 0.
  void set_shape(const tensor_shape& shape, double oversize = 1.0);
  /// Gives the memory up: there are no rows then, of the shape as before, or no value where there are no dimensions.
  void free_memory();

  /// What set_value would store: a tensor of the data's dtype. It is `value` itself where nothing is to be converted,
  /// and not in the data's memory. Throws as set_value does.
  [[nodiscard]] tensor condition_data(const tensor& value, bool force_cast = false) const;

  // ---- the elements

  /// All of them: exactly the shape, in the same memory. Throws errc::invalid_argument for a data without dimensions
  /// that has no value. Cost: no allocation.
  [[nodiscard]] tensor value() const;
  /// Rows and elements of value(), which throw as value() and as the members of tensor do. A reference is valid until
  /// the memory is replaced.
  ///@{
  [[nodiscard]] tensor row(std::size_t index) const { return value().row(index); }
  [[nodiscard]] tensor operator[](std::size_t index) const { return row(index); }
  [[nodiscard]] tensor slice(std::size_t first, std::size_t last) const { return value().slice(first, last); }
  template <tensor_element T, std::convertible_to<std::size_t>... Index>
  [[nodiscard]] T& at(Index... index) const {
    // The reference outlives the tensor: the data has the memory.
    return value().at<T>(index...);
  }
  ///@}

  /// Sets rows from `first` on. Throws errc::invalid_argument unless they are there, and for a dtype as set_value does.
  void set_rows(std::size_t first, const tensor& rows, bool force_cast = false) const;
  /// As tensor::fill, of one row or of all elements.
  ///@{
  template <tensor_element T>
  void fill_row(std::size_t index, T number) const {
    row(index).fill(number);
  }
  template <tensor_element T>
  void fill(T number) const {
    value().fill(number);
  }
  ///@}

private:
  void set_value(muster::dtype type, std::span<const std::byte> values, const tensor_shape& shape,
                 value_options options);

  [[nodiscard]] tensor memory_for(const tensor_shape& shape, double oversize) const;
  [[nodiscard]] std::size_t kept_in(const tensor_shape& shape) const;

  std::string name_;
  bool minibatch_ = false;
  tensor_shape shape_;
  // All that was allocated, in one dimension.
  tensor memory_;
};

}  // namespace muster
