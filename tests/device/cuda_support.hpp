// SPDX-License-Identifier: BSL-1.0
#pragma once

// A device with its kernels, and elements that are on it and on the host.

#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <muster/base/text.hpp>
#include <muster/cuda/driver.hpp>
#include <muster/device/tensor.hpp>

#include "kernel_set.hpp"
#include "quick_random.hpp"
#include "visit_dtype.hpp"

namespace muster::test {

/// Device 0, its primary context made current in this thread, one stream, all kernels, and some memory. Throws
/// errc::no_device.
class cuda_bench {
public:
  explicit cuda_bench(std::size_t bytes = std::size_t{64} << 20U) : driver_(cuda_driver::load()), bytes_(bytes) {
    driver_->context_retain(&context_, 0);
    driver_->context_set(context_);
    driver_->stream_create(&stream_, CU_STREAM_NON_BLOCKING);
    kernels_.emplace(*driver_);
    map();
  }
  cuda_bench(const cuda_bench&) = delete;
  cuda_bench& operator=(const cuda_bench&) = delete;
  ~cuda_bench() {
    static_cast<void>(driver_->stream_synchronize.attempt(stream_));
    static_cast<void>(driver_->memory_unmap.attempt(first_, bytes_));
    static_cast<void>(driver_->address_free.attempt(first_, bytes_));
    kernels_.reset();
    static_cast<void>(driver_->stream_destroy.attempt(stream_));
    static_cast<void>(driver_->context_set.attempt(nullptr));
    static_cast<void>(driver_->context_release.attempt(0));
  }

  [[nodiscard]] const cuda_driver& driver() const { return *driver_; }
  [[nodiscard]] const detail::kernel_set& kernels() const { return *kernels_; }
  [[nodiscard]] CUstream stream() const { return stream_; }

  /// Some of the memory, aligned to 256 bytes.
  [[nodiscard]] CUdeviceptr take(std::size_t bytes) {
    const auto found = first_ + used_;
    used_ += (bytes + 255) / 256 * 256;
    if (used_ > bytes_) throw std::bad_alloc();
    return found;
  }
  /// All of it may be taken once more.
  void forget() { used_ = 0; }

  void send(CUdeviceptr to, std::span<const std::byte> from) const {
    if (!from.empty()) driver_->copy_async(to, reinterpret_cast<CUdeviceptr>(from.data()), from.size(), stream_);
  }
  void fetch(std::span<std::byte> to, CUdeviceptr from) const {
    if (!to.empty()) driver_->copy_async(reinterpret_cast<CUdeviceptr>(to.data()), from, to.size(), stream_);
    driver_->stream_synchronize(stream_);
  }

private:
  void map() {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access{};
    access.location = wanted.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemGenericAllocationHandle memory = 0;
    driver_->memory_create(&memory, bytes_, &wanted, 0);
    driver_->address_reserve(&first_, bytes_, 0, 0, 0);
    driver_->memory_map(first_, bytes_, 0, memory, 0);
    driver_->memory_release(memory);
    driver_->memory_set_access(first_, bytes_, &access, 1);
  }

