// SPDX-License-Identifier: BSL-1.0
#pragma once

// One GPU as this process has it: its context, its streams, its memory, and what tensors ask it to do.
//
// Programs mostly name devices only, `tensor.to(muster::device::cuda(0))`. Those with kernels of their own, or that
// call cuBLAS, take the stream from here:
//
//     const auto gpu = muster::cuda_device::open(muster::device::cuda(0));
//     const muster::cuda_device::scope scope(*gpu);                      // its context is this thread's
//     my_kernel<<<blocks, threads, 0, gpu->compute().handle()>>>(x.device_data<float>(), …);

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/log.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/cuda/stream.hpp>
#include <muster/device/detail/device_block.hpp>

namespace muster {

class shared_block;

namespace detail {
class cuda_block;
class cuda_copy_lane;
class cuda_devices;
class device_extent;
class device_heap;
struct device_piece;
struct device_promise;
struct device_tag;
class exported_extent;
class imported_extent;
class kernel_set;
struct left_blocks;
class received_block;
class sharing_table;
}  // namespace detail

/// What there is, and how much of it is free, on a device; and what this process has of it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct cuda_memory {
  std::size_t total_bytes = 0;   ///< of the device
  std::size_t free_bytes = 0;    ///< of the device, for whoever asks first
  std::size_t held_bytes = 0;    ///< what tensors of this process lie in
  std::size_t unused_bytes = 0;  ///< of that: free for tensors of this process
};

/// A GPU. There is one object of each in a process, which makes the device's primary context when it is opened first,
/// and keeps it.
///
/// All that tensors ask for is given to the stream compute(), and so are copies: each sees what was asked for before,
/// by whichever thread of the process. What a program gives to streams of its own must be made to wait for that, and
/// that for it, by events.
///
/// An error after which the driver answers nothing but that error (an illegal address in a kernel, a failed launch) is
/// errc::device_lost, in this call or a later one; all tensors on the device are lost for this process. A worker of a
/// pool that meets one is replaced when its task has ended.
///
/// Thread safety: safe. All members make the context current while they run.
/// Process safety: belongs to the process that opened it; after fork() the child must not use it (errc::forked), and
/// gives nothing back.
/// Lifetime: tensors on the device keep it.
class cuda_device final : public device_operations, public std::enable_shared_from_this<cuda_device> {
  struct only_here {};

public:
  /// Throws errc::no_device where there is no driver or no device; errc::invalid_argument for an index that there is
  /// not; errc::out_of_memory where the device has no room for a context.
  /// Cost: the first time some tenths of a second, and half a GiB of the device's memory.
  [[nodiscard]] static std::shared_ptr<cuda_device> open(device which);
  /// How many there are for this process; 0 where there is no driver. Makes no context.
  [[nodiscard]] static unsigned count();

  /// Where messages about devices go, of this process, from now on: log_to_stderr until something else is said. So far
  /// there is one, said once for each cause, and once more after each call of this: why a tensor goes to another
  /// process as a copy that could have gone by reference.
  static void log_to(log_sink where);

  /// For cuda_devices.
  ///@{
  [[nodiscard]] static std::shared_ptr<cuda_device> make(std::shared_ptr<const cuda_driver> driver, device which);
  cuda_device(only_here, std::shared_ptr<const cuda_driver> driver, device which);
  ///@}
  ~cuda_device() override;

  /// While it lives, the device's context is that of the calling thread.
  ///
  /// Thread safety: an object belongs to its thread.
  class scope {
  public:
    /// Throws errc::forked.
    explicit scope(const cuda_device& which);
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope();

  private:
    const cuda_driver& driver_;
    CUcontext before_ = nullptr;
    device device_before_;
  };

  /// Returns the name by which this process knows the device.
  [[nodiscard]] device where() const noexcept override { return where_; }
  /// False in a forked child.
  [[nodiscard]] bool is_here() const noexcept { return made_in_.is_here(); }
  /// Returns the name of the model, as the driver reports it: "NVIDIA H200".
  [[nodiscard]] std::string name() const;
  /// The same in all processes, whatever they call the device.
  [[nodiscard]] const std::array<std::byte, 16>& uuid() const noexcept { return uuid_; }
  /// Whether it reaches the other one's memory by itself, so that copies from there do not go by way of the host.
  [[nodiscard]] bool reaches(const cuda_device& other) const;
  /// 90 is 9.0.
  [[nodiscard]] unsigned compute_capability() const noexcept { return capability_; }
  /// Asks the driver how much memory the device has, and how much is free; adds how much this process holds.
  [[nodiscard]] cuda_memory memory() const;
  /// Returns the functions of the driver, and its handles of the device and of the device's primary context, for calls
  /// of the driver. Lifetime: that of this object.
  ///@{
  [[nodiscard]] const cuda_driver& driver() const noexcept { return *driver_; }
  [[nodiscard]] CUdevice handle() const noexcept { return handle_; }
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  ///@}
  /// What tensors ask for is done here.
  [[nodiscard]] const cuda_stream& compute() const noexcept { return *compute_; }
  /// For copies that are to go on beside that.
  [[nodiscard]] const cuda_stream& copies() const noexcept { return *copies_; }

