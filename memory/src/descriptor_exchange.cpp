// SPDX-License-Identifier: BSL-1.0
#include <muster/memory/detail/descriptor_exchange.hpp>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>

namespace muster {

descriptor_name descriptor_exchange::make_name() {
  auto made = made_.load(std::memory_order_relaxed);
  do {
    if (made <= descriptor_name::most_number) continue;
    throw error(errc::overflow,
                text("this process has made all ", made,
                     " names of descriptors that it may make: keep what was deposited, and use it again"));
  } while (!made_.compare_exchange_weak(made, made + 1, std::memory_order_relaxed));
  return {self_, incarnation_, made};
}

void descriptor_exchange::require_depositable(descriptor_name name, const unique_fd& what) const {
  require_here();
  if (!what) throw error(errc::invalid_argument, "a descriptor was to be deposited, but none was given");
  if (name.depositor() == self_ && name.is_of(incarnation_)) return;
  throw error(errc::invalid_argument,
              text("a descriptor was to be deposited under a name of participant ", index_of(name.depositor()),
                   ", incarnation ", name.incarnation(), ", by participant ", index_of(self_), ", incarnation ",
                   incarnation_, ": names are those that make_name() of the depositor has given"));
}

}  // namespace muster
