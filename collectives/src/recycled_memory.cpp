// SPDX-License-Identifier: BSL-1.0
#include <muster/collectives/detail/recycled_memory.hpp>

#include <new>

namespace muster::detail {

recycled_memory::~recycled_memory() {
  const scoped_lock lock(mutex_);
  while (kept_ != nullptr) ::operator delete(std::exchange(kept_, kept_->next));
}

void* recycled_memory::take(std::size_t bytes) {
  {
    const scoped_lock lock(mutex_);
    if (piece_bytes_ == 0) piece_bytes_ = bytes;
    if (kept_ != nullptr && bytes == piece_bytes_) {
      --kept_count_;
      return std::exchange(kept_, kept_->next);
    }
  }
  return ::operator new(bytes);
}

void recycled_memory::put_back(void* piece, std::size_t bytes) noexcept {
  {
    const scoped_lock lock(mutex_);
    if (bytes == piece_bytes_ && bytes >= sizeof(kept_piece) && kept_count_ < most_kept) {
      kept_ = new (piece) kept_piece{kept_};
      ++kept_count_;
      return;
    }
  }
  ::operator delete(piece);
}

}  // namespace muster::detail
