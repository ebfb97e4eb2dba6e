// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <span>

#include <boost/interprocess/mapped_region.hpp>

#include <muster/base/fork_count.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster {

/// A memfd mapped whole, readable and writable, for as long as the object lives.
///
/// Nothing in it goes into core dumps. With `inherit::no` a forked child does not see it: a worker's own children
/// must not keep (or write) the memory of a worker that is being recovered. The child's copy of the object is nothing
/// there: what the child itself has mapped at those addresses since stays when it goes.
/// Thread safety: distinct objects: safe. Shared objects: safe; the bytes need their own discipline.
/// Process safety: each process makes its own mapping, at its own address.
class mapping {
public:
  enum class inherit { yes, no };

  mapping() = default;

  /// Throws muster::error: errc::out_of_memory when the address space has no room, with RLIMIT_AS in the message.
  mapping(const unique_fd& memfd, std::size_t bytes, inherit children);
  /// The same, at an address that is a multiple of `alignment`, itself one of the page size.
  mapping(const unique_fd& memfd, std::size_t bytes, inherit children, std::size_t alignment);
  mapping(mapping&&) noexcept = default;
  mapping& operator=(mapping&& other) noexcept;
  ~mapping() { leave_to_parent(); }

  /// Maps another memfd of the same size in place of this one, at the same address. Other threads may look at the bytes
  /// meanwhile: they see those of the one or of the other. Throws what system_call throws; nothing has changed then.
  /// Requires: with `inherit::no`, called in the process that made it.
  void replace(const unique_fd& memfd);

  [[nodiscard]] std::span<std::byte> bytes() const noexcept {
    return {static_cast<std::byte*>(region_.get_address()), region_.get_size()};
  }

private:
  void map(const unique_fd& memfd, std::size_t bytes, void* at, int options);
  void set_advice();
  void leave_to_parent() noexcept;

  process_mark made_in_;
  inherit children_ = inherit::no;
  boost::interprocess::mapped_region region_;
};

}  // namespace muster
