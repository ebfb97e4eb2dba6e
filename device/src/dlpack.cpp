// SPDX-License-Identifier: BSL-1.0
#include <muster/device/dlpack.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>

#include "bools.hpp"
#include "layout.hpp"
#include "visit.hpp"

namespace muster {

namespace {

static_assert(std::is_standard_layout_v<dlpack_managed_tensor> && std::is_standard_layout_v<dlpack_versioned_tensor>);

// By dtype's number.
constexpr std::array<dlpack_type, dtype_count> types = {{{6, 8, 1},
                                                         {0, 8, 1},
                                                         {0, 16, 1},
                                                         {0, 32, 1},
                                                         {0, 64, 1},
                                                         {1, 8, 1},
                                                         {1, 16, 1},
                                                         {1, 32, 1},
                                                         {1, 64, 1},
                                                         {2, 16, 1},
                                                         {4, 16, 1},
                                                         {2, 32, 1},
                                                         {2, 64, 1},
                                                         {5, 64, 1},
                                                         {5, 128, 1}}};

// What goes to the other library, and all that it points to.
template <class Managed>
struct exported {
  explicit exported(const tensor& what) : kept(what) {
    std::copy(what.shape().begin(), what.shape().end(), shape.begin());
    std::copy(what.strides().begin(), what.strides().end(), strides.begin());
    const auto where = what.device();
    if (where.is_cpu()) {
      managed.dl_tensor.data = const_cast<std::byte*>(what.const_data());
    } else {
      if (what.storage() != nullptr) what.storage()->on_device()->operations().synchronize();
      managed.dl_tensor.data =
          reinterpret_cast<void*>(what.device_address());  // NOLINT(performance-no-int-to-ptr): the device's
      managed.dl_tensor.device = {dlpack_device::cuda, where.index()};
    }
    managed.dl_tensor.ndim = static_cast<std::int32_t>(what.dimensions());
    managed.dl_tensor.dtype = types[static_cast<std::size_t>(what.dtype())];
    managed.dl_tensor.shape = shape.data();
    managed.dl_tensor.strides = strides.data();
    managed.manager_ctx = this;
    managed.deleter = [](Managed* left) { delete static_cast<exported*>(left->manager_ctx); };
  }

  tensor kept;
  std::array<std::int64_t, tensor::max_dimensions> shape{};
  std::array<std::int64_t, tensor::max_dimensions> strides{};
  Managed managed;
};

// What came from the other library; nobody's until the tensor of it has been made.
template <class Managed>
struct imported {
  imported() = default;
  imported(const imported&) = delete;
  imported& operator=(const imported&) = delete;
  ~imported() {
    if (theirs != nullptr) dlpack_deleter()(theirs);
  }

