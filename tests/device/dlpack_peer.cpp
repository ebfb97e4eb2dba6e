// SPDX-License-Identifier: BSL-1.0
// What dlpack_library.py loads: makes tensors for other libraries and looks at their arrays.
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include <muster/device/detail/convert.hpp>
#include <muster/device/dlpack.hpp>
#include <muster/device/tensor_compare.hpp>
#include <muster/device/tensor_print.hpp>

namespace {

using namespace muster;

// 0 to 23 of any type, in shape (2, 3, 4), without the first of the innermost. Of bools: whether they are odd.
tensor expected(int type) {
  const auto all = tensor::empty(static_cast<dtype>(type), {24});
  const std::size_t values = all.dtype() == dtype::boolean ? 2 : 24;
  for (std::size_t index = 0; index < 24; ++index) all.slice(index, index + 1).fill(index % values);
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

dlpack_versioned_tensor* make_versioned(int type) {
  made = expected(type);
  return to_dlpack_versioned(*made).release();
}

// Whether somebody has written -1 as the first element that was made, which is an f64.
bool was_written() { return made->at<double>(0, 0, 0) == -1; }

// How many hold the memory of what was made.
long holders() { return made->storage().use_count(); }
}

namespace {

template <class Managed>
bool take_any(Managed* theirs, int type) {
  try {
    taken = from_dlpack(theirs);
    if (type < 0) return true;
    if (equal(*taken, expected(type))) return true;
    std::cerr << "took " << *taken << "\n";
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
  }
  return false;
}

template <class Managed>
bool refuses_any(Managed* theirs) {
  try {
    taken = from_dlpack(theirs);
    return false;
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace

extern "C" {

// Whether the array is taken, and is what make() makes of that type, if that is asked for.
bool take(dlpack_managed_tensor* theirs, int type) { return take_any(theirs, type); }
// The same of bytes that are bools: what knows no bools sends them so.
bool take_bools(dlpack_managed_tensor* theirs) {
  if (!take_any(theirs, -1)) return false;
  taken = convert(*taken, dtype::boolean, memory::local);
  return true;
}
bool take_versioned(dlpack_versioned_tensor* theirs, int type) { return take_any(theirs, type); }

bool is_read_only() { return taken->is_read_only(); }

bool refuses(dlpack_managed_tensor* theirs) { return refuses_any(theirs); }
bool refuses_versioned(dlpack_versioned_tensor* theirs) { return refuses_any(theirs); }

// Which elements of two arrays compare so, as u8. 6: which are close, 7: NaNs to one another, too.
dlpack_managed_tensor* compare_arrays(dlpack_managed_tensor* left, dlpack_managed_tensor* right, int how) {
  try {
    const auto a = from_dlpack(left);
    const auto b = from_dlpack(right);
    const auto found = how < 6 ? compare(a, static_cast<comparison>(how), b)
                               : is_close(a, b, {.nans = how == 7 ? nans::same : nans::differ});
    return to_dlpack(convert(found, dtype::u8)).release();
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
    return nullptr;
  }
}

// What was taken, as it is printed; until the next call.
const char* text() {
  static std::string last;
  std::ostringstream out;
  out << *taken;
  last = out.str();
  return last.c_str();
}

void fill_first_row() { taken->slice(0, 1).fill(100); }
void drop() { taken.reset(); }
}
