// SPDX-License-Identifier: BSL-1.0
#include "memory.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "failure.hpp"

namespace fake_cuda {

namespace {

constexpr const char* name_of_memory = "fake_cuda_memory_of_";

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// The GPU that a descriptor's memory is of, or less than 0.
int physical_of(int descriptor) {
  std::array<char, 256> target{};
  const auto path = "/proc/self/fd/" + std::to_string(descriptor);
  if (::readlink(path.c_str(), target.data(), target.size() - 1) < 0) return -1;
  const std::string name(target.data());
  const auto prefix = std::string("/memfd:") + name_of_memory;
  return name.starts_with(prefix) ? std::atoi(name.c_str() + prefix.size()) : -1;
}

ino_t inode_of(int descriptor, std::size_t& bytes) {
  struct stat found{};
  require(::fstat(descriptor, &found) == 0, CUDA_ERROR_INVALID_VALUE);
  bytes = static_cast<std::size_t>(found.st_size);
  return found.st_ino;
}

// Where devices' addresses are easily told from the host's. Only a hint: sanitizers have other plans.
std::uintptr_t next_hint(std::size_t bytes) {
  static std::atomic<std::uintptr_t> next = 0x3000'0000'0000;
  return next.fetch_add(bytes);
}

template <class Map>
typename Map::const_iterator last_from(const Map& map, std::uintptr_t address) {
  const auto after = map.upper_bound(address);
  return after == map.begin() ? map.end() : std::prev(after);
}

}  // namespace

// ---- physical memory

allocation::allocation(ledger& counted_by, int physical, std::size_t bytes, std::size_t limit, bool exportable)
    : ledger_(counted_by), physical_(physical), bytes_(bytes), is_exportable_(exportable) {
  descriptor_ = ::memfd_create((name_of_memory + std::to_string(physical)).c_str(), MFD_CLOEXEC);
  require(descriptor_ >= 0, CUDA_ERROR_OPERATING_SYSTEM);
  std::size_t ignored = 0;
  inode_ = inode_of(descriptor_, ignored);
  if (!ledger_.add(inode_, physical, bytes, limit) || ::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    ::close(descriptor_);
    throw failure{CUDA_ERROR_OUT_OF_MEMORY};
  }
}

allocation::allocation(ledger& counted_by, int descriptor) : ledger_(counted_by), physical_(physical_of(descriptor)) {
  require(physical_ >= 0, CUDA_ERROR_INVALID_VALUE);
  inode_ = inode_of(descriptor, bytes_);
  descriptor_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  require(descriptor_ >= 0, CUDA_ERROR_OPERATING_SYSTEM);
  ledger_.add(inode_, physical_, bytes_, SIZE_MAX);
}

allocation::~allocation() {
  ::close(descriptor_);
  ledger_.remove(inode_);
}

int allocation::duplicate() const {
  const int made = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  require(made >= 0, CUDA_ERROR_OPERATING_SYSTEM);
  return made;
}

// ---- addresses

CUdeviceptr address_space::reserve(std::size_t bytes, std::size_t alignment) {
  const auto whole = bytes + alignment;
  auto* const found =
      ::mmap(pointer(next_hint(whole)), whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(found != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
  const auto begin = reinterpret_cast<std::uintptr_t>(found);
  const auto first = (begin + alignment - 1) / alignment * alignment;
  if (first != begin) ::munmap(found, first - begin);
  if (const auto rest = begin + whole - (first + bytes); rest != 0) ::munmap(pointer(first + bytes), rest);
  const std::scoped_lock lock(mutex_);
  reserved_.emplace(first, bytes);
  return first;
}

void address_space::free(CUdeviceptr first, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto found = reserved_.find(first);
  require(found != reserved_.end() && found->second == bytes, CUDA_ERROR_INVALID_VALUE);
  const auto inside = mapped_.lower_bound(first);
  require(inside == mapped_.end() || inside->first >= first + bytes, CUDA_ERROR_INVALID_VALUE);
  ::munmap(pointer(first), bytes);
  reserved_.erase(found);
}

bool address_space::is_reserved(std::uintptr_t first, std::size_t bytes) const {
  const auto found = last_from(reserved_, first);
  return found != reserved_.end() && first + bytes <= found->first + found->second;
}

void address_space::map(CUdeviceptr first, std::size_t bytes, std::shared_ptr<const allocation> what) {
  const std::scoped_lock lock(mutex_);
  require(is_reserved(first, bytes) && bytes == what->bytes(), CUDA_ERROR_INVALID_VALUE);
  const auto before = last_from(mapped_, first + bytes - 1);
  require(before == mapped_.end() || before->first + before->second.bytes <= first, CUDA_ERROR_INVALID_VALUE);
  auto* const made = ::mmap(pointer(first), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, what->descriptor(), 0);
  require(made != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
  mapped_.emplace(first, mapping{bytes, std::move(what), 0});
}

void address_space::unmap(CUdeviceptr first, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  auto end = mapped_.find(first);
  auto next = static_cast<std::uintptr_t>(first);
  for (; end != mapped_.end() && end->first == next && next < first + bytes; ++end) next += end->second.bytes;
  require(next == first + bytes && bytes != 0, CUDA_ERROR_INVALID_VALUE);
  mapped_.erase(mapped_.find(first), end);
  ::mmap(pointer(first), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void address_space::set_access(CUdeviceptr first, std::size_t bytes, int physical, bool allowed, bool are_peers) {
  const std::scoped_lock lock(mutex_);
  auto next = static_cast<std::uintptr_t>(first);
  const auto bit = std::uint64_t{1} << static_cast<unsigned>(physical);
  for (auto at = mapped_.find(first); next < first + bytes; ++at) {
    require(at != mapped_.end() && at->first == next, CUDA_ERROR_INVALID_VALUE);
    require(are_peers || !allowed || at->second.memory->physical() == physical, CUDA_ERROR_INVALID_DEVICE);
    auto& by = at->second.accessible_by;
    by = allowed ? by | bit : by & ~bit;
    protect(at->first, at->second);
    next += at->second.bytes;
  }
}

void address_space::protect(std::uintptr_t first, const mapping& which) const {
  const bool open = which.accessible_by != 0 && (users_ > 0 || !protects_);
  ::mprotect(pointer(first), which.bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void address_space::begin_use() {
  const std::scoped_lock lock(mutex_);
  if (++users_ != 1 || !protects_) return;
  for (const auto& [first, each] : mapped_) protect(first, each);
}

void address_space::end_use() {
  const std::scoped_lock lock(mutex_);
  if (--users_ != 0 || !protects_) return;
  for (const auto& [first, each] : mapped_) protect(first, each);
}

// ---- the host's memory

void address_space::register_host(std::uintptr_t first, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto before = last_from(registered_, first + bytes - 1);
  require(before == registered_.end() || before->first + before->second <= first,
          CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  require(!is_reserved(first, 1), CUDA_ERROR_INVALID_VALUE);
  registered_.emplace(first, bytes);
}

void address_space::unregister_host(std::uintptr_t first) {
  const std::scoped_lock lock(mutex_);
  require(registered_.erase(first) == 1, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

// ---- who asks

address_space::mappings_by_address::const_iterator address_space::mapping_at(std::uintptr_t address) const {
  const auto found = last_from(mapped_, address);
  return found != mapped_.end() && address < found->first + found->second.bytes ? found : mapped_.end();
}

address_space::range address_space::find(CUdeviceptr first, std::size_t bytes, int physical) const {
  const std::scoped_lock lock(mutex_);
  const auto host = last_from(registered_, first);
  if (host != registered_.end() && first + bytes <= host->first + host->second) {
    return {place::registered, host->first, host->second, -1};
  }
  if (!is_reserved(first, 1)) return {};
  const auto begin = mapping_at(first);
  const auto bit = physical == any_device ? ~std::uint64_t{0} : std::uint64_t{1} << static_cast<unsigned>(physical);
  for (auto at = begin; at != mapped_.end() && (at->second.accessible_by & bit) != 0; ++at) {
    const auto end = at->first + at->second.bytes;
    if (first + bytes <= end)
      return {place::device, begin->first, begin->second.bytes, begin->second.memory->physical()};
    if (const auto next = std::next(at); next == mapped_.end() || next->first != end) break;
  }
  throw failure{CUDA_ERROR_INVALID_VALUE};
}

bool address_space::is_reached(CUdeviceptr first, std::size_t bytes, int physical) const {
  try {
    return find(first, bytes, physical).where == place::device;
  } catch (const failure&) {
    return false;
  }
}

std::size_t address_space::reservations() const {
  const std::scoped_lock lock(mutex_);
  return reserved_.size();
}

std::size_t address_space::mappings() const {
  const std::scoped_lock lock(mutex_);
  return mapped_.size();
}

std::size_t address_space::registrations() const {
  const std::scoped_lock lock(mutex_);
  return registered_.size();
}

}  // namespace fake_cuda
