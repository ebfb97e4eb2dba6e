// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <utility>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/unique_fd.hpp>

namespace muster {

/// A memfd mapped whole, readable and writable, for as long as the object lives.
///
/// Nothing in it goes into core dumps. With `inherit::no` a forked child does not see it: it must not keep (or write)
/// the memory of a process that is being recovered, or is dead. The child's copy of the object is nothing there: what
/// the child itself has mapped at those addresses since stays when it goes.
///
/// mlockall(MCL_FUTURE) has no page made by the mapping: each is made, and locked, when it is touched. mlockall
/// (MCL_CURRENT) makes all pages of what is open: so a large reservation is opened as far as it is used.
/// Thread safety: distinct objects: safe. Shared objects: safe; the bytes need their own discipline.
/// Process safety: each process makes its own mapping, at its own address.
class mapping {
public:
  enum class inherit { yes, no };
  /// How much of it can be read and written from the start; the rest when it is opened.
  enum class opened { whole, nothing };

  mapping() = default;

  /// Throws muster::error: errc::out_of_memory when the address space has no room, with RLIMIT_AS in the message; when
  /// mlockall(MCL_FUTURE) is in force and RLIMIT_MEMLOCK is too small, with that.
  mapping(const unique_fd& memfd, std::size_t bytes, inherit children);
  /// The same, at an address that is a multiple of `alignment`, itself one of the page size.
  mapping(const unique_fd& memfd, std::size_t bytes, inherit children, std::size_t alignment,
          opened at_first = opened::whole);
  mapping(mapping&& other) noexcept { *this = std::move(other); }
  mapping& operator=(mapping&& other) noexcept;
  ~mapping() { unmap(); }

  /// Has the first `bytes` bytes readable and writable. Throws errc::out_of_memory when the kernel refuses.
  /// Requires: called in the process that made it.
  /// Cost: a load, mostly; else a system call, once for each 8 MiB.
  void open(std::size_t bytes) const {
    if (bytes > opened_bytes_.load(std::memory_order_acquire)) [[unlikely]]
      open_more(bytes);
  }

  /// Maps another memfd of the same size in place of this one, at the same address. Other threads may look at the bytes
  /// meanwhile: they see those of the one or of the other. Throws what system_call throws; nothing has changed then.
  /// Requires: with `inherit::no`, called in the process that made it. All of it is open.
  void replace(const unique_fd& memfd);

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {begin_, bytes_}; }

private:
  void map(const unique_fd& memfd, void* at, int options, opened at_first);
  void set_advice() const;
  void open_more(std::size_t bytes) const;
  void unmap() noexcept;

  process_mark made_in_;
  inherit children_ = inherit::no;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  // Only grows. Release, acquire: who finds it large enough finds the pages accessible.
  mutable std::atomic<std::size_t> opened_bytes_ = 0;
};

}  // namespace muster
