// SPDX-License-Identifier: BSL-1.0
#include "local_tensor.hpp"

#include <cstring>

namespace muster::detail {

void local_input::copy_to(std::byte* room) const {
  if (what_.size() == 0) return;
  if (!is_row(what_)) return local_input(what_.to(device::cpu()).contiguous()).copy_to(room);
  std::memcpy(room, what_.data(), what_.nbytes());
}

const tensor& local_input::reachable(const domain& where) {
  if (is_reachable(what_, where)) return what_;
  copy_ = what_.device().is_cpu() ? what_.clone(memory::shared) : what_.to(device::cpu());
  return copy_;
}

const tensor& local_output::reachable(const domain& where) {
  if (is_reachable(what_, where)) return what_;
  stand_in_ = tensor::empty(what_.dtype(), what_.shape(), memory::shared);
  return stand_in_;
}

const tensor& local_output::reachable(const domain& where, const tensor& input, const tensor& stands_in) {
  const bool is_here = what_.device().is_cpu() && input.device().is_cpu();
  const bool is_replaced = is_here && what_.data() == input.data() && stands_in.data() != input.data();
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
