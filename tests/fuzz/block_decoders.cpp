// SPDX-License-Identifier: BSL-1.0
#include "block_decoders.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/device/tensor.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/detail/message_ring.hpp>
#include <muster/serialize/archive.hpp>
#include <muster/serialize/shared_object.hpp>

#include "fuzz_frame.hpp"

namespace muster::fuzz {

namespace {

// One for all inputs: making it takes longer than a thousand of them.
arena& memory_of_all() {
  static const auto kept = domain::of_program({.arena_bytes = std::size_t{64} << 20U});
  return kept->blocks();
}

// Blocks are as long as they were asked for, and never empty.
shared_block block_with(std::span<const std::byte> content) {
  auto made = memory_of_all().allocate_shared(std::max<std::size_t>(1, content.size()));
  std::ranges::fill(made.bytes(), std::byte{0});
  std::ranges::copy(content, made.bytes().begin());
  return made;
}

class one_block final : public attachment_source {
public:
  explicit one_block(shared_block block) : block_(std::move(block)) {}
  shared_block take(std::uint64_t name) override {
    if (name != 1) throw error(errc::corrupted, "no such block");
    was_taken_ = true;
    return block_;
  }
  [[nodiscard]] bool was_taken() const noexcept { return was_taken_; }

private:
  const shared_block block_;
  bool was_taken_ = false;
};

struct parts {
  frame encoded;
  one_block beside;

  explicit parts(std::span<const std::byte> bytes) : parts(bytes.subspan(bytes.empty() ? 0 : 1), length_of(bytes)) {}

private:
  static std::size_t length_of(std::span<const std::byte> bytes) {
    return bytes.empty() ? 0 : std::min(std::to_integer<std::size_t>(bytes.front()), bytes.size() - 1);
  }
  parts(std::span<const std::byte> rest, std::size_t length)
      : encoded(rest.first(length)), beside(block_with(rest.subspan(length))) {}
};

void require_elements_within(const tensor& what, std::span<const std::byte> memory) {
  const auto item = static_cast<std::ptrdiff_t>(dtype_size(what.dtype()));
  auto first = what.data() - memory.data();
  auto last = first;
  for (std::size_t each = 0; each < what.shape().size(); ++each) {
    const auto step = what.strides()[each] * (static_cast<std::ptrdiff_t>(what.shape()[each]) - 1) * item;
    (step < 0 ? first : last) += step;
  }
  require(first >= 0 && last + item <= static_cast<std::ptrdiff_t>(memory.size()));
}

}  // namespace

void decode_tensor(std::span<const std::byte> bytes) {
  parts given(bytes);
  frame_reader in(given.encoded.bytes(), &given.beside);
  const auto found = tensor::read_from(in);
  if (found.size() != 0) require_elements_within(found, found.storage()->bytes());
  if (!given.beside.was_taken()) check_round_trip(std::tuple(found));
}

void decode_shared_image(std::span<const std::byte> bytes) {
  constexpr detail::image_type type{.number = 7, .bytes = 16, .alignment = 8};
  parts given(bytes);
  input_archive in(given.encoded.bytes(), &given.beside);
  const auto found = detail::shared_image::load(in, type);
  if (found.object() == nullptr) return;
  const auto room = found.room();
  const auto at = static_cast<const std::byte*>(found.object()) - room.data();
  require(at >= 0 && static_cast<std::size_t>(at) + type.bytes <= room.size());
  require(reinterpret_cast<std::uintptr_t>(found.object()) % type.alignment == 0);
}

void decode_queue(std::span<const std::byte> bytes) {
  const auto found = message_ring::attach(queue_kind::shared, block_with(bytes));
  const auto block = found->block().bytes();
  const auto last = found->room_at(ring_position(0, found->capacity() - 1));
  require(last.data() > block.data() && last.data() + last.size() <= block.data() + block.size());
  static_cast<void>(found->size());
  static_cast<void>(found->is_closed());
}

}  // namespace muster::fuzz