  Managed* theirs = nullptr;
};

[[noreturn]] void refuse(const std::string& given, std::string_view expected) {
  throw error(errc::invalid_argument, text("from_dlpack: the tensor ", given, ": ", expected));
}

dtype dtype_from(const dlpack_type& given) {
  for (std::size_t number = 0; number < types.size(); ++number) {
    const auto& known = types[number];
    if (known.code == given.code && known.bits == given.bits && given.lanes == 1) return static_cast<dtype>(number);
  }
  refuse(text("has elements of type code ", int{given.code}, ", ", int{given.bits}, " bits, ", given.lanes, " lanes"),
         "convert it to a type that muster::dtype names, of one lane");
}

tensor_shape shape_from(const dlpack_tensor& given) {
  if (given.ndim < 0 || given.ndim > static_cast<std::int32_t>(tensor::max_dimensions)) {
    refuse(text("has ", given.ndim, " dimensions"), "reshape it to at most 8");
  }
  tensor_shape shape;
  for (std::int32_t dimension = 0; dimension < given.ndim; ++dimension) {
    if (given.shape[dimension] < 0) refuse(text("has a size of ", given.shape[dimension]), "sizes are not negative");
    shape.push_back(static_cast<std::size_t>(given.shape[dimension]));
  }
  return shape;
}

bool is_known(std::int32_t type) {
  return type == dlpack_device::cpu || type == dlpack_device::cuda || type == dlpack_device::cuda_managed;
}

detail::placement placement_from(const dlpack_tensor& given) {
  if (!is_known(given.device.device_type)) {
    refuse(text("is on a device of type ", given.device.device_type), "copy it to the CPU (type 1) or CUDA (2) first");
  }
  detail::placement found;
  found.type = dtype_from(given.dtype);
  found.shape = shape_from(given);
  static_cast<void>(detail::require_bytes_of(found.type, found.shape));
  if (given.strides == nullptr || given.ndim == 0) {
    found.strides = detail::row_major(found.shape);
  } else {
    found.strides = tensor_strides(std::span(given.strides, static_cast<std::size_t>(given.ndim)));
  }
  return found;
}

std::shared_ptr<const storage> storage_over(const dlpack_device& where, std::span<std::byte> bytes,
                                            std::shared_ptr<void> owner) {
  if (where.device_type == dlpack_device::cpu) return storage::over(bytes, std::move(owner));
  const auto device = device::cuda(static_cast<std::uint16_t>(where.device_id));
  return storage::over(
      kind_of(device).over(device, reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size(), std::move(owner)));
}

// Looked at here, since of a device's memory the storage has no address.
void require_aligned(const std::byte* first, dtype type) {
  const auto alignment = detail::alignment_of(type);
  if (reinterpret_cast<std::uintptr_t>(first) % alignment == 0) return;
  refuse(text("of ", type, " begins at ", static_cast<const void*>(first)),
         text("addresses must be multiples of ", alignment));
}

// The memory is the other library's too, which may have numbers there: they are not made bools for it. What it writes
// later nobody looks at: whoever reads bools takes any byte but 0 for true.
void require_bools(const tensor& what) {
  unsigned greatest = 0;
  const auto look = [&greatest](const detail::runs<1>& at, std::size_t count) {
    const auto [first, step] = at[0];
    if (step == 1) {
      greatest = detail::greatest_byte(first, count);
    } else {
      for (std::size_t index = 0; index < count && greatest <= 1; ++index) {
        greatest = std::to_integer<unsigned>(first[static_cast<std::ptrdiff_t>(index) * step]);
      }
    }
    return greatest <= 1;
  };
  if (detail::for_each_run(look, what)) return;
  refuse(text("has a bool whose byte is ", greatest),
         "bools are 0 or 1; make them so in its library, as x != 0 does, or export the bytes as u8");
}

template <class Managed>
tensor import_from(Managed* theirs, bool is_read_only) {
  const auto& given = theirs->dl_tensor;
  const auto found = placement_from(given);
  const auto reach = detail::reach_of(found.type, found.shape, found.strides);
  const bool is_empty = detail::count_of(found.shape) == 0;
  if (!reach || (given.data == nullptr && !is_empty)) {
    refuse(text("at ", given.data, " has shape ", found.shape, " and strides ", found.strides),
           "its elements must be in memory");
  }
  auto* const first = is_empty ? nullptr : static_cast<std::byte*>(given.data) + given.byte_offset;
  require_aligned(first, found.type);
  const auto size = static_cast<std::size_t>(reach->last - reach->first);
  const auto owner = std::make_shared<imported<Managed>>();
  auto made = tensor::over(storage_over(given.device, {first + reach->first, size}, owner), found.type, found.shape,
                           found.strides, static_cast<std::size_t>(-reach->first));
  if (found.type == dtype::boolean && made.device().is_cpu()) require_bools(made);
  if (is_read_only) made = made.as_read_only();
  owner->theirs = theirs;
  return made;
}

template <class Handle>
tensor import_and_own(Handle theirs) {
  auto made = from_dlpack(theirs.get());
  [[maybe_unused]] auto* const taken = theirs.release();  // the tensor's now
  return made;
}

}  // namespace

// Version 0 cannot say that it is read-only.
dlpack_handle to_dlpack(const tensor& what) {
  what.require_writable();
  return dlpack_handle(&(new exported<dlpack_managed_tensor>(what))->managed);
}
dlpack_versioned_handle to_dlpack_versioned(const tensor& what) {
  dlpack_versioned_handle made(&(new exported<dlpack_versioned_tensor>(what))->managed);
  if (what.is_read_only()) made->flags |= dlpack_versioned_tensor::read_only;
  return made;
}

tensor from_dlpack(dlpack_managed_tensor* theirs) { return import_from(theirs, false); }

tensor from_dlpack(dlpack_versioned_tensor* theirs) {
  const auto version = theirs->version;
  if (version.major != dlpack_version().major) {
    refuse(text("is of DLPack ", version.major, '.', version.minor), "ask its library for version 1");
  }
  return import_from(theirs, (theirs->flags & dlpack_versioned_tensor::read_only) != 0);
}

tensor from_dlpack(dlpack_handle theirs) { return import_and_own(std::move(theirs)); }
tensor from_dlpack(dlpack_versioned_handle theirs) { return import_and_own(std::move(theirs)); }

}  // namespace muster
