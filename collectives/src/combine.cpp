// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/combine.hpp>

#include <algorithm>
#include <array>
#include <cstring>

#include <muster/base/assert.hpp>
#include <muster/base/detail/float_state.hpp>

#include "combine_kernel.hpp"

namespace muster::detail {

namespace {

// The op and dtype that give the same bits, of the few that there are kernels for.
struct equivalent {
  reduction_op op;
  dtype type;
  std::size_t parts = 1;  // elements of that dtype for one of the other
};

equivalent of_bool(reduction_op op) {
  using enum reduction_op;
  if (op == sum || op == max) return {bor, dtype::boolean};
  if (op == prod || op == min) return {band, dtype::boolean};
  return {op, dtype::boolean};
}

equivalent of_complex(reduction_op op, dtype type) {
  if (op == reduction_op::prod) return {op, type};
  return {op, type == dtype::c64 ? dtype::f32 : dtype::f64, 2};
}

// Sums and products wrap around alike, whatever the sign.
dtype without_sign(dtype type) {
  constexpr auto between = static_cast<int>(dtype::u8) - static_cast<int>(dtype::i8);
  const bool has_sign = type >= dtype::i8 && type <= dtype::i64;
  return has_sign ? static_cast<dtype>(static_cast<int>(type) + between) : type;
}

equivalent equivalent_of(reduction_op op, dtype type) {
  using enum reduction_op;
  if (type == dtype::boolean) return of_bool(op);
  if (type == dtype::c64 || type == dtype::c128) return of_complex(op, type);
  if (op == band || op == bor || op == bxor) return {op, dtype::u8, dtype_size(type)};
  if (op == sum || op == prod) return {op, without_sign(type)};
  return {op, type};
}

// In chunks, so that the input comes from memory once.
void copy_to_all(const std::byte* input, std::span<std::byte* const> outputs, std::size_t bytes, stores how) {
  for (std::size_t at = 0; at < bytes; at += chunk_bytes) {
    for (auto* const output : outputs) put(output + at, input + at, std::min(chunk_bytes, bytes - at), how);
  }
}

void combine_by_function(const element_function& function, std::size_t size, const combine_job& job) {
  alignas(64) std::array<std::byte, chunk_bytes> room;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  const auto bytes = job.count * size;
  for (std::size_t at = 0; at < bytes; at += chunk_bytes) {
    const auto here = std::min(chunk_bytes, bytes - at);
    std::memcpy(room.data(), job.inputs[0] + at, here);
    for (std::size_t rank = 1; rank < job.input_count; ++rank) {
      function.apply(room.data(), job.inputs[rank] + at, here / size);
    }
    for (std::size_t each = 0; each < job.output_count; ++each) put(job.outputs[each] + at, room.data(), here, job.how);
  }
}

// One is enough to say so of all: calls are in place on all ranks or on none, as a rule.
bool is_in_place(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) {
  return std::ranges::find_first_of(inputs, outputs) != inputs.end();
}

// The program's function runs in the state that the thread has.
void combine_unfenced(combine_kernels kernels, const reduction& how, dtype type, combine_job job) {
  if (how.function() != nullptr) return combine_by_function(*how.function(), dtype_size(type), job);
  const auto same = equivalent_of(how.op(), type);
  job.count *= same.parts;
  const auto kernel = kernels(same.op, same.type);
  MUSTER_ASSERT(kernel != nullptr);
  in_fixed_float_state([&] { kernel(job); });
}

// Also when a function throws: what it has stored until then may be looked at.
class fence_at_end {
public:
  explicit fence_at_end(stores how) noexcept : how_(how) {}
  fence_at_end(const fence_at_end&) = delete;
  fence_at_end& operator=(const fence_at_end&) = delete;
  ~fence_at_end() { fence(how_); }

private:
  stores how_;
};

}  // namespace

bool has_avx2() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("f16c") != 0;
#else
  return false;
#endif
}

void combine_by(combine_kernels kernels, const reduction& how, dtype type, std::span<const std::byte* const> inputs,
                std::span<std::byte* const> outputs, std::size_t count, stores how_to_store) {
  how.require(type);
  MUSTER_ASSERT(!inputs.empty());
  if (count == 0 || outputs.empty()) return;
  // What is overwritten in place is in the caches already: a streaming store would throw it out of them first.
  const auto stored = is_in_place(inputs, outputs) ? stores::normal : how_to_store;
  const fence_at_end fenced(stored);
  const bool is_copy = inputs.size() == 1 && (type != dtype::boolean || how.function() != nullptr);
  if (is_copy) return copy_to_all(inputs[0], outputs, count * dtype_size(type), stored);
  combine_unfenced(kernels, how, type, {inputs.data(), inputs.size(), outputs.data(), outputs.size(), count, stored});
}

void combine(const reduction& how, dtype type, std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs, std::size_t count, stores how_to_store) {
  combine_by(has_avx2() ? avx2_kernel : baseline_kernel, how, type, inputs, outputs, count, how_to_store);
}

}  // namespace muster::detail
