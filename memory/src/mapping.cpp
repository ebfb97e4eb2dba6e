// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/mapping.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <boost/interprocess/exceptions.hpp>

#include <muster/base/system_call.hpp>

namespace muster {

namespace {

namespace bip = boost::interprocess;

constexpr std::size_t page_bytes = 4096;

// What mapped_region asks of a thing to map.
struct mappable {
  int fd;
  [[nodiscard]] bip::mapping_handle_t get_mapping_handle() const noexcept { return {.handle = fd, .is_xsi = false}; }
};

std::string address_space_limit() {
  rlimit limit{};
  system_call("getrlimit", ::getrlimit, RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "RLIMIT_AS is unlimited";
  return text("RLIMIT_AS is ", text_of_bytes(limit.rlim_cur),
              ": raise it (ulimit -v), or ask for a smaller arena_bytes");
}

[[noreturn]] void throw_no_room(std::size_t bytes, const char* why) {
  throw error(errc::out_of_memory, text("mapping ", text_of_bytes(bytes), " of shared memory failed in process ",
                                        ::getpid(), ": ", why, "; ", address_space_limit()));
}

// Addresses that nobody uses, for a mapping that is put over the middle of them.
class address_range {
public:
  explicit address_range(std::size_t bytes) : bytes_(bytes) {
    begin_ = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin_ == MAP_FAILED) throw_no_room(bytes, std::strerror(errno));
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

mapping::mapping(const unique_fd& memfd, std::size_t bytes, inherit children) : children_(children) {
  map(memfd, bytes, nullptr, 0);
}

mapping::mapping(const unique_fd& memfd, std::size_t bytes, inherit children, std::size_t alignment)
    : children_(children) {
  address_range reserved(bytes + alignment);
  auto* const at = reserved.aligned(alignment);
  map(memfd, bytes, at, MAP_FIXED);
  reserved.keep(at, (bytes + page_bytes - 1) / page_bytes * page_bytes);
}

mapping& mapping::operator=(mapping&& other) noexcept {
  leave_to_parent();
  made_in_ = other.made_in_;
  children_ = other.children_;
  region_ = std::move(other.region_);
  return *this;
}

// A forked child has a hole where the bytes would be, which the kernel fills with what the child maps next: its own
// buffers, stacks and libraries. They are not the region's to unmap.
void mapping::leave_to_parent() noexcept {
  if (children_ == inherit::no && region_.get_size() != 0 && !made_in_.is_here()) {
    detail::leave_to_parent(std::move(region_));
  }
}

void mapping::map(const unique_fd& memfd, std::size_t bytes, void* at, int options) {
  try {
    region_ = bip::mapped_region(mappable{memfd.get()}, bip::read_write, 0, bytes, at, MAP_NORESERVE | options);
  } catch (const bip::interprocess_exception& failure) {
    throw_no_room(bytes, failure.what());
  }
  set_advice();
}

void mapping::replace(const unique_fd& memfd) {
  // The kernel swaps the two under one lock; the region still unmaps the same range in the end.
  const auto* const at = ::mmap(region_.get_address(), region_.get_size(), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memfd.get(), 0);
  if (at == MAP_FAILED) detail::throw_system_error_with(errno, "mmap MAP_FIXED", text(region_.get_size(), " bytes"));
  set_advice();
}

void mapping::set_advice() {
  system_call("madvise MADV_DONTDUMP", ::madvise, region_.get_address(), region_.get_size(), MADV_DONTDUMP);
  if (children_ == inherit::no) {
    system_call("madvise MADV_DONTFORK", ::madvise, region_.get_address(), region_.get_size(), MADV_DONTFORK);
  }
}

}  // namespace muster
