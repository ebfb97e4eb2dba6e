// SPDX-License-Identifier: BSL-1.0
// The linker may fold functions with equal code into one (--icf=all): what differs in type only still gives the right
// results.
#include <cstdint>
#include <string>

#include <muster/pool/pool.hpp>

#include "check.hpp"

namespace {

std::int32_t same_signed(std::int32_t x) { return x; }
std::uint32_t same_unsigned(std::uint32_t x) { return x; }
std::int32_t also_same(std::int32_t x) { return x; }
struct meters {
  double value;
};
struct seconds {
  double value;
};

}  // namespace

int main(int argc, char** argv) {
  muster::init(argc, argv);
  const muster::pool pool({.workers = 2});
  check(pool.apply(same_signed, -1) == -1, "int32_t");
  check(pool.apply(same_unsigned, 4294967295U) == 4294967295U, "uint32_t");
  check(pool.apply(also_same, 7) == 7, "a second function with the same code");
  check(pool.apply([](meters x) { return x; }, meters{2}).value == 2, "a struct");
  check(pool.apply([](seconds x) { return x; }, seconds{3}).value == 3, "another struct of the same layout");
  check(pool.apply([](int x) { return x; }, 4) == 4, "a lambda");
  check(pool.apply([](const std::string& x) { return x; }, "text") == "text", "a lambda of another type");
  check(pool.map([](int x) { return x; }, {1, 2, 3}).back() == 3, "a map");
}