  std::shared_ptr<const cuda_driver> driver_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::optional<detail::kernel_set> kernels_;
  std::size_t bytes_;
  CUdeviceptr first_ = 0;
  std::size_t used_ = 0;
};

/// Runs the current test once more in a process of its own, with these variables set before it starts, because what the
/// driver reads it reads once. True in that process; where it is false there is nothing left to do.
inline bool runs_alone(const std::vector<std::string>& variables) {
  if (std::getenv("MUSTER_RUNS_ALONE") != nullptr) return true;
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  const auto filter = text("--gtest_filter=", test->test_suite_name(), '.', test->name());
  const auto child = ::fork();
  if (child == 0) {
    ::setenv("MUSTER_RUNS_ALONE", "1", 1);
    for (const auto& each : variables) ::putenv(const_cast<char*>(each.c_str()));
    ::execl("/proc/self/exe", "test_cuda", filter.c_str(), "--gtest_brief=1", nullptr);
    ::_exit(127);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return false;
}

/// Any bits, and numbers of a size that something comes of, half and half; or only those.
enum class numbers { any, tame };

template <class T>
T random_element(quick_random& random, numbers which = numbers::any) {
  const bool is_tame = random() % 2 == 0 || which == numbers::tame;
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(is_tame ? random() % 20 : random());
  } else if constexpr (detail::is_complex<T>) {
    const auto real = random_element<typename T::value_type>(random, which);
    return {real, random_element<typename T::value_type>(random, which)};
  } else if constexpr (detail::is_half<T>) {
    if (is_tame) return T(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 64);
    return T::from_bits(static_cast<std::uint16_t>(random()));
  } else {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    if (is_tame) return static_cast<T>(static_cast<int>(random() % 200'001) - 100'000) / 128;
    return std::bit_cast<T>(static_cast<bits>(random()));
  }
}

template <class T>
bool is_not_a_number(T value) {
  if constexpr (detail::is_half<T>) {
    return static_cast<float>(value) != static_cast<float>(value);
  } else {
    return value != value;
  }
}

/// The same bits, or both no numbers.
template <class T>
bool same_element(T a, T b) {
  if constexpr (detail::is_complex<T>) {
    return same_element(a.real(), b.real()) && same_element(a.imag(), b.imag());
  } else {
    return std::memcmp(&a, &b, sizeof(T)) == 0 || (is_not_a_number(a) && is_not_a_number(b));
  }
}

/// Where a view's elements are among those of an array.
struct placing {
  std::string name;
  tensor_shape shape;
  tensor_strides strides;
  std::size_t offset = 0;
  bool repeats = false;  ///< has some more than once, so that they cannot be written
};

/// An array of elements, the same on the host and on the device.
class mirrored {
public:
  mirrored(cuda_bench& bench, dtype type, std::size_t count, unsigned seed, numbers which = numbers::any)
      : bench_(bench),
        type_(type),
        host_(storage::allocate(count * dtype_size(type), memory::local)),
        device_(bench.take(host_->bytes().size())) {
    detail::visit_dtype(type, [&]<class T>(std::type_identity<T>) {
      quick_random random(seed);
      auto* const all = elements<T>();
      for (std::size_t at = 0; at < count; ++at) all[at] = random_element<T>(random, which);
    });
    send();
  }

  /// What is on the host becomes what is on the device.
  void send() const { bench_.send(device_, host_->bytes()); }

  [[nodiscard]] tensor on_host(const placing& where) const {
    return tensor::over(host_, type_, where.shape, where.strides, where.offset * dtype_size(type_));
  }
  [[nodiscard]] detail::cuda_view on_device(const placing& where) const {
    return {device_ + where.offset * dtype_size(type_), type_, where.shape, where.strides};
  }

  /// How many elements of the device's are not those of the host's.
  [[nodiscard]] std::size_t differences() const {
    std::vector<std::byte> bytes(host_->bytes().size());
    bench_.fetch(bytes, device_);
    if (bytes.empty() || std::memcmp(bytes.data(), host_->bytes().data(), bytes.size()) == 0) return 0;
    return detail::visit_dtype(type_, [&]<class T>(std::type_identity<T>) {
      const auto* const found = reinterpret_cast<const T*>(bytes.data());
      const auto* const expected = elements<T>();
      std::size_t count = 0;
      for (std::size_t at = 0; at < bytes.size() / sizeof(T); ++at) {
        count += same_element(found[at], expected[at]) ? 0U : 1U;
      }
      return count;
    });
  }

private:
  template <class T>
  [[nodiscard]] T* elements() const {
    return reinterpret_cast<T*>(host_->bytes().data());
  }

  cuda_bench& bench_;
  dtype type_;
  std::shared_ptr<const storage> host_;
  CUdeviceptr device_;
};

}  // namespace muster::test
