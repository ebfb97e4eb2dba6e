// SPDX-License-Identifier: BSL-1.0
// The encoded form of tensors. Layout: docs/formats/tensor.md.
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/device/tensor.hpp>
#include <muster/serialize/detail/frame_stream.hpp>

#include "bools.hpp"
#include "layout.hpp"
#include "visit.hpp"

namespace muster {

namespace {

enum flag : std::uint8_t {
  by_reference = 1,  ///< the elements lie in an attached block; otherwise they follow
  strided = 2,       ///< they are not contiguous: strides follow the shape
  with_offset = 4,   ///< the first is not where the block begins
  wide = 8,          ///< numbers are of 8 bytes; otherwise of 4
  read_only = 16,    ///< the elements are not to be written through it
  all_flags = 31
};

struct header {
  std::uint8_t type = 0;
  std::uint8_t dimensions = 0;
  std::uint8_t flags = 0;
  device::kind kind = device::kind::cpu;  ///< of what the block is a piece of

  [[nodiscard]] bool has(flag which) const noexcept { return (flags & which) != 0; }
};
static_assert(sizeof(header) == 4);

constexpr std::size_t most_numbers = 1 + 2 * tensor::max_dimensions;

std::size_t count_of_numbers(const header& head) {
  return (head.has(with_offset) ? 1U : 0U) + std::size_t{head.dimensions} * (head.has(strided) ? 2 : 1);
}

std::size_t bytes_of_numbers(const header& head) {
  return count_of_numbers(head) * (head.has(wide) ? sizeof(std::uint64_t) : sizeof(std::uint32_t));
}

// Offset, shape and strides, one after the other.
template <class Number>
void write_numbers(frame_writer& out, const header& head, std::size_t offset, const tensor& what) {
  std::array<Number, most_numbers> numbers;  // indeterminate beyond count
  std::size_t count = 0;
  if (head.has(with_offset)) numbers[count++] = static_cast<Number>(offset);
  for (const auto size : what.shape()) numbers[count++] = static_cast<Number>(size);
  if (head.has(strided)) {
    for (const auto stride : what.strides()) numbers[count++] = static_cast<Number>(stride);
  }
  out.write(numbers.data(), count * sizeof(Number));
}

class number_list {
public:
  number_list(frame_reader& in, const header& head) {
    const auto count = count_of_numbers(head);
    if (head.has(wide)) {
      in.read(numbers_.data(), count * sizeof(std::uint64_t));
      return;
    }
    std::array<std::int32_t, most_numbers> narrow;
    in.read(narrow.data(), count * sizeof(std::int32_t));
    for (std::size_t index = 0; index < count; ++index) numbers_[index] = static_cast<std::uint64_t>(narrow[index]);
  }

