// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/frame_port.hpp>

#include <algorithm>
#include <exception>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster::detail {

shared_block borrowing_source::take(std::uint64_t name) {
  if (count_ == borrowed_.size()) borrowed_.emplace_back();
  auto& handle = borrowed_[count_];
  memory_.borrow_into(handle, name);
  ++count_;
  return handle;
}

// Whatever happens, none is left over for the next loan: its block would not be there any more.
void borrowing_source::end() {
  std::exception_ptr failure;
  for (; count_ > 0; --count_) {
    auto& handle = borrowed_[count_ - 1];
    if (handle.is_unique()) continue;
    try {
      memory_.keep(handle);
    } catch (...) {
      failure = std::current_exception();
    }
    handle.reset();
  }
  if (failure) std::rethrow_exception(failure);
}

shared_block keeping_source::take(std::uint64_t name) {
  auto handle = memory_.borrow(name);
  memory_.keep(handle);
  return handle;
}

std::span<std::byte> frame_outbox::room(std::span<std::byte> here, std::size_t bytes) {
  overflow_.reset();
  if (bytes <= std::min(staged_.size(), here.size())) return std::span(staged_).first(bytes);
  if (bytes <= here.size()) return here.first(bytes);
  overflow_ = memory_.allocate_shared(bytes);
  return overflow_.bytes().first(bytes);
}

frame_view::frame_view(arena& memory, std::span<const std::byte> here, std::uint64_t block, std::uint64_t bytes) {
  if (block != 0) block_ = memory.borrow(block);
  const auto all = block != 0 ? std::span<const std::byte>(block_.bytes()) : here;
  if (bytes > all.size()) {
    throw error(errc::corrupted, text("a frame of ", bytes, " bytes is said to be in room for ", all.size(),
                                      ": somebody has overwritten the world's memory"));
  }
  bytes_ = all.first(bytes);
}

}  // namespace muster::detail
