// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/mapping.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <muster/base/system_call.hpp>

namespace muster {

namespace {

constexpr std::size_t page_bytes = 4096;
// Opened at once: few calls for a large arena, and not much that mlockall(MCL_CURRENT) would have made in vain.
constexpr std::size_t step_bytes = std::size_t{8} << 20U;

constexpr std::size_t rounded_up(std::size_t number, std::size_t step) { return (number + step - 1) / step * step; }

std::string describe_limit(auto which, const char* name, const char* what_to_do) {
  rlimit limit{};
  system_call("getrlimit", ::getrlimit, which, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return text(name, " is unlimited");
  return text(name, " is ", text_of_bytes(limit.rlim_cur), ": ", what_to_do);
}

// The kernel says EAGAIN for memory that it would have to lock, and does not say that it is for that.
std::string limit_behind(int cause) {
  if (cause == EAGAIN) {
    return "this process has called mlockall(MCL_FUTURE), which counts all that is mapped, touched or not; " +
           describe_limit(RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK",
                          "raise it (ulimit -l), ask for a smaller arena_bytes, or lock memory by mlock()");
  }
  return describe_limit(RLIMIT_AS, "RLIMIT_AS", "raise it (ulimit -v), or ask for a smaller arena_bytes");
}

[[noreturn]] void throw_no_room(std::size_t bytes, int cause) {
  throw error(errc::out_of_memory, text("mapping ", text_of_bytes(bytes), " of shared memory failed in process ",
                                        ::getpid(), ": ", std::strerror(cause), "; ", limit_behind(cause)));
}

// Addresses that nobody uses, for a mapping that is put over the middle of them.
class address_range {
public:
  explicit address_range(std::size_t bytes) : bytes_(bytes) {
    begin_ = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin_ == MAP_FAILED) throw_no_room(bytes, errno);
    ::munlock(begin_, bytes);  // under mlockall(MCL_FUTURE) it would count beside what is put over it
  }
  address_range(const address_range&) = delete;
  address_range& operator=(const address_range&) = delete;
  ~address_range() { give_back(begin(), bytes_); }

  [[nodiscard]] std::byte* begin() const noexcept { return static_cast<std::byte*>(begin_); }
  [[nodiscard]] std::byte* aligned(std::size_t alignment) const noexcept {
    const auto beyond = reinterpret_cast<std::uintptr_t>(begin_) % alignment;
    return begin() + (beyond == 0 ? 0 : alignment - beyond);
  }
  /// What lies before and behind the bytes that have been mapped is free again; those are no longer ours.
  void keep(std::byte* first, std::size_t bytes) noexcept {
    give_back(begin(), static_cast<std::size_t>(first - begin()));
    give_back(first + bytes, static_cast<std::size_t>(begin() + bytes_ - (first + bytes)));
    bytes_ = 0;
  }

private:
  static void give_back(std::byte* from, std::size_t bytes) noexcept {
    if (bytes != 0) ::munmap(from, bytes);
  }

  void* begin_ = nullptr;
  std::size_t bytes_;
};

}  // namespace

mapping::mapping(const unique_fd& memfd, std::size_t bytes, inherit children) : children_(children), bytes_(bytes) {
  map(memfd, nullptr, 0, opened::whole);
}

mapping::mapping(const unique_fd& memfd, std::size_t bytes, inherit children, std::size_t alignment, opened at_first)
    : children_(children), bytes_(bytes) {
  address_range reserved(bytes + alignment);
  auto* const at = reserved.aligned(alignment);
  map(memfd, at, MAP_FIXED, at_first);
  reserved.keep(at, rounded_up(bytes, page_bytes));
}

mapping& mapping::operator=(mapping&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  made_in_ = other.made_in_;
  children_ = other.children_;
  begin_ = std::exchange(other.begin_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  opened_bytes_ = other.opened_bytes_.exchange(0);
  return *this;
}

// A forked child has a hole where the bytes would be, which the kernel fills with what the child maps next: its own
// buffers, stacks and libraries. They are not the mapping's to unmap.
void mapping::unmap() noexcept {
  if (begin_ != nullptr && (children_ == inherit::yes || made_in_.is_here())) ::munmap(begin_, bytes_);
  begin_ = nullptr;
  bytes_ = 0;
}

// Without access at first: mlockall(MCL_FUTURE) has the kernel make all pages that can be accessed when they are
// mapped, and none when shared memory becomes accessible.
void mapping::map(const unique_fd& memfd, void* at, int options, opened at_first) {
  auto* const made = ::mmap(at, bytes_, PROT_NONE, MAP_SHARED | MAP_NORESERVE | options, memfd.get(), 0);
  if (made == MAP_FAILED) throw_no_room(bytes_, errno);
  begin_ = static_cast<std::byte*>(made);
  try {
    set_advice();
    if (at_first == opened::whole) open(bytes_);
  } catch (...) {
    if ((options & MAP_FIXED) == 0) unmap();  // else the range is given back by who has reserved it, and at once
    throw;
  }
}

// Several threads may open the same bytes, and nobody closes any.
void mapping::open_more(std::size_t bytes) const {
  auto before = opened_bytes_.load(std::memory_order_acquire);
  const auto after = std::min(rounded_up(bytes, step_bytes), bytes_);
  if (before >= after) return;  // by another thread, just now
  if (::mprotect(begin_ + before, after - before, PROT_READ | PROT_WRITE) != 0) throw_no_room(after, errno);
  while (before < after && !opened_bytes_.compare_exchange_weak(before, after, std::memory_order_acq_rel)) continue;
}

void mapping::replace(const unique_fd& memfd) {
  // The kernel swaps the two under one lock; the range is still unmapped in the end.
  const auto* const at =
      ::mmap(begin_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memfd.get(), 0);
  if (at == MAP_FAILED) detail::throw_system_error_with(errno, "mmap MAP_FIXED", text(bytes_, " bytes"));
  set_advice();
}

void mapping::set_advice() const {
  system_call("madvise MADV_DONTDUMP", ::madvise, begin_, bytes_, MADV_DONTDUMP);
  if (children_ == inherit::no) system_call("madvise MADV_DONTFORK", ::madvise, begin_, bytes_, MADV_DONTFORK);
}

}  // namespace muster