  [[nodiscard]] std::uint64_t next() noexcept { return numbers_[position_++]; }

private:
  std::array<std::uint64_t, most_numbers> numbers_;  // indeterminate beyond what was read
  std::size_t position_ = 0;
};

// What all numbers have in common, found in one pass: this is half of what a short frame costs.
struct number_traits {
  bool empty = false;
  bool contiguous = true;
  bool narrow_shape = true;
  bool narrow_strides = true;
};

number_traits traits_of(const tensor_shape& shape, const tensor_strides& strides) noexcept {
  constexpr std::uint64_t beyond_narrow = ~std::uint64_t{INT32_MAX};
  number_traits found;
  std::uint64_t size_bits = 0;
  std::uint64_t stride_bits = 0;
  std::size_t expected = 1;
  for (std::size_t dimension = shape.size(); dimension-- > 0;) {
    const auto size = shape[dimension];
    const auto stride = strides[dimension];
    if (size == 0) found.empty = true;
    if (size != 1 && static_cast<std::size_t>(stride) != expected) found.contiguous = false;
    expected *= size;
    size_bits |= size;
    stride_bits |= static_cast<std::uint64_t>(stride < 0 ? ~stride : stride);
  }
  found.narrow_shape = (size_bits & beyond_narrow) == 0;
  found.narrow_strides = (stride_bits & beyond_narrow) == 0;
  return found;
}

header header_of(const tensor& what, std::size_t offset, bool refers) {
  const auto numbers = traits_of(what.shape(), what.strides());
  unsigned flags = 0;
  bool narrow = numbers.narrow_shape;
  if (refers && what.is_shared() && !numbers.empty) {
    flags = by_reference;
    if (what.is_read_only()) flags |= read_only;
    if (offset != 0) flags |= with_offset;
    narrow &= offset <= INT32_MAX;
    if (!numbers.contiguous) {
      flags |= strided;
      narrow &= numbers.narrow_strides;
    }
  }
  if (!narrow) flags |= wide;
  // Not what.device(): which one it is, is found out by asking for it.
  const bool is_on_device = (flags & by_reference) != 0 && what.storage()->on_device() != nullptr;
  return {.type = static_cast<std::uint8_t>(what.dtype()),
          .dimensions = static_cast<std::uint8_t>(what.dimensions()),
          .flags = static_cast<std::uint8_t>(flags),
          .kind = is_on_device ? device::kind::cuda : device::kind::cpu};
}

void write_elements(frame_writer& out, const tensor& what) {
  const auto item = dtype_size(what.dtype());
  detail::for_each_run(
      [&](const detail::runs<1>& at, std::size_t count) {
        const auto [first, step] = at[0];
        if (step == static_cast<std::ptrdiff_t>(item)) {
          out.write(first, count * item);
        } else {
          const auto* next = first;
          for (std::size_t index = 0; index < count; ++index, next += step) out.write(next, item);
        }
        return true;
      },
      what);
}

[[noreturn]] void throw_corrupted(const std::string& why) {
  throw error(errc::corrupted, text("an encoded tensor cannot be one: ", why, "; whoever sent it misbehaves"));
}

header read_header(frame_reader& in) {
  header head;
  in.read(&head, sizeof head);
  const bool sound = head.type < dtype_count && head.dimensions <= tensor::max_dimensions && head.flags <= all_flags &&
                     (head.kind == device::kind::cpu || (head.kind == device::kind::cuda && head.has(by_reference))) &&
                     (head.has(by_reference) || (head.flags & (strided | with_offset | read_only)) == 0);
  if (!sound) {
    throw_corrupted(text("its dtype is ", int{head.type}, " of ", dtype_count, ", its dimensions are ",
                         int{head.dimensions}, " of at most ", tensor::max_dimensions, ", its flags are ",
                         int{head.flags}, ", its kind of device is ", static_cast<int>(head.kind)));
  }
  return head;
}

struct read_form {
  detail::placement where;
  std::size_t bytes = 0;  // what the elements take when they are contiguous
};

read_form read_placement(frame_reader& in, const header& head) {
  number_list numbers(in, head);
  read_form found;
  auto& where = found.where;
  where.type = static_cast<dtype>(head.type);
  if (head.has(with_offset)) where.offset_bytes = numbers.next();
  for (int dimension = 0; dimension < head.dimensions; ++dimension) where.shape.push_back(numbers.next());
  const auto bytes = detail::bytes_of(where.type, where.shape);
  if (!bytes)
    throw_corrupted(text("elements of dtype ", where.type, " and shape ", where.shape, " fit into no memory"));
  found.bytes = *bytes;
  if (!head.has(strided)) {
    where.strides = detail::row_major(where.shape);
    return found;
  }
  for (int dimension = 0; dimension < head.dimensions; ++dimension) {
    where.strides.push_back(static_cast<std::ptrdiff_t>(numbers.next()));
  }
  return found;
}

std::shared_ptr<const storage> take_storage(frame_reader& in, const header& head) {
  if (head.kind == device::kind::cpu && head.has(read_only)) return storage::read_only(in.take_attachment());
  if (head.kind == device::kind::cpu) return storage::over(in.take_attachment());
  auto there = storage::over(kind_of(device::cuda()).read_from(in));
  return head.has(read_only) ? storage::read_only(std::move(there)) : there;
}

void require_fit(std::span<const std::byte> bytes, const header& head, const read_form& what) {
  const bool fits =
      head.has(strided) ? detail::fits(what.where, bytes) : detail::fits_in_a_row(what.where, what.bytes, bytes);
  if (!fits) throw_corrupted(detail::problem_of(what.where, bytes));
}

// Counts what it writes, where the writer only counts.
void write_storage(frame_writer& out, const storage& bytes) {
  if (bytes.on_device() != nullptr)
    bytes.on_device()->write_to(out);
  else
    out.attach(bytes.block());
}

// The elements are there before room for them is made.
tensor copied_tensor(frame_reader& in, const read_form& what) {
  const auto* const elements = in.take(what.bytes);
  auto made = tensor::empty(what.where.type, what.where.shape);
  if (what.bytes == 0) return made;
  if (what.where.type == dtype::boolean)
    detail::copy_bools(made.data(), elements, what.bytes);
  else
    std::memcpy(made.data(), elements, what.bytes);
  return made;
}

}  // namespace

void tensor::write_to(frame_writer& out) const {
  if (is_on_device() && (size() == 0 || !out.refers() || !is_shared())) {
    if (size() != 0 && out.refers() && !out.only_counts()) storage_->on_device()->note_copied();
    return to(muster::device::cpu()).write_to(out);
  }
  const auto offset = is_shared() ? static_cast<std::size_t>(data_ - storage_->bytes().data()) : 0;
  const auto head = header_of(*this, offset, out.refers());
  if (out.only_counts()) {
    out.count(sizeof head + bytes_of_numbers(head) + (head.has(by_reference) ? 0 : nbytes()));
    if (head.has(by_reference)) write_storage(out, *storage_);
    return;
  }
  out.write(&head, sizeof head);
  if (head.has(by_reference)) write_storage(out, *storage_);
  if (head.has(wide)) {
    write_numbers<std::uint64_t>(out, head, offset, *this);
  } else {
    write_numbers<std::uint32_t>(out, head, offset, *this);
  }
  if (!head.has(by_reference)) write_elements(out, *this);
}

tensor tensor::read_from(frame_reader& in) {
  const auto head = read_header(in);
  auto bytes = head.has(by_reference) ? take_storage(in, head) : nullptr;
  const auto what = read_placement(in, head);
  if (bytes == nullptr) return copied_tensor(in, what);
  require_fit(bytes->bytes(), head, what);
  return {std::move(bytes), what.where};
}

}  // namespace muster
