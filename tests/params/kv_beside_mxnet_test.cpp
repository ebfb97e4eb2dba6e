// SPDX-License-Identifier: BSL-1.0
// The same program with MXNet's key-value store (mxnet_numbers.py), and what that makes of it: the same numbers.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <muster/device/detail/convert.hpp>

#include "kv_support.hpp"

namespace muster::kv_store_test {
namespace {

using numbers = std::vector<std::pair<std::string, float>>;

struct formed_key {
  std::string key;
  dtype type;
  tensor_shape shape;
};

const std::vector<formed_key>& formed_keys() {
  static const std::vector<formed_key> all = {
      {"small", dtype::f32, small}, {"half", dtype::f16, small}, {"odd", dtype::f32, odd}};
  return all;
}

void run_the_same(const kv_ticket& ticket, std::size_t rank) {
  const kv_store kv(ticket, rank);
  numbers said;
  const auto push_and_say = [&](const std::string& name, const formed_key& of, float value) {
    kv.push(of.key, convert(ones(of.shape, value), of.type));
    const auto found = convert(kv.pull(of.key), dtype::f32).to_vector<float>();
    for (const auto each : found) {
      if (each != found.front()) throw std::runtime_error(name + " is not the same everywhere");
    }
    said.emplace_back(name, found.front());
  };
  for (const auto& each : formed_keys()) kv.init(each.key, convert(ones(each.shape), each.type));
  for (int step = 0; step < 3; ++step) {
    for (const auto& each : formed_keys()) {
      push_and_say(text("sum ", each.key, ' ', step), each, static_cast<float>(rank + 1));
    }
  }
  kv.set_updater(add_twice);
  for (int step = 0; step < 7; ++step) {
    for (const auto& each : formed_keys()) {
      push_and_say(text("updated ", each.key, ' ', step), each, static_cast<float>(rank + 1));
    }
  }
  const formed_key bits{"bits", dtype::f32, small};
  kv.init(bits.key, ones(small, 0));
  kv.set_gradient_compression(gradient_compression::of("2bit", 0.5));
  int step = 0;
  for (const float value : {0.4F, 0.1F, 0.2F, 0.3F, 0.5F, -0.7F, 0.05F}) {
    push_and_say(text("compressed ", step++), bits, value);
  }
  if (rank == 0) kv.values().push("said", said);
  kv.barrier();
}

numbers numbers_of_mxnet(const std::string& python, std::size_t workers, std::size_t servers) {
  const auto command = text(python, " " MUSTER_MXNET_NUMBERS " ", workers, ' ', servers);
  std::string all;
  auto* const pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> some{};
  while (const auto size = std::fread(some.data(), 1, some.size(), pipe)) all.append(some.data(), size);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  numbers made;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    const auto end = line.rfind(' ');
    made.emplace_back(line.substr(0, end), std::stof(line.substr(end)));
  }
  return made;
}

TEST(KvBesideMxnet, TheNumbersAreTheSame) {
  const char* const python = std::getenv("MUSTER_MXNET_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "MUSTER_MXNET_PYTHON names no Python that has MXNet 1.9.1";
  for (const auto& [workers, servers] : {std::pair(1, 1), std::pair(2, 1), std::pair(4, 3)}) {
    const auto count = static_cast<std::size_t>(workers);
    const auto owners = static_cast<std::size_t>(servers);
    const kv_ticket ticket(kv_kind::sync, {.workers = count, .owners = owners});
    join_all(start(ticket, count, run_the_same));
    const auto own = store(ticket.values()).pull<numbers>("said").value;
    EXPECT_EQ(own.size(), 37U);
    EXPECT_EQ(own, numbers_of_mxnet(python, count, owners)) << workers << " workers";
  }
}

}  // namespace
}  // namespace muster::kv_store_test
