// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/mapping.hpp>

#include <sys/mman.h>
#include <sys/resource.h>

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

mapping::mapping(const unique_fd& memfd, std::size_t bytes, inherit children) {
  try {
    region_ = bip::mapped_region(mappable{memfd.get()}, bip::read_write, 0, bytes, nullptr, MAP_NORESERVE);
  } catch (const bip::interprocess_exception& failure) {
    throw error(errc::out_of_memory, text("mapping ", text_of_bytes(bytes), " of shared memory failed in process ",
                                          ::getpid(), ": ", failure.what(), "; ", address_space_limit()));
  }
  system_call("madvise MADV_DONTDUMP", ::madvise, region_.get_address(), bytes, MADV_DONTDUMP);
  if (children == inherit::no) {
    system_call("madvise MADV_DONTFORK", ::madvise, region_.get_address(), bytes, MADV_DONTFORK);
  }
}

}  // namespace muster
