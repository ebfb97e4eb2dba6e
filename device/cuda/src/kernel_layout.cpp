// SPDX-License-Identifier: BSL-1.0
#include "kernel_layout.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include <muster/base/assert.hpp>

namespace muster::detail {

namespace {

constexpr std::size_t pack_bytes = 16;

struct dimension {
  std::uint64_t size = 1;
  std::array<std::int64_t, 2> steps = {};
};

// From the outermost to the innermost.
struct dimensions {
  std::array<dimension, kernel_elements::most_dimensions> each = {};
  unsigned count = 0;

  void push_back(const dimension& more) { each[count++] = more; }
  [[nodiscard]] dimension* begin() { return each.data(); }
  [[nodiscard]] dimension* end() { return each.data() + count; }
};

dimensions of_views(const cuda_view& to, const cuda_view& from, bool by_parts) {
  const auto to_bytes = static_cast<std::int64_t>(dtype_size(to.type));
  const auto from_bytes = static_cast<std::int64_t>(dtype_size(from.type));
  dimensions made;
  for (std::size_t at = 0; at < to.shape.size(); ++at) {
    if (to.shape[at] == 1) continue;
    made.push_back({to.shape[at], {to.strides[at] * to_bytes, from.strides[at] * from_bytes}});
  }
  if (by_parts) made.push_back({2, {to_bytes / 2, from_bytes / 2}});
  return made;
}

// What is written from behind is written from the front, the last element first.
void go_forwards(dimensions& all, kernel_elements& made) {
  for (auto& each : all) {
    if (each.steps[0] > 0 || (each.steps[0] == 0 && each.steps[1] >= 0)) continue;
    for (std::size_t operand = 0; operand < 2; ++operand) {
      made.first[operand] += each.steps[operand] * static_cast<std::int64_t>(each.size - 1);
      each.steps[operand] = -each.steps[operand];
    }
  }
}

// Neighbours in what is written are neighbours in the order.
void sort(dimensions& all) {
  std::ranges::sort(all, [](const dimension& a, const dimension& b) {
    if (a.steps[0] != b.steps[0]) return a.steps[0] > b.steps[0];
    return std::abs(a.steps[1]) > std::abs(b.steps[1]);
  });
}

bool continues(const dimension& outer, const dimension& inner) {
  const auto size = static_cast<std::int64_t>(inner.size);
  return outer.steps[0] == inner.steps[0] * size && outer.steps[1] == inner.steps[1] * size;
}

dimensions joined(dimensions& all) {
  dimensions made;
  for (const auto& each : all) {
    if (made.count != 0 && continues(made.each[made.count - 1], each)) {
      auto& last = made.each[made.count - 1];
      last = {last.size * each.size, each.steps};
    } else {
      made.push_back(each);
    }
  }
  return made;
}

void write(dimensions& all, kernel_elements& made) {
  made.dimensions = all.count;
  made.count = 1;
  for (unsigned at = 0; at < all.count; ++at) {
    made.count *= all.each[at].size;
    made.sizes[at] = all.each[at].size;
    made.steps[0][at] = all.each[at].steps[0];
    made.steps[1][at] = all.each[at].steps[1];
  }
}

std::uint64_t address(const std::byte* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

bool is_complex_type(dtype type) noexcept { return type == dtype::c64 || type == dtype::c128; }

dtype part_type(dtype type) noexcept {
  if (type == dtype::c64) return dtype::f32;
  return type == dtype::c128 ? dtype::f64 : type;
}

kernel_elements paired(const cuda_view& to, const cuda_view& from, pairing how) {
  MUSTER_ASSERT(to.shape == from.shape && to.strides.size() == to.shape.size() &&
                from.strides.size() == from.shape.size());
  kernel_elements made{};
  made.first[0] = device_pointer(to.first);
  made.first[1] = device_pointer(from.first);
  auto all = of_views(to, from, how.by_parts);
  if (!how.in_order) {
    go_forwards(all, made);
    sort(all);
  }
  all = joined(all);
  if (all.count == 0) {
    const auto step = [](const cuda_view& view) { return static_cast<std::int64_t>(dtype_size(view.type)); };
    all.push_back({1, {step(to), step(from)}});
  }
  write(all, made);
  return made;
}

bool are_adjacent(const kernel_elements& elements, std::size_t to_bytes, std::size_t from_bytes) noexcept {
  return elements.dimensions == 1 && elements.steps[0][0] == static_cast<std::int64_t>(to_bytes) &&
         elements.steps[1][0] == static_cast<std::int64_t>(from_bytes);
}

void set_packs(kernel_elements& elements, std::size_t to_bytes, std::size_t from_bytes) noexcept {
  if (!are_adjacent(elements, to_bytes, from_bytes)) return;
  const auto size = pack_bytes / std::max(to_bytes, from_bytes);
  const auto beyond = address(elements.first[0]) % (size * to_bytes);
  if (beyond % to_bytes != 0) return;
  const auto head = beyond == 0 ? 0 : size - beyond / to_bytes;
  if ((address(elements.first[1]) + head * from_bytes) % (size * from_bytes) != 0) return;
  elements.head = static_cast<std::uint32_t>(std::min<std::uint64_t>(head, elements.count));
  elements.is_packed = true;
}

std::uint32_t widen(kernel_elements& elements, std::size_t bytes) noexcept {
  const auto last = elements.dimensions - 1;
  const auto inner = static_cast<std::int64_t>(bytes);
  const bool has_runs = elements.steps[0][last] == inner && elements.steps[1][last] == inner;
  const auto run_bytes = has_runs ? elements.sizes[last] * bytes : bytes;
  auto common = run_bytes | pack_bytes | address(elements.first[0]) | address(elements.first[1]);
  const auto strides = has_runs ? last : elements.dimensions;
  for (unsigned at = 0; at < strides; ++at) {
    common |= static_cast<std::uint64_t>(elements.steps[0][at]) | static_cast<std::uint64_t>(elements.steps[1][at]);
  }
  const auto unit = std::uint64_t{1} << static_cast<unsigned>(std::countr_zero(common));
  if (!has_runs && unit == bytes) return static_cast<std::uint32_t>(unit);
  const auto at = has_runs ? last : elements.dimensions++;
  elements.count = elements.count * bytes / unit;
  elements.sizes[at] = run_bytes / unit;
  elements.steps[0][at] = elements.steps[1][at] = static_cast<std::int64_t>(unit);
  if (elements.sizes[at] == 1 && elements.dimensions > 1) --elements.dimensions;
  return static_cast<std::uint32_t>(unit);
}

std::uint64_t items_of(const kernel_elements& elements, std::size_t largest_bytes) noexcept {
  return elements.is_packed ? (elements.count - elements.head) / (pack_bytes / largest_bytes) : elements.count;
}

}  // namespace muster::detail
