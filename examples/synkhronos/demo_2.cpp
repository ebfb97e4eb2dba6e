// SPDX-License-Identifier: BSL-1.0
// Demo 2 of Synkhronos: arrays in shared memory that inputs are kept in, which change their value and shape, and what
// they allocate for that.
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>

#include <muster/device/tensor_print.hpp>
#include <muster/parallel/data.hpp>
#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

// Shows it, and ends the program with an error where it is another.
void show(const char* after, const muster::data& d, const muster::tensor_shape& shape, std::size_t memory_for) {
  std::cout << after << ": shape " << d.shape() << ", " << d.size() << " elements in memory for " << d.alloc_size()
            << '\n';
  std::size_t elements = 1;
  for (const auto each : shape) elements *= each;
  if (d.shape() == shape && d.size() == elements && d.alloc_size() == memory_for) return;
  require(false, std::string(after) + " it has that shape and memory");
}

bool are_all(const tensor& rows, float value) {
  return std::ranges::all_of(rows.span<float>(), [=](float each) { return each == value; });
}

bool refuses(muster::data& d, const tensor& value) {
  try {
    d.set_value(value);
    return false;
  } catch (const muster::error& failure) {
    std::cout << "refused: " << failure.what() << '\n';
    return failure.code() == muster::errc::invalid_argument;
  }
}

void demo(unsigned ranks) {
  const auto given = noise({5, 4}, 1);
  muster::data d({.value = given, .name = "d"});
  show("made", d, {5, 4}, 20);
  std::cout << "rows 2 and 3: " << d.slice(2, 4) << '\n';
  compare("their first element", d.slice(2, 4), given.slice(2, 4));
  d.fill_row(3, 0.0F);
  require(are_all(d[3], 0), "row 3 is 0");
  compare("the first element of those before it", d.slice(0, 3), given.slice(0, 3));

  d.set_value(noise({2000, 10}, 2), {.oversize = 1.1});
  show("2000 rows, and a tenth more of memory", d, {2000, 10}, 22000);
  d.set_value(noise({2100, 10}, 3));
  show("2100 rows", d, {2100, 10}, 22000);
  d.set_length(2000);
  show("2000 again", d, {2000, 10}, 22000);
  d.set_shape({100, 8});
  show("another shape", d, {100, 8}, 22000);
  d.free_memory();
  show("freed", d, {0, 8}, 0);
  d.set_value(noise({100, 8}, 4));
  show("with a value", d, {100, 8}, 800);

  require(refuses(d, tensor::zeros<double>({100, 8})), "f64 does not become f32 by itself");
  compare("the first element that it keeps", d.value(), noise({100, 8}, 4));
  d.set_value(tensor::zeros<double>({100, 8}), {.force_cast = true});
  require(d.dtype() == muster::dtype::f32 && are_all(d.value(), 0), "as it was forced, it is f32, and 0");

  muster::world world({.ranks = ranks});
  const auto f = world.function(total, muster::rows("d"), muster::outputs(muster::sum("sum")));
  d.fill(1.0F);
  compare("sum of what the ranks see", f(d), 800);
}

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  return run([&] { demo(ranks_of(argc, argv)); });
}
