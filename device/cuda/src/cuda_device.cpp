// SPDX-License-Identifier: BSL-1.0
#include <muster/cuda/cuda_device.hpp>

#include <cstring>
#include <exception>
#include <new>

#include <muster/base/error.hpp>
#include <muster/cuda/cuda_error.hpp>

#include "cuda_block.hpp"
#include "cuda_devices.hpp"
#include "device_heap.hpp"
#include "kernel_set.hpp"
#include "sharing_table.hpp"

namespace muster {

// ---- the thread's context

cuda_device::scope::scope(const cuda_device& which) : driver_(which.driver()) {
  which.made_in_.require_here("a CUDA device");
  driver_.context_get(&before_);
  if (before_ != which.context()) driver_.context_set(which.context());
  if (before_ == nullptr) before_ = which.context();  // nobody else's: it may stay
  device_before_ = detail::exchange_called_device(which.where());
}

cuda_device::scope::~scope() {
  detail::exchange_called_device(device_before_);
  CUcontext now = nullptr;
  static_cast<void>(driver_.context_get.attempt(&now));
  if (now != before_) static_cast<void>(driver_.context_set.attempt(before_));
}

// ---- the device

std::shared_ptr<cuda_device> cuda_device::open(device which) {
  return detail::cuda_devices::of_program().open_one(which);
}

std::shared_ptr<cuda_device> cuda_device::make(std::shared_ptr<const cuda_driver> driver, device which) {
  return std::make_shared<cuda_device>(only_here{}, std::move(driver), which);
}

void cuda_device::log_to(log_sink where) { detail::cuda_devices::of_program().log_to(std::move(where)); }

unsigned cuda_device::count() { return detail::cuda_devices::of_program().count(); }

cuda_device::cuda_device(only_here, std::shared_ptr<const cuda_driver> driver, device which)
    : driver_(std::move(driver)), where_(which) {
  driver_->device_get(&handle_, which.index());
  CUuuid uuid{};
  driver_->device_uuid(&uuid, handle_);
  std::memcpy(uuid_.data(), uuid.bytes, uuid_.size());
  int major = 0;
  int minor = 0;
  driver_->device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle_);
  driver_->device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle_);
  capability_ = static_cast<unsigned>(10 * major + minor);
  require_capability();
  CUcontext before = nullptr;
  driver_->context_get(&before);
  retain_context();
  try {
    open_context();
  } catch (...) {
    static_cast<void>(driver_->context_set.attempt(context_));
    drop_members();
    static_cast<void>(driver_->context_set.attempt(before));
    static_cast<void>(driver_->context_release.attempt(handle_));
    throw;
  }
}

// Of those in between, or newer ones, the driver says itself whether it has code (CUDA_ERROR_NO_BINARY_FOR_GPU).
void cuda_device::require_capability() const {
  constexpr unsigned least = MUSTER_CUDA_LEAST_CAPABILITY;
  if (capability_ >= least) return;
  throw error(errc::no_device,
              text(where_, " has compute capability ", capability_ / 10, '.', capability_ % 10,
                   ", but the kernels of this build need ", least / 10, '.', least % 10,
                   " or newer: use another device, or cpu, or build with it in MUSTER_CUDA_ARCHITECTURES"));
}

void cuda_device::retain_context() {
  const auto result = driver_->context_retain.attempt(&context_, handle_);
  if (result == CUDA_SUCCESS) return;
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return driver_->context_retain(&context_, handle_);  // throws what it means
  std::size_t bytes = 0;
  static_cast<void>(driver_->device_memory.attempt(&bytes, handle_));
  throw error(errc::out_of_memory,
              text(where_, ", which has ", text_of_bytes(bytes), ", has no room for this process's context, some ",
                   "hundred MiB: others hold its memory (nvidia-smi shows them); end some of them, or use another "
                   "device"));
}

void cuda_device::open_context() {
  const scope current(*this);
  int counts = 0;
  driver_->device_attribute(&counts, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, handle_);
  counts_in_memory_ = counts != 0;
  compute_ = std::make_unique<cuda_stream>(*driver_);
  copies_ = std::make_unique<cuda_stream>(*driver_);
  kernels_ = std::make_unique<detail::kernel_set>(*driver_);
  sharing_ = std::make_unique<detail::sharing_table>(*driver_);
  const auto quiesce = [this] {
    compute_->synchronize();
    copies_->synchronize();
    sharing_->watch().finish();
  };
  const auto forget = [this](const detail::device_extent* memory) { sharing_->forget(memory); };
  heap_ = std::make_unique<detail::device_heap>(*driver_, handle_, text(where_),
                                                detail::sharing_means_of(*driver_, handle_),
                                                detail::device_heap::hooks{.quiesce = quiesce, .forget = forget});
}

