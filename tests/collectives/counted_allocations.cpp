// SPDX-License-Identifier: BSL-1.0
#include "counted_allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> of_all_threads = 0;
thread_local std::size_t of_this_thread = 0;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  of_all_threads.fetch_add(1, std::memory_order_relaxed);
  ++of_this_thread;
  return std::aligned_alloc(alignment, (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const made = allocate(bytes, alignment);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

}  // namespace

// Not inlined, because GCC 12 then sees only one of a pair and warns that they do not belong together.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*quietly*/) noexcept {
  return allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     const std::nothrow_t& /*quietly*/) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* what) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t /*bytes*/) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::align_val_t /*alignment*/) noexcept { std::free(what); }
[[gnu::noinline]] void operator delete(void* what, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  std::free(what);
}

namespace muster::test {

std::size_t allocations() noexcept { return of_all_threads; }
std::size_t own_allocations() noexcept { return of_this_thread; }

}  // namespace muster::test
