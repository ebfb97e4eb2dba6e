// SPDX-License-Identifier: BSL-1.0
#include "wire.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace fake_nccl {

namespace {

constexpr std::uint64_t magic_of_boards = 0x66616b656e63636c;  // "fakenccl"

struct place {
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
};

place place_of(const ncclUniqueId& id) {
  place found;
  std::memcpy(&found, id.internal, sizeof found);
  return found;
}

}  // namespace

std::size_t ring::put(const std::byte* from, std::size_t bytes) noexcept {
  const auto at = put_.load(std::memory_order_relaxed);
  const auto free = room - static_cast<std::size_t>(at - taken_.load(std::memory_order_acquire));
  const auto count = std::min(bytes, free);
  for (std::size_t each = 0; each < count; ++each) bytes_[(at + each) % room] = from[each];
  put_.store(at + count, std::memory_order_release);
  return count;
}

std::size_t ring::take(std::byte* to, std::size_t bytes) noexcept {
  const auto at = taken_.load(std::memory_order_relaxed);
  const auto there = static_cast<std::size_t>(put_.load(std::memory_order_acquire) - at);
  const auto count = std::min(bytes, there);
  for (std::size_t each = 0; each < count; ++each) to[each] = bytes_[(at + each) % room];
  taken_.store(at + count, std::memory_order_release);
  return count;
}

ncclUniqueId make_board() {
  const auto file = ::memfd_create("fake-nccl", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, sizeof(board)) != 0) throw ncclSystemError;
  if (::pwrite(file, &magic_of_boards, sizeof magic_of_boards, 0) != sizeof magic_of_boards) throw ncclSystemError;
  const place made{.pid = ::getpid(), .descriptor = file};
  ncclUniqueId id{};
  std::memcpy(id.internal, &made, sizeof made);
  return id;
}

board_mapping open_board(const ncclUniqueId& id) {
  const auto where = place_of(id);
  const auto path = "/proc/" + std::to_string(where.pid) + "/fd/" + std::to_string(where.descriptor);
  const auto file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw ncclSystemError;
  auto* const memory = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) throw ncclSystemError;
  board_mapping found(static_cast<board*>(memory), [](board* which) { ::munmap(which, sizeof(board)); });
  if (found->magic != magic_of_boards) throw ncclInvalidArgument;
  return found;
}

void forget_board(const ncclUniqueId& id) noexcept {
  const auto where = place_of(id);
  if (where.pid == ::getpid()) ::close(where.descriptor);
}

}  // namespace fake_nccl