cuda_device::~cuda_device() {
  if (!is_here()) {  // a forked child's driver answers nothing, and a thread that it does not have may have a lock
    detail::leave_to_parent(std::move(parts_), std::move(sharing_), std::move(heap_), std::move(kernels_),
                            std::move(copies_), std::move(compute_));
    return;
  }
  // What fails here, fails because the program ends, and the driver has before it.
  static_cast<void>(driver_->context_set.attempt(context_));
  {
    const scoped_lock lock(parts_mutex_);
    while (!parts_.empty()) parts_.pop_back();
  }
  drop_members();
  static_cast<void>(driver_->context_release.attempt(handle_));
}

// While the context is there: what is destroyed in it after that may by then be somebody else's.
void cuda_device::drop_members() noexcept {
  sharing_.reset();
  heap_.reset();
  kernels_.reset();
  copies_.reset();
  compute_.reset();
}

// Made without the lock, so that one part may ask for another.
void* cuda_device::part(const std::type_info& what, const std::function<std::shared_ptr<void>()>& make) {
  {
    const scoped_lock lock(parts_mutex_);
    for (const auto& [type, each] : parts_) {
      if (type == what) return each.get();
    }
  }
  const scope current(*this);
  auto made = make();
  const scoped_lock lock(parts_mutex_);
  for (const auto& [type, each] : parts_) {
    if (type == what) return each.get();  // somebody else was quicker
  }
  return parts_.emplace_back(what, std::move(made)).second.get();
}

bool cuda_device::reaches(const cuda_device& other) const {
  int found = 0;
  driver_->device_reaches(&found, handle_, other.handle_);
  return found != 0;
}

std::string cuda_device::name() const {
  std::array<char, 256> found{};
  driver_->device_name(found.data(), static_cast<int>(found.size()), handle_);
  return found.data();
}

cuda_memory cuda_device::memory() const {
  const scope current(*this);
  cuda_memory found{.held_bytes = heap_->held_bytes(), .unused_bytes = heap_->free_bytes()};
  driver_->memory_info(&found.free_bytes, &found.total_bytes);
  return found;
}

std::shared_ptr<const device_block> cuda_device::allocate(std::size_t bytes) {
  const scope current(*this);
  collect();
  return std::make_shared<const detail::cuda_block>(shared_from_this(), heap_->allocate(bytes), bytes);
}

// Of a device that is lost, nobody gets memory any more; and where the host has none to note it in, this piece is lost.
void cuda_device::give_back(const detail::device_piece& what, shared_block tag) noexcept {
  try {
    const scope current(*this);
    if (tag && !sharing_->is_ours_alone(tag)) return sharing_->keep(what, std::move(tag));
    heap_->release(what);
  } catch (const error&) {           // NOLINT(bugprone-empty-catch)
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
}

// What others have lent, and nobody here has any more, goes then.
void cuda_device::await_all() {
  auto left = sharing_->take_left();
  try {
    compute_->synchronize();
    copies_->synchronize();
  } catch (...) {
    sharing_->leave(std::move(left));
    throw;
  }
}

void cuda_device::synchronize() {
  const scope current(*this);
  await_all();
  require_awaited();
}

void cuda_device::settle() noexcept {
  try {
    const scope current(*this);
    static_cast<void>(driver_->stream_synchronize.attempt(compute_->handle()));
    static_cast<void>(driver_->stream_synchronize.attempt(copies_->handle()));
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the context is gone, and its streams with it
  }
}

void cuda_device::finish() noexcept {
  static_cast<void>(driver_->context_set.attempt(context_));
  static_cast<void>(driver_->stream_synchronize.attempt(compute_->handle()));
  static_cast<void>(driver_->stream_synchronize.attempt(copies_->handle()));
  sharing_->watch().finish();
  sharing_->drop_kept();  // which keeps this device
}

// What others have lent has been let go of by then.
void cuda_device::trim() {
  const scope current(*this);
  await_all();
  collect();
  heap_->trim(0);
  sharing_->drop_closed();
}

}  // namespace muster
