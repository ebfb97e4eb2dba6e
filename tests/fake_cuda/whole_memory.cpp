// SPDX-License-Identifier: BSL-1.0
#include "whole_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "failure.hpp"

namespace fake_cuda {

namespace {

struct handle_content {
  static constexpr std::uint64_t expected_magic = 0x6563'7069'656b'6166;

  std::uint64_t magic = 0;
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(handle_content) <= sizeof(CUipcMemHandle));

std::size_t whole(std::size_t bytes) { return (bytes + granularity - 1) / granularity * granularity; }

struct stat status_of(int descriptor) {
  struct stat found{};
  require(::fstat(descriptor, &found) == 0, CUDA_ERROR_MAP_FAILED);
  return found;
}

class descriptor_of_other {
public:
  explicit descriptor_of_other(const handle_content& given) {
    const auto path = "/proc/" + std::to_string(given.process) + "/fd/" + std::to_string(given.descriptor);
    value_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    require(value_ >= 0, CUDA_ERROR_MAP_FAILED);
  }
  descriptor_of_other(const descriptor_of_other&) = delete;
  descriptor_of_other& operator=(const descriptor_of_other&) = delete;
  ~descriptor_of_other() { ::close(value_); }

  [[nodiscard]] int get() const { return value_; }

private:
  int value_;
};

std::shared_ptr<const allocation> import(ledger& counted_by, const handle_content& given) {
  const descriptor_of_other found(given);
  require(status_of(found.get()).st_ino == given.inode, CUDA_ERROR_MAP_FAILED);
  auto made = std::make_shared<const allocation>(counted_by, found.get());
  require(made->bytes() == given.bytes, CUDA_ERROR_MAP_FAILED);
  return made;
}

}  // namespace

CUdeviceptr whole_memory::place(block what, blocks& among) {
  const auto bytes = what.memory->bytes();
  const auto first = space_.reserve(bytes, granularity);
  space_.map(first, bytes, what.memory);
  space_.set_access(first, bytes, what.in->physical, true, true);
  for (const auto& [by, of] : accesses_) {
    if (of == what.memory->physical()) space_.set_access(first, bytes, by, true, true);
  }
  among.emplace(first, std::move(what));
  return first;
}

void whole_memory::remove(blocks& among, blocks::iterator which) {
  const auto bytes = which->second.memory->bytes();
  space_.unmap(which->first, bytes);
  space_.free(which->first, bytes);
  among.erase(which);
}

CUdeviceptr whole_memory::allocate(ledger& counted_by, const std::shared_ptr<context>& in, std::size_t bytes,
                                   std::size_t limit) {
  require(bytes != 0, CUDA_ERROR_INVALID_VALUE);
  const std::scoped_lock lock(mutex_);
  auto memory = std::make_shared<const allocation>(counted_by, in->physical, whole(bytes), limit, false);
  return place({.memory = std::move(memory), .in = in}, allocated_);
}

void whole_memory::free(CUdeviceptr first) {
  const std::scoped_lock lock(mutex_);
  const auto found = allocated_.find(first);
  require(found != allocated_.end(), CUDA_ERROR_INVALID_VALUE);
  remove(allocated_, found);
}

CUipcMemHandle whole_memory::handle_of(CUdeviceptr first) const {
  const std::scoped_lock lock(mutex_);
  const auto found = allocated_.find(first);
  require(found != allocated_.end(), CUDA_ERROR_INVALID_VALUE);
  const auto& memory = *found->second.memory;
  const handle_content content{.magic = handle_content::expected_magic,
                               .process = ::getpid(),
                               .descriptor = memory.descriptor(),
                               .inode = status_of(memory.descriptor()).st_ino,
                               .bytes = memory.bytes()};
  CUipcMemHandle made{};
  std::memcpy(static_cast<void*>(&made), &content, sizeof content);
  return made;
}

CUdeviceptr whole_memory::open(ledger& counted_by, const std::shared_ptr<context>& in, const CUipcMemHandle& handle) {
  handle_content given;
  std::memcpy(static_cast<void*>(&given), &handle, sizeof given);
  require(given.magic == handle_content::expected_magic, CUDA_ERROR_INVALID_VALUE);
  require(given.process != ::getpid(), CUDA_ERROR_INVALID_CONTEXT);
  const std::scoped_lock lock(mutex_);
  auto memory = import(counted_by, given);
  for (auto& [first, each] : opened_) {
    if (each.from != given.process || each.in->physical != in->physical) continue;
    require(each.in == in, CUDA_ERROR_INVALID_CONTEXT);
    if (status_of(each.memory->descriptor()).st_ino != given.inode) continue;
    ++each.count;
    return first;
  }
  return place({.memory = std::move(memory), .in = in, .from = given.process}, opened_);
}

void whole_memory::close(CUdeviceptr first) {
  const std::scoped_lock lock(mutex_);
  const auto found = opened_.find(first);
  require(found != opened_.end(), CUDA_ERROR_INVALID_VALUE);
  if (--found->second.count == 0) remove(opened_, found);
}

bool whole_memory::let_access(int by_physical, int of_physical) {
  const std::scoped_lock lock(mutex_);
  if (!accesses_.emplace(by_physical, of_physical).second) return false;
  for (const auto* among : {&allocated_, &opened_}) {
    for (const auto& [first, each] : *among) {
      if (each.memory->physical() == of_physical) {
        space_.set_access(first, each.memory->bytes(), by_physical, true, true);
      }
    }
  }
  return true;
}

void whole_memory::forget(const context* gone) {
  const std::scoped_lock lock(mutex_);
  for (auto* among : {&allocated_, &opened_}) {
    for (auto at = among->begin(); at != among->end();) {
      const auto each = at++;
      if (each->second.in.get() == gone) remove(*among, each);
    }
  }
}

std::size_t whole_memory::allocated() const {
  const std::scoped_lock lock(mutex_);
  return allocated_.size();
}

std::size_t whole_memory::opened() const {
  const std::scoped_lock lock(mutex_);
  return opened_.size();
}

}  // namespace fake_cuda
