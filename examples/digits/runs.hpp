// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string>

#include "data.hpp"
#include "train.hpp"

namespace digits {

/// What the program is asked for.
struct options {
  settings how;
  std::string data;
  std::size_t epochs = 30;
  std::string svg;
  double least_accuracy = 0;  ///< percent of the test images
  bool with_chaos = false;
  bool only_check = false;
};

/// Trains, prints how far it is after each epoch, and draws; with chaos a second time undisturbed, to compare the
/// weights. Throws std::runtime_error if they differ, and, when all is drawn, if fewer test images than wanted are read
/// right.
void run_training(const options& chosen, const divided_samples& data);
/// See check_ranks; prints and draws what it found.
void run_check(const options& chosen, const divided_samples& data);

}  // namespace digits
