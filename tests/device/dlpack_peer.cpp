// SPDX-License-Identifier: BSL-1.0
// What dlpack_numpy.py loads: makes tensors for it and looks at its arrays.
#include <exception>
#include <iostream>
#include <optional>

#include <muster/device/dlpack.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/device/tensor_print.hpp>

namespace {

using namespace muster;

// 0 to 23 of any type, in shape (2, 3, 4), without the first of the innermost.
tensor expected(int type) {
  const auto all = tensor::empty(static_cast<dtype>(type), {24});
  for (std::size_t index = 0; index < 24; ++index) all.slice(index, index + 1).fill(index);
  return all.reshape({2, 3, 4}).slice(1, 4, 2);
}

std::optional<tensor> made;   // by make()
std::optional<tensor> taken;  // by take()

}  // namespace

extern "C" {

dlpack_managed_tensor* make(int type) {
  made = expected(type);
  return to_dlpack(*made).release();
}

// Whether somebody has written -1 as the first element that was made, which is an f64.
bool was_written() { return made->at<double>(0, 0, 0) == -1; }

// How many hold the memory of what was made.
long holders() { return made->storage().use_count(); }

// Whether the array is taken, and is what make() makes.
bool take(dlpack_managed_tensor* theirs, int type) {
  try {
    taken = from_dlpack(theirs);
    if (equal(*taken, expected(type))) return true;
    std::cerr << "took " << *taken << "\n";
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
  }
  return false;
}

bool refuses(dlpack_managed_tensor* theirs) {
  try {
    taken = from_dlpack(theirs);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

void fill_first_row() { taken->slice(0, 1).fill(100); }
void drop() { taken.reset(); }
}
