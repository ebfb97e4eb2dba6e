// SPDX-License-Identifier: BSL-1.0
#include "local_tensor.hpp"

#include <cstring>
#include <functional>
#include <numeric>

namespace muster::detail {

tensor shared_in(domain& where, dtype type, const tensor_shape& shape) {
  const auto bytes = std::accumulate(shape.begin(), shape.end(), dtype_size(type), std::multiplies<>());
  return tensor::over(bytes != 0 ? storage::over(where.blocks().allocate_shared(bytes)) : nullptr, type, shape);
}

void local_input::copy_to(std::byte* room) const {
  if (what_.size() == 0) return;
  if (!is_row(what_)) return local_input(what_.to(device::cpu()).contiguous()).copy_to(room);
  std::memcpy(room, what_.const_data(), what_.nbytes());
}

const tensor& local_input::reachable(domain& where) { return is_reachable(what_, where) ? what_ : copied(where); }

const tensor& local_input::copied(domain& where) {
  copy_ = shared_in(where, what_.dtype(), what_.shape());
  copy_.copy_from(what_);
  return copy_;
}

const tensor& local_output::reachable(domain& where) {
  if (is_reachable(what_, where)) return what_;
  stand_in_ = shared_in(where, what_.dtype(), what_.shape());
  return stand_in_;
}

const tensor& local_output::reachable(domain& where, const tensor& input, const tensor& stands_in) {
  const bool is_here = what_.device().is_cpu() && input.device().is_cpu();
  const bool is_replaced =
      is_here && what_.data() == input.const_data() && stands_in.const_data() != input.const_data();
  if (!is_replaced) return reachable(where);
  stand_in_ = stands_in;
  return stand_in_;
}

std::byte* local_output::contiguous() {
  if (is_row(what_)) return what_.data();
  stand_in_ = tensor::empty(what_.dtype(), what_.shape(), memory::local);
  return stand_in_.data();
}

void local_output::finish() const {
  if (stand_in_.size() > 0) what_.copy_from(stand_in_);
}

}  // namespace muster::detail