  /// Allocates at least one byte; tensor::empty calls it. Throws errc::out_of_memory, with what was asked for and what
  /// is free.
  [[nodiscard]] std::shared_ptr<const device_block> allocate(std::size_t bytes) override;
  /// The operations that tensors use on their device. Programs call the functions of tensor.hpp, convert.hpp and
  /// arithmetic.hpp, which check dtypes and shapes first.
  ///@{
  void copy(const tensor& to, const tensor& from) override;
  void fill(const tensor& which, std::span<const std::byte> element) override;
  void convert(const tensor& to, const tensor& from) override;
  void accumulate(const tensor& into, const tensor& from, element_op op) override;
  void scale(const tensor& which, double factor) override;
  void axpy(double factor, const tensor& x, const tensor& y) override;
  void divide(const tensor& which, double divisor) override;
  void apply(const rule_step& rule, const rule_step_tensors& tensors) override;
  ///@}
  /// Throws errc::peer_lost, once, when a tensor of another process that was worked on here was never finished there,
  /// because that process, or its context, was lost before.
  void synchronize() override;
  /// Returns when the device has done all that it was given, or is lost: for whoever lets go of memory that it may be
  /// at work on. Whatever failed is left for synchronize() to say.
  void settle() noexcept;
  /// As pinned_memory.
  [[nodiscard]] std::shared_ptr<void> pin(const tensor& what) override;
  /// Of the stream copies().
  [[nodiscard]] std::unique_ptr<copy_lane> make_copy_lane() override;
  /// As synchronize(), at the end of the program: what fails then, nobody can mend.
  void finish() noexcept;
  /// Gives memory that no tensor lies in back to the driver, when all that the device was given has been done.
  void trim();

  /// The T of this device, made of it when it is first asked for: a module of kernels, a handle of a library. Parts go
  /// when the device does, the last one first. Throws what making it throws.
  template <class T>
  [[nodiscard]] T& part() {
    const auto found = part(typeid(T), [this] { return std::make_shared<T>(*this); });
    return *static_cast<T*>(found);
  }

private:
  friend class detail::cuda_block;
  friend class detail::cuda_copy_lane;
  friend class detail::cuda_devices;
  friend class detail::exported_extent;
  friend class detail::imported_extent;
  friend class detail::received_block;

  void require_capability() const;
  void retain_context();
  void open_context();
  void drop_members() noexcept;
  [[nodiscard]] void* part(const std::type_info& what, const std::function<std::shared_ptr<void>()>& make)
      MUSTER_EXCLUDES(parts_mutex_);
  void copy_here(const tensor& to, const tensor& from);
  void copy_from_device(const tensor& to, const tensor& from);
  void copy_from_peer(const tensor& to, const tensor& from, cuda_device& peer);
  void copy_from_host(const tensor& to, const tensor& from);
  void copy_to_host(const tensor& to, const tensor& from);
  void give_back(const detail::device_piece& what, shared_block tag) noexcept;

  // Of memory that other processes have too: device_sharing.cpp.
  [[nodiscard]] bool counts_in_memory() const noexcept { return counts_in_memory_; }
  [[nodiscard]] std::shared_ptr<detail::exported_extent> export_extent(
      const std::shared_ptr<const detail::device_extent>& memory);
  [[nodiscard]] std::shared_ptr<const detail::device_extent> exported(std::uint64_t name) const;
  [[nodiscard]] std::shared_ptr<const detail::imported_extent> import(const detail::device_tag& tag,
                                                                      const shared_block& anchor);
  void keep_mapped(const std::shared_ptr<const detail::imported_extent>& which);
  [[nodiscard]] std::shared_ptr<const detail::imported_extent> kept_mapping(std::uint64_t name) const;
  void drop_kept() noexcept;
  void await_all();
  void let_go_later(std::unique_ptr<detail::left_blocks> what, bool at_end_of_task) noexcept;
  void promise(const shared_block& anchor) const;
  void note_awaited(const shared_block& anchor, const detail::device_promise& what);
  void forget_awaited(const shared_block& anchor, std::uint64_t count);
  void require_awaited();
  void collect();

  const process_mark made_in_;
  const std::shared_ptr<const cuda_driver> driver_;
  const device where_;
  CUdevice handle_ = 0;
  CUcontext context_ = nullptr;
  unsigned capability_ = 0;
  bool counts_in_memory_ = false;
  std::array<std::byte, 16> uuid_{};
  // In the order in which they are made; the context goes last.
  std::unique_ptr<cuda_stream> compute_;
  std::unique_ptr<cuda_stream> copies_;
  std::unique_ptr<detail::kernel_set> kernels_;
  std::unique_ptr<detail::device_heap> heap_;
  std::unique_ptr<detail::sharing_table> sharing_;
  mutex parts_mutex_;
  std::vector<std::pair<std::type_index, std::shared_ptr<void>>> parts_ MUSTER_GUARDED_BY(parts_mutex_);
};

}  // namespace muster
