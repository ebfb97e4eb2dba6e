// SPDX-License-Identifier: BSL-1.0
#pragma once

// What the tests of the key-value store share.

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/text.hpp>
#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/params/kv_store.hpp>
#include <muster/pool/process.hpp>

namespace muster::kv_store_test {

[[nodiscard]] inline std::string text_of(const auto& call) {
  try {
    call();
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

[[nodiscard]] inline tensor ones(const tensor_shape& shape, float value = 1) {
  return tensor::full<float>(shape, value);
}
inline const tensor_shape small({2, 3});
inline const tensor_shape odd({1211, 11});

inline void require_all(const tensor& found, float wanted, const std::string& where) {
  for (const float each : found.to_vector<float>()) {
    if (each != wanted) throw std::runtime_error(text(where, ": ", each, " instead of ", wanted));
  }
}

inline void add_twice(const store_key&, const tensor& input, tensor& stored) { axpy(2.0, input, stored); }

/// Workers in processes of their own.
[[nodiscard]] inline std::vector<process> start(const kv_ticket& ticket, std::size_t count,
                                                void (*run)(const kv_ticket&, std::size_t)) {
  std::vector<process> all;
  for (std::size_t rank = 0; rank < count; ++rank) all.emplace_back(run, ticket, rank);
  return all;
}

inline void join_all(const std::vector<process>& all) {
  for (const auto& each : all) {
    each.join();
    EXPECT_NO_THROW(each.watch());
  }
}

}  // namespace muster::kv_store_test
