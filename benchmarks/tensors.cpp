// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <cstdlib>
#include <cstring>

#include <muster/device/arithmetic.hpp>
#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>

#include "fd_peer.hpp"
#include "python_peer.hpp"
#include "workloads.hpp"

namespace bench {

namespace {

constexpr std::size_t small_bytes = std::size_t{64} << 10U;
constexpr std::size_t large_bytes = std::size_t{256} << 20U;

muster::tensor make(std::size_t bytes) {
  auto made = muster::tensor::empty<std::uint8_t>({bytes});
  touch(reinterpret_cast<std::byte*>(made.data<std::uint8_t>()), bytes);
  return made;
}

unsigned first_of(const muster::tensor& given) { return *given.data<std::uint8_t>(); }

// The tensor is there; the call that names it costs what a call costs.
row tensor_ref(const std::string& name, const effort& how, std::size_t bytes) {
  const auto sent = make(bytes);
  const bound_pool pool;
  const side ours{.name = "apply with a tensor", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      if (pool->apply(first_of, sent) != 1) std::abort();
                    }
                  }};
  const side peer{.name = "apply without", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      if (pool->apply([](unsigned given) { return given; }, 1U) != 1) std::abort();
                    }
                  }};
  return compare_calls(name, how, ours, {peer});
}

// Made, written, handed over, read and let go.
row tensor_vs_fd(const effort& how) {
  fd_peer other(callee);
  const bound_pool pool;
  const auto look = [](const muster::tensor& given) {
    return look_at(reinterpret_cast<const std::byte*>(given.data<std::uint8_t>()), given.nbytes());
  };
  const side ours{.name = "a tensor", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      if (pool->apply(look, make(small_bytes)) == 0) std::abort();
                    }
                  }};
  const side peer{.name = "memfd, SCM_RIGHTS, mmap", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) other.hand_over(small_bytes);
                  }};
  return compare("tensor_vs_fd", how, ours, peer);
}

row tensor_vs_torch(const effort& how) {
  const auto sent = make(large_bytes);
  const muster::pool pool({.workers = 1});
  python_peer torch(with_torch(large_bytes, "for _ in range(count): pool.apply(first, (t,))"));
  const side ours{.name = "apply with a tensor", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      if (pool.apply(first_of, sent) != 1) std::abort();
                    }
                  }};
  return compare_calls("tensor_vs_torch", how, ours,
                       {{.name = "torch.multiprocessing, torch " + python_peer::version_of("torch"),
                         .run = [&](std::size_t count) { torch.run(count); },
                         .singly = [&](std::size_t count) { return torch.run_singly(count); }}});
}

row alloc(const effort& how) {
  const auto domain = muster::domain::of_program();
  const side ours{.name = "a shared block", .run = [&](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      const auto made = domain->blocks().allocate_shared(small_bytes);
                      touch(made.data(), small_bytes);
                    }
                  }};
  const side peer{.name = "malloc", .run = [](std::size_t count) {
                    for (std::size_t index = 0; index < count; ++index) {
                      auto* const made = static_cast<std::byte*>(std::malloc(small_bytes));
                      touch(made, small_bytes);
                      asm volatile("" : : "r"(made) : "memory");  // or it is left out
                      std::free(made);
                    }
                  }};
  return compare("alloc", how, ours, peer);
}

// ---- arithmetic: as many bytes read or written on both sides, far more than the caches hold

constexpr std::size_t pass_bytes = std::size_t{64} << 20U;

side copies(int passes, const muster::tensor& to, const muster::tensor& from) {
  return {.name = "memcpy of as many bytes", .run = [=](std::size_t count) {
            for (std::size_t index = 0; index < count; ++index) {
              for (int pass = 0; pass < passes; ++pass) std::memcpy(to.data(), from.data(), pass_bytes);
            }
          }};
}

muster::tensor numbers(float value) {
  return muster::tensor::full<float>({pass_bytes / sizeof(float)}, value, muster::memory::local);
}

// Each pass reads both and writes one; that of memcpy reads one and writes one.
row accumulate_f32(const effort& how) {
  const auto into = numbers(0);
  const auto from = numbers(1);
  const side ours{.name = "accumulate", .run = [&](std::size_t count) {
                    for (std::size_t pass = 0; pass < 2 * count; ++pass) muster::accumulate(into, from);
                  }};
  return compare("accumulate_f32", how, ours, copies(3, into, from));
}

// Reads variable, state and gradient, and writes two of them.
row sgd_f32(const effort& how) {
  const auto weights = numbers(1);
  const auto state = numbers(0);
  const auto gradient = numbers(0.5F);
  const std::array<const std::byte*, 1> gradients = {gradient.data()};
  const std::array<const double, 1> shares = {1.0};
  const std::array<const std::byte*, 1> old_states = {state.data()};
  const std::array<std::byte*, 1> new_states = {state.data()};
  const std::array<std::byte*, 1> new_values = {weights.data()};
  const muster::detail::rule_pass pass{.gradients = gradients,
                                       .weights = shares,
                                       .value = weights.data(),
                                       .new_values = new_values,
                                       .old_states = old_states,
                                       .new_states = new_states,
                                       .count = weights.size()};
  const side ours{.name = "sgd with momentum", .run = [&](std::size_t count) {
                    for (std::size_t done = 0; done < 2 * count; ++done) {
                      muster::detail::apply(muster::sgd{.rate = 1e-9, .momentum = 0.9}, pass);
                    }
                  }};
  return compare("sgd_f32", how, ours, copies(5, weights, gradient));
}

}  // namespace

std::vector<workload> tensors() {
  return {{.name = "tensor_ref_64KiB",
           .run = [](const effort& how) { return tensor_ref("tensor_ref_64KiB", how, small_bytes); }},
          {.name = "tensor_ref_256MiB",
           .run = [](const effort& how) { return tensor_ref("tensor_ref_256MiB", how, large_bytes); }},
          {.name = "tensor_vs_fd", .run = tensor_vs_fd},
          {.name = "tensor_vs_torch", .run = tensor_vs_torch, .needs_module = "torch"},
          {.name = "accumulate_f32", .run = accumulate_f32, .needs_two_processors = false},
          {.name = "sgd_f32", .run = sgd_f32, .needs_two_processors = false},
          {.name = "alloc", .run = alloc, .needs_two_processors = false}};
}

}  // namespace bench
