// SPDX-License-Identifier: BSL-1.0
// Demo 2 of Synkhronos: arrays in shared memory that inputs are kept in, which change their value and shape, and what
// they allocate for that.
#include <iostream>

#include <muster/device/tensor_print.hpp>
#include <muster/parallel/data.hpp>
#include <muster/parallel/world.hpp>

#include "numbers.hpp"

using namespace example;

namespace {

void show(const char* after, const muster::data& d) {
  std::cout << after << ": shape " << d.shape() << ", " << d.size() << " elements in memory for " << d.alloc_size()
            << '\n';
}

void demo(unsigned ranks) {
  muster::data d({.value = noise({5, 4}, 1), .name = "d"});
  show("made", d);
  std::cout << "rows 2 and 3: " << d.slice(2, 4) << '\n';
  d.fill_row(3, 0.0F);
  std::cout << "row 3 is 0: " << d[3] << '\n';

  d.set_value(noise({2000, 10}, 2), {.oversize = 1.1});
  show("2000 rows, and a tenth more of memory", d);
  d.set_value(noise({2100, 10}, 3));
  show("2100 rows", d);
  d.set_length(2000);
  show("2000 again", d);
  d.set_shape({100, 8});
  show("another shape", d);
  d.free_memory();
  show("freed", d);
  d.set_value(noise({100, 8}, 4));
  show("with a value", d);

  try {
    d.set_value(tensor::zeros<double>({100, 8}));
  } catch (const muster::error& failure) {
    std::cout << "refused: " << failure.what() << '\n';
  }
  d.set_value(tensor::zeros<double>({100, 8}), {.force_cast = true});
  std::cout << "as it was forced, it is " << d.dtype() << '\n';

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
