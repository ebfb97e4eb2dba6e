// SPDX-License-Identifier: BSL-1.0
#include <muster/device/storage.hpp>

#include <cstdint>
#include <new>
#include <utility>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/detail/device_block.hpp>
#include <muster/memory/domain.hpp>

namespace muster {

namespace {

std::shared_ptr<void> heap_bytes(std::size_t bytes) {
  constexpr std::align_val_t aligned{storage::alignment};
  auto* const made = ::operator new(bytes, aligned, std::nothrow);
  if (made == nullptr) {
    throw error(errc::out_of_memory,
                text("the heap has no room for a tensor of ", text_of_bytes(bytes), ": make it smaller"));
  }
  return {made, [](void* left) { ::operator delete(left, aligned); }};
}

}  // namespace

storage::storage(only_here, std::span<std::byte> bytes, std::shared_ptr<void> keeper, shared_block block,
                 std::shared_ptr<const device_block> on_device, bool is_read_only) noexcept
    : keeper_(std::move(keeper)),
      block_(std::move(block)),
      on_device_(std::move(on_device)),
      bytes_(bytes),
      read_only_(is_read_only) {
  if (block_) stamp_ = block_.owner()->stamp();
}

std::shared_ptr<const storage> storage::allocate(std::size_t bytes, memory where) {
  if (bytes == 0) return nullptr;
  if (where == memory::shared) {
    return over(domain::of_program()->blocks().allocate_shared(bytes));
  }
  auto keeper = heap_bytes(bytes);
  const std::span<std::byte> room(static_cast<std::byte*>(keeper.get()), bytes);
  return over(room, std::move(keeper));
}

std::shared_ptr<const storage> storage::over_block(shared_block block, bool is_read_only) {
  const auto bytes = block.bytes();
  auto keeper = domain::of(block);
  return std::make_shared<const storage>(only_here{}, bytes, std::move(keeper), std::move(block), nullptr,
                                         is_read_only);
}

std::shared_ptr<const storage> storage::over(shared_block block) { return over_block(std::move(block), false); }
std::shared_ptr<const storage> storage::read_only(shared_block block) { return over_block(std::move(block), true); }

std::shared_ptr<const storage> storage::over(std::span<std::byte> bytes, std::shared_ptr<void> keeper) {
  return std::make_shared<const storage>(only_here{}, bytes, std::move(keeper), shared_block());
}

std::shared_ptr<const storage> storage::over(std::shared_ptr<const device_block> block) {
  // No program has memory there, and none of the processor's addresses is: whoever reads it by mistake is told.
  constexpr auto nowhere = std::uintptr_t{1} << 56U;
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(nowhere),  // NOLINT(performance-no-int-to-ptr)
                                   block->size());
  return std::make_shared<const storage>(only_here{}, bytes, nullptr, shared_block(), std::move(block));
}

std::shared_ptr<const storage> storage::read_only(std::shared_ptr<const storage> of) {
  if (of == nullptr || of->is_read_only()) return of;
  const auto& from = *of;
  auto keeper = std::const_pointer_cast<storage>(std::move(of));
  return std::make_shared<const storage>(only_here{}, from.bytes_, std::move(keeper), from.block_, from.on_device_,
                                         true);
}

}  // namespace muster
