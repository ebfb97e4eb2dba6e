// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <array>
#include <cmath>
#include <random>

namespace actors {

/// How a pole is kept upright: which way the cart is pushed is the sign of their sum over position, speed, angle and
/// speed of the angle.
using policy = std::array<double, 4>;

/// A pole on a cart that is pushed to the left or to the right. Source: Barto, Sutton and Anderson, "Neuronlike
/// adaptive elements that can solve difficult learning control problems", 1983.
class cart_pole {
public:
  static constexpr int most_steps = 500;

  /// Begins nearly upright; `seed` says where.
  explicit cart_pole(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> little(-0.05, 0.05);
    for (auto& each : state_) each = little(random);
  }

  /// How many steps the pole stands, at most most_steps.
  [[nodiscard]] int balance(const policy& how) {
    int steps = 0;
    while (steps < most_steps && stands()) {
      double sum = 0;
      for (std::size_t index = 0; index < how.size(); ++index) sum += how[index] * state_[index];
      push(sum > 0 ? 10.0 : -10.0);
      ++steps;
    }
    return steps;
  }

private:
  [[nodiscard]] bool stands() const { return std::abs(state_[0]) < 2.4 && std::abs(state_[2]) < 0.2095; }

  void push(double force) {
    constexpr double gravity = 9.8;
    constexpr double pole_mass = 0.1;
    constexpr double total_mass = 1.1;
    constexpr double half_length = 0.5;
    constexpr double step = 0.02;
    auto& [position, speed, angle, turning] = state_;
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    const double pushed = (force + pole_mass * half_length * turning * turning * sine) / total_mass;
    const double turned =
        (gravity * sine - cosine * pushed) / (half_length * (4.0 / 3.0 - pole_mass * cosine * cosine / total_mass));
    const double moved = pushed - pole_mass * half_length * turned * cosine / total_mass;
    position += step * speed;
    speed += step * moved;
    angle += step * turning;
    turning += step * turned;
  }

  std::array<double, 4> state_{};
};

}  // namespace actors
