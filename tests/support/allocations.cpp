// SPDX-License-Identifier: BSL-1.0
#include "allocations.hpp"

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

namespace {

using muster::test::allocating_threads;

constinit std::atomic<bool> armed = false;
constinit std::atomic<allocating_threads> counted = allocating_threads::caller;
constinit std::atomic<std::ptrdiff_t> left = 0;
constinit std::atomic<pid_t> caller = 0;
constinit std::atomic<bool> failed = false;

constinit std::atomic<std::size_t> of_all_threads = 0;
constinit thread_local std::size_t of_this_thread = 0;

bool is_supervisor() noexcept {
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  return std::string_view(name.data()) == "muster";
}

allocating_threads this_thread() noexcept {
  if (::gettid() == caller.load(std::memory_order_relaxed)) return allocating_threads::caller;
  return is_supervisor() ? allocating_threads::supervisor : allocating_threads::others;
}

bool is_to_fail() noexcept {
  if (!armed.load(std::memory_order_relaxed)) return false;
  if (this_thread() != counted.load(std::memory_order_relaxed)) return false;
  if (left.fetch_sub(1, std::memory_order_relaxed) != 0) return false;
  failed.store(true, std::memory_order_relaxed);
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  of_all_threads.fetch_add(1, std::memory_order_relaxed);
  ++of_this_thread;
  if (is_to_fail()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(std::max<std::size_t>(bytes, 1));
  void* made = nullptr;
  return ::posix_memalign(&made, alignment, std::max<std::size_t>(bytes, 1)) == 0 ? made : nullptr;
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

// Boost.Asio's own allocations.
#if !defined(__SANITIZE_ADDRESS__)
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return allocate(bytes, alignment); }
#endif

namespace muster::test {

std::size_t allocations() noexcept { return of_all_threads; }
std::size_t own_allocations() noexcept { return of_this_thread; }

failing_allocation::failing_allocation(allocating_threads of, std::size_t index) {
  counted = of;
  left = static_cast<std::ptrdiff_t>(index);
  caller = ::gettid();
  failed = false;
  armed = true;
}

failing_allocation::~failing_allocation() { armed = false; }

bool failing_allocation::has_failed() const noexcept { return failed; }

}  // namespace muster::test
