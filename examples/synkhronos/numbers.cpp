// SPDX-License-Identifier: BSL-1.0
#include "numbers.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <random>
#include <string>

namespace example {

namespace {

bool are_close(float found, float serial) {
  constexpr float digits = 1e-5F;
  return std::abs(found - serial) <= digits * std::max(1.0F, std::abs(serial));
}

[[noreturn]] void fail(const std::string& why) {
  std::cerr << why << '\n';
  std::exit(EXIT_FAILURE);
}

}  // namespace

tensor noise(const muster::tensor_shape& shape, std::uint32_t seed) {
  auto made = tensor::empty(muster::dtype::f32, shape);
  std::minstd_rand random(seed);
  for (auto& each : made.span<float>()) {
    each = static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max());
  }
  return made;
}

tensor product(const tensor& x, const tensor& y) {
  auto made = tensor::zeros<float>({x.shape()[0], y.shape()[1]}, muster::memory::local);
  const auto a = x.view<float, 2>();
  const auto b = y.view<float, 2>();
  const auto c = made.view<float, 2>();
  for (std::size_t row = 0; row < x.shape()[0]; ++row) {
    for (std::size_t inner = 0; inner < x.shape()[1]; ++inner) {
      for (std::size_t column = 0; column < y.shape()[1]; ++column) c(row, column) += a(row, inner) * b(inner, column);
    }
  }
  return made;
}

float total(const tensor& x) {
  double sum = 0;
  for (const auto each : x.span<float>()) sum += static_cast<double>(each);
  return static_cast<float>(sum);
}

void require(bool holds, std::string_view what) {
  if (!holds) fail("this does not hold: " + std::string(what));
  std::cout << what << '\n';
}

void compare(std::string_view name, float found, float serial) {
  std::cout << name << ": " << found << ", in one thread " << serial << '\n';
  if (!are_close(found, serial)) fail("these are not the same");
}

void compare(std::string_view name, const tensor& found, const tensor& serial) {
  if (found.shape() != serial.shape()) fail(std::string(name) + ": the shapes are not the same");
  const auto left = found.span<float>();
  const auto right = serial.span<float>();
  std::cout << name << ": " << left[0] << ", in one thread " << right[0] << '\n';
  for (std::size_t index = 0; index < left.size(); ++index) {
    if (!are_close(left[index], right[index])) fail("element " + std::to_string(index) + " is not the same");
  }
}

unsigned ranks_of(int argc, char** argv, unsigned most) {
  unsigned ranks = 2;
  if (argc < 2) return ranks;
  const std::string_view given = argv[1];
  const auto end = given.data() + given.size();
  const auto [last, failure] = std::from_chars(given.data(), end, ranks);
  if (failure != std::errc() || last != end || ranks == 0 || ranks > most) {
    fail("usage: " + std::string(argv[0]) + " [RANKS]; '" + std::string(given) + "' is no number of ranks from 1 to " +
         std::to_string(most));
  }
  return ranks;
}

int run(const std::function<void()>& demo) {
  try {
    demo();
    return EXIT_SUCCESS;
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
    return EXIT_FAILURE;
  }
}

}  // namespace example
