// SPDX-License-Identifier: BSL-1.0
#include "local_tensor.hpp"

#include <cstring>

namespace muster::detail {

void local_input::copy_to(std::byte* room) const {
  if (what_.size() == 0) return;
  const auto& row = what_.is_contiguous() ? what_ : what_.contiguous();
  std::memcpy(room, row.data(), row.nbytes());
}

const tensor& local_input::reachable(const domain& where) {
  if (is_reachable(what_, where)) return what_;
  copy_ = what_.clone(memory::shared);
  return copy_;
}

const tensor& local_output::reachable(const domain& where) {
  if (is_reachable(what_, where)) return what_;
  stand_in_ = tensor::empty(what_.dtype(), what_.shape(), memory::shared);
  return stand_in_;
}

const tensor& local_output::reachable(const domain& where, const tensor& input, const tensor& stands_in) {
  const bool is_replaced = what_.data() == input.data() && stands_in.data() != input.data();
  if (!is_replaced) return reachable(where);
  stand_in_ = stands_in;
  return stand_in_;
}

std::byte* local_output::contiguous() {
  if (what_.is_contiguous()) return what_.data();
  stand_in_ = tensor::empty(what_.dtype(), what_.shape(), memory::local);
  return stand_in_.data();
}

void local_output::finish() const {
  if (stand_in_.size() > 0) what_.copy_from(stand_in_);
}

}  // namespace muster::detail
