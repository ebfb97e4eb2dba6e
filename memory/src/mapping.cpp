// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/mapping.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>

#include <boost/interprocess/exceptions.hpp>

#include <muster/base/system_call.hpp>

namespace muster {

namespace {

namespace bip = boost::interprocess;

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

}  // namespace

mapping::mapping(const unique_fd& memfd, std::size_t bytes, inherit children) : children_(children) {
  try {
    region_ = bip::mapped_region(mappable{memfd.get()}, bip::read_write, 0, bytes, nullptr, MAP_NORESERVE);
  } catch (const bip::interprocess_exception& failure) {
    throw error(errc::out_of_memory, text("mapping ", text_of_bytes(bytes), " of shared memory failed in process ",
                                          ::getpid(), ": ", failure.what(), "; ", address_space_limit()));
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
