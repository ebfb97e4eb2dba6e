// SPDX-License-Identifier: BSL-1.0
#pragma once

// Arrays of numbers in up to eight dimensions, whose memory several processes can have at once.
//
// A tensor is a handle: copies, slices and reshaped ones look at the same elements, and a tensor that goes to another
// process goes by reference where its memory is shared. What is encoded: docs/formats/tensor.md.
//
// Elements lie in memory of the host, or of a device, if the program is linked with its library (muster::cuda):
//
//     auto there = images.to(muster::device::cuda(0));                    // copied
//     auto sums = muster::tensor::zeros<float>({10}, muster::device::cuda(0));
//     muster::accumulate(sums, there.row(0));                             // done by the device
//     std::cout << sums.to(muster::device::cpu());

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <muster/base/detail/range_concepts.hpp>
#include <muster/device/detail/tensor_view.hpp>
#include <muster/device/detail/wide_number.hpp>
#include <muster/device/device.hpp>
#include <muster/device/dtype.hpp>
#include <muster/device/storage.hpp>
#include <muster/device/tensor_shape.hpp>

namespace muster {

class frame_reader;
class frame_writer;

namespace detail {

struct placement;

/// Makes what lies there one of C++'s bools: a byte that is neither 0 nor 1, which is true here, becomes 1.
inline void make_bool(void* place) noexcept {
  auto& byte = *static_cast<unsigned char*>(place);
  if (byte > 1) byte = 1;
}

/// Whether it is a byte that is neither 0 nor 1, which is not to be changed where it lies; and what is read for it.
///@{
[[nodiscard]] inline bool is_no_bool(const void* place) noexcept {
  return *static_cast<const unsigned char*>(place) > 1;
}
inline constexpr bool true_element = true;
///@}

/// The same number, also below the least normal one, whatever the thread's floating-point state.
[[nodiscard]] double widened(float value) noexcept;

template <tensor_element T>
[[nodiscard]] wide_number widen(T value) {
  if constexpr (std::is_same_v<T, std::complex<float>>) {
    return std::complex<double>(widened(value.real()), widened(value.imag()));
  } else if constexpr (std::is_same_v<T, std::complex<double>> || std::is_same_v<T, double>) {
    return value;
  } else if constexpr (!std::is_integral_v<T>) {
    return widened(value);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<std::int64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

/// Where a new tensor's elements are to lie.
template <class T>
concept place = std::same_as<T, memory> || std::same_as<T, muster::device>;

/// What can be copied into a tensor in one piece.
template <class R>
concept elements_in_a_row = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                            tensor_element<std::remove_cv_t<std::ranges::range_value_t<R>>>;

}  // namespace detail

/// An array of numbers: a dtype, a shape, strides, and a share in the memory that the elements lie in.
///
/// Elements are in row-major order when they are contiguous. As with a pointer, a const tensor has elements that can be
/// assigned to; one that is read-only (a version of a store, as_read_only()) has none, and neither has what is made of
/// it without a copy, here and in other processes: what would write throws errc::invalid_argument. Members called with
/// what does not fit throw errc::invalid_argument, whose text names what was given and what would fit.
///
/// On a device: what fills, copies, converts or combines elements is given to the device, which does it in that order,
/// and returns at once, except copies to and from the host, which are waited for. Members that give access to elements
/// one by one throw errc::invalid_argument there: call to(device::cpu()) first.
///
/// Bools: every byte but 0 is true, since other libraries and processes may write any; copies have 0 and 1. Pointers,
/// spans and views are to C++'s own bools, which are 0 or 1: where other bytes may have been written, clone() first.
///
/// Numbers are the same whatever floating-point state (rounding, flushing, traps: float_state.hpp) the calling thread
/// has, and calls leave that state as it was.
///
/// Thread safety: distinct objects: safe, also such that look at the same elements; those need their own discipline.
/// Shared objects: unsafe while somebody assigns to one.
/// Process safety: the memory is the same for all processes that have the tensor, as long as one of them has it. In a
/// forked child what reads or writes elements in shared memory throws errc::forked, unless the domain is inherited
/// (domain_options::inherited); elements in memory::local are the child's own.
/// Visibility: what a worker wrote before its task's result was sent is visible to whoever got the result, and what
/// was written before a task was submitted is visible to that task.
/// Lifetime: a tensor keeps its memory, a slice that of the tensor it was cut from. One that was moved from is
/// tensor().
/// Cost: copies, slices and reshaped tensors cost no allocation and touch no element.
class tensor {
public:
  /// How many dimensions a tensor may have: 8.
  static constexpr std::size_t max_dimensions = tensor_shape::most;

  /// No elements: f32 of shape (0,).
  tensor() noexcept : shape_({0}), strides_({1}) {}
  /// Refers to the same elements as the other tensor. Copies no element.
  tensor(const tensor&) = default;
  tensor& operator=(const tensor&) = default;
  /// Takes the elements of `other`, which is tensor() afterwards.
  tensor(tensor&& other) noexcept : tensor() { swap(other); }
  tensor& operator=(tensor&& other) noexcept {
    tensor moved(std::move(other));
    moved.swap(*this);
    return *this;
  }
  ~tensor() = default;

  // ---- making. All throw errc::invalid_argument for a shape of more bytes than there are addresses (a negative
  // number is one), and errc::out_of_memory.

  /// Elements are undefined.
  [[nodiscard]] static tensor empty(muster::dtype type, const tensor_shape& shape, memory where = memory::shared);
  /// Elements are 0, or false.
  [[nodiscard]] static tensor zeros(muster::dtype type, const tensor_shape& shape, memory where = memory::shared);

  /// The same on a device, or in shared memory of the host if that is `where`. Throw errc::no_device, and
  /// errc::out_of_memory with what was asked for and what is free there.
  ///@{
  [[nodiscard]] static tensor empty(muster::dtype type, const tensor_shape& shape, muster::device where);
  [[nodiscard]] static tensor zeros(muster::dtype type, const tensor_shape& shape, muster::device where);
  ///@}

  /// The same for a T: elements are undefined (empty), 0 or false (zeros), `value` (full), or 1 or true (ones). `where`
  /// is a muster::memory or a muster::device.
  ///@{
  template <tensor_element T>
  [[nodiscard]] static tensor empty(const tensor_shape& shape, detail::place auto where) {
    return empty(dtype_of<T>, shape, where);
  }
  template <tensor_element T>
  [[nodiscard]] static tensor zeros(const tensor_shape& shape, detail::place auto where) {
    return zeros(dtype_of<T>, shape, where);
  }
  template <tensor_element T>
  [[nodiscard]] static tensor full(const tensor_shape& shape, T value, detail::place auto where) {
    auto made = empty<T>(shape, where);
    made.fill(value);
    return made;
  }
  template <tensor_element T>
  [[nodiscard]] static tensor ones(const tensor_shape& shape, detail::place auto where) {
    return full<T>(shape, T(1), where);
  }
  ///@}
  /// The same in shared memory of the host.
  ///@{
  template <tensor_element T>
  [[nodiscard]] static tensor empty(const tensor_shape& shape) {
    return empty(dtype_of<T>, shape, memory::shared);
  }
  template <tensor_element T>
  [[nodiscard]] static tensor zeros(const tensor_shape& shape) {
    return zeros(dtype_of<T>, shape, memory::shared);
  }
  template <tensor_element T>
  [[nodiscard]] static tensor full(const tensor_shape& shape, T value) {
    return full<T>(shape, value, memory::shared);
  }
  template <tensor_element T>
  [[nodiscard]] static tensor ones(const tensor_shape& shape) {
    return ones<T>(shape, memory::shared);
  }
  ///@}

  /// first, first + step, …, as long as it is before `last`: of floating-point numbers as double, which is then
  /// rounded. Throws errc::invalid_argument for a step of 0, and for what is not finite.
  template <tensor_element T>
    requires(detail::is_number<T> || std::floating_point<T>)
  [[nodiscard]] static tensor arange(T first, T last, T step = 1, memory where = memory::shared) {
    return arange(dtype_of<T>, detail::widen(first), detail::widen(last), detail::widen(step), where);
  }
  /// 0, 1, …, last - 1.
  template <tensor_element T>
    requires(detail::is_number<T> || std::floating_point<T>)
  [[nodiscard]] static tensor arange(T last) {
    return arange(T(0), last);
  }

  /// A copy of `values`, in row-major order. Throws errc::invalid_argument unless there are as many as the shape says.
  ///@{
  template <detail::elements_in_a_row Values>
  [[nodiscard]] static tensor from(const Values& values, const tensor_shape& shape, memory where = memory::shared) {
    using element = std::remove_cv_t<std::ranges::range_value_t<Values>>;
    return from(dtype_of<element>, std::as_bytes(std::span<const element>(values)), shape, where);
  }
  template <tensor_element T>
  [[nodiscard]] static tensor from(std::initializer_list<T> values, const tensor_shape& shape,
                                   memory where = memory::shared) {
    return from(std::span<const T>(values.begin(), values.size()), shape, where);
  }
  ///@}
  /// Of one dimension.
  template <detail::elements_in_a_row Values>
  [[nodiscard]] static tensor from(const Values& values) {
    return from(values, {std::ranges::size(values)});
  }

  /// A tensor of elements that are there already, the first of them `offset_bytes` into `bytes`. Strides are counted in
  /// elements and may be 0 or negative; without strides the elements are contiguous.
  /// Throws errc::invalid_argument when an element would lie outside of `bytes`, or at an address that does not suit
  /// its type.
  ///@{
  [[nodiscard]] static tensor over(std::shared_ptr<const muster::storage> bytes, muster::dtype type,
                                   const tensor_shape& shape, std::size_t offset_bytes = 0);
  [[nodiscard]] static tensor over(std::shared_ptr<const muster::storage> bytes, muster::dtype type,
                                   const tensor_shape& shape, const tensor_strides& strides, std::size_t offset_bytes);
  ///@}

  // ---- what it is

  /// Returns the type of all elements.
  [[nodiscard]] muster::dtype dtype() const noexcept { return type_; }
  /// Returns the sizes of the dimensions, the outermost first.
  [[nodiscard]] const tensor_shape& shape() const noexcept { return shape_; }
  /// Returns, by dimension, how many elements further in memory the next one along it is.
  [[nodiscard]] const tensor_strides& strides() const noexcept { return strides_; }
  /// Returns how many dimensions there are, from 0 to max_dimensions.
  [[nodiscard]] std::size_t dimensions() const noexcept { return shape_.size(); }
  /// How many elements.
  [[nodiscard]] std::size_t size() const noexcept;
  /// What the elements take when they are contiguous.
  [[nodiscard]] std::size_t nbytes() const noexcept { return size() * dtype_size(type_); }
  /// The size of the first dimension. Throws errc::invalid_argument where there is none.
  [[nodiscard]] std::size_t rows() const;
  /// Returns whether the elements lie in row-major order without gaps; true where there are none.
  [[nodiscard]] bool is_contiguous() const noexcept;
  /// Whose memory the elements lie in, as this process calls it. Of a tensor on a GPU that came from another process,
  /// the first time may take some tenths of a second: the driver is asked, and no context made.
  [[nodiscard]] muster::device device() const noexcept;
  /// Whether it goes to other processes by reference.
  [[nodiscard]] bool is_shared() const noexcept;
  /// Whether its elements cannot be written through it: ask for `const T`, or clone() it.
  [[nodiscard]] bool is_read_only() const noexcept { return (limits_ & read_only) != 0; }
  /// Throws errc::invalid_argument where it is.
  void require_writable() const {
    if (is_read_only()) refuse_writing();
  }
  /// The memory; it may be null where there are no elements.
  [[nodiscard]] const std::shared_ptr<const muster::storage>& storage() const noexcept { return storage_; }

  // ---- the elements. Those with a T throw errc::invalid_argument unless T is the dtype's type, all of them where the
  // elements are on a device, and where the tensor is read-only and T is not const.

  /// The first element; without a T, whatever its type. The others are where the strides say.
  ///@{
  [[nodiscard]] std::byte* data() const {
    if (limits_ != 0 || !stamp_.is_here()) refuse_access();
    return data_;
  }
  [[nodiscard]] const std::byte* const_data() const {
    if (is_on_device() || !stamp_.is_here()) refuse_access();
    return data_;
  }
  template <tensor_element T>
  [[nodiscard]] T* data() const {
    require(dtype_of<T>);
    if constexpr (std::is_const_v<T>)
      return reinterpret_cast<T*>(const_data());
    else
      return reinterpret_cast<T*>(data());
  }
  ///@}
  /// On a device: where that has the first element, for kernels of the program's own. Throws errc::invalid_argument on
  /// the host. A tensor that came from another process is mapped by the first call. The address alone is not guarded.
  ///@{
  template <tensor_element T>
  [[nodiscard]] T* device_data() const {
    require(dtype_of<T>);
    if constexpr (!std::is_const_v<T>) require_writable();
    return reinterpret_cast<T*>(device_address());  // NOLINT(performance-no-int-to-ptr): the device's, not ours
  }
  [[nodiscard]] std::uintptr_t device_address() const;
  ///@}
  /// All elements. Throws errc::invalid_argument unless they are contiguous.
  template <tensor_element T>
  [[nodiscard]] std::span<T> span() const {
    auto* const first = data<T>();
    require_contiguous();
    return {first, size()};
  }
  /// Throws errc::invalid_argument unless there are N dimensions.
  template <tensor_element T, std::size_t N>
  [[nodiscard]] tensor_view<T, N> view() const;
  /// One element. Throws errc::invalid_argument for an index out of range, and unless there is one for each dimension.
  /// A bool whose byte is neither 0 nor 1 becomes true first, as C++ has it; so with item(). Of a `const bool` it stays
  /// as it is, and true is read.
  template <tensor_element T, std::convertible_to<std::size_t>... Index>
  [[nodiscard]] T& at(Index... index) const {
    auto* const first = data<T>();
    return usable(first + offset_of({static_cast<std::size_t>(index)...}));
  }
  /// The element of a tensor that has only one, in however many dimensions.
  template <tensor_element T>
  [[nodiscard]] T& item() const {
    auto* const first = data<T>();
    require_one_element();
    return usable(first);
  }

  // ---- other tensors of the same elements

  /// Those from `first` to before `last` along a dimension, or every `step`-th of them. Throws errc::invalid_argument
  /// unless the dimension is there, first <= last <= its size, and step is not 0.
  [[nodiscard]] tensor slice(std::size_t first, std::size_t last, std::size_t dimension = 0,
                             std::size_t step = 1) const;
  /// The dimensions in another order: that which was number order[0] comes first, and so on. Throws
  /// errc::invalid_argument unless each is named once.
  [[nodiscard]] tensor permute(const tensor_shape& order) const;
  /// In the opposite order: of a matrix, the transposed one.
  [[nodiscard]] tensor transpose() const;
  /// Without the first dimension: what is at `index` of it.
  [[nodiscard]] tensor row(std::size_t index) const;
  /// The same elements in another shape. Throws errc::invalid_argument unless that has as many, and unless they are
  /// contiguous.
  [[nodiscard]] tensor reshape(const tensor_shape& shape) const;
  /// The same elements in a larger shape, as NumPy's broadcast_to: the last dimensions stand below one another, those
  /// of one element are repeated, and so is the whole along dimensions that are new. Repeated elements are the same
  /// ones, with a stride of 0: who writes one writes all. Throws errc::invalid_argument for any other shape.
  [[nodiscard]] tensor broadcast_to(const tensor_shape& shape) const;
  /// Itself if it is contiguous, else a clone.
  [[nodiscard]] tensor contiguous() const;
  /// The same elements, which cannot be written through it.
  [[nodiscard]] tensor as_read_only() const;
  /// Itself if it is there already, else a contiguous copy there. Throws errc::no_device where there is none, or the
  /// program is not linked with its library.
  [[nodiscard]] tensor to(muster::device where) const;
  /// A contiguous copy in memory of its own; of a tensor on a device, on that device.
  [[nodiscard]] tensor clone(memory where = memory::shared) const;

  // ---- writing and reading many elements

  /// Sets every element. The value may be of another type if the dtype can hold it: floating-point numbers are rounded,
  /// all else must be the same number; otherwise throws errc::invalid_argument.
  template <tensor_element T>
  void fill(T value) const {
    fill(detail::widen(value));
  }
  /// Throws errc::invalid_argument unless dtypes and shapes are the same. Both may overlap: then the elements become
  /// what those of `other` were before (where one of them is strided, by way of a copy; throws errc::out_of_memory).
  void copy_from(const tensor& other) const;
  /// In row-major order. Throws errc::invalid_argument unless there are as many values as elements.
  template <detail::elements_in_a_row Values>
  void copy_from(const Values& values) const;
  /// Writes all elements into `room`, in row-major order, also those on a device. Throws errc::invalid_argument unless
  /// T is the dtype's type and there are as many places as elements.
  template <tensor_element T>
  void copy_to(std::span<T> room) const;
  /// Returns all elements in row-major order, also those on a device. Throws errc::invalid_argument unless T is the
  /// dtype's type.
  template <tensor_element T>
  [[nodiscard]] std::vector<T> to_vector() const;

  /// docs/formats/tensor.md. Reading throws errc::corrupted for what no tensor's encoding can be.
  ///@{
  void write_to(frame_writer& out) const;
  [[nodiscard]] static tensor read_from(frame_reader& in);
  ///@}
  /// For cereal, the same.
  ///@{
  void save(frame_writer& out) const { write_to(out); }
  void load(frame_reader& in) { *this = read_from(in); }
  ///@}

private:
  static constexpr std::uint8_t on_device = 1;
  static constexpr std::uint8_t read_only = 2;

  /// Requires: the elements fit there.
  tensor(std::shared_ptr<const muster::storage> bytes, const detail::placement& where) noexcept;

  static tensor arange(muster::dtype type, const detail::wide_number& first, const detail::wide_number& last,
                       const detail::wide_number& step, memory where);
  static tensor from(muster::dtype type, std::span<const std::byte> values, const tensor_shape& shape, memory where);

  void swap(tensor& other) noexcept {
    storage_.swap(other.storage_);
    std::swap(data_, other.data_);
    std::swap(shape_, other.shape_);
    std::swap(strides_, other.strides_);
    std::swap(type_, other.type_);
    std::swap(limits_, other.limits_);
    std::swap(stamp_, other.stamp_);
  }
  template <class T>
  static T& usable(T* element) noexcept {
    if constexpr (std::is_same_v<T, bool>) detail::make_bool(element);
    if constexpr (std::is_same_v<T, const bool>) {
      if (detail::is_no_bool(element)) return detail::true_element;
    }
    return *element;
  }
  [[nodiscard]] static std::uint8_t limits_of(const muster::storage* bytes) noexcept;
  [[nodiscard]] bool is_on_device() const noexcept { return (limits_ & on_device) != 0; }
  [[noreturn]] void refuse_access() const;
  [[noreturn]] void refuse_writing() const;
  void require(muster::dtype asked) const;
  void require_contiguous() const;
  void require_one_element() const;
  void require_dimensions(std::size_t count) const;
  [[nodiscard]] std::ptrdiff_t offset_of(std::initializer_list<std::size_t> index) const;
  void fill(const detail::wide_number& value) const;
  void read(std::span<const std::byte> values) const;
  void write(std::span<std::byte> room) const;

  std::shared_ptr<const muster::storage> storage_;
  std::byte* data_ = nullptr;
  tensor_shape shape_;
  tensor_strides strides_;
  muster::dtype type_ = muster::dtype::f32;
  std::uint8_t limits_ = 0;
  fork_stamp stamp_;
};

template <tensor_element T, std::size_t N>
tensor_view<T, N> tensor::view() const {
  auto* const first = data<T>();
  require_dimensions(N);
  std::array<std::size_t, N> sizes{};
  std::array<std::ptrdiff_t, N> strides{};
  std::copy(shape_.begin(), shape_.end(), sizes.begin());
  std::copy(strides_.begin(), strides_.end(), strides.begin());
  return {first, sizes, strides};
}

template <detail::elements_in_a_row Values>
void tensor::copy_from(const Values& values) const {
  using element = std::remove_cv_t<std::ranges::range_value_t<Values>>;
  require(dtype_of<element>);
  read(std::as_bytes(std::span<const element>(values)));
}

template <tensor_element T>
void tensor::copy_to(std::span<T> room) const {
  require(dtype_of<T>);
  write(std::as_writable_bytes(room));
}

template <tensor_element T>
std::vector<T> tensor::to_vector() const {
  require(dtype_of<T>);
  using byte_or_element =
      std::conditional_t<std::same_as<T, bool>, std::uint8_t, T>;  // vector<bool> has no memory of bools
  std::vector<byte_or_element> values(size());
  write(std::as_writable_bytes(std::span<byte_or_element>(values)));
  if constexpr (std::same_as<T, bool>)
    return {values.begin(), values.end()};
  else
    return values;
}

}  // namespace muster
