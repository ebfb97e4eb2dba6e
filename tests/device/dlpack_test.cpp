// SPDX-License-Identifier: BSL-1.0
#include <muster/device/dlpack.hpp>

#include <array>
#include <memory>

#include "device_support.hpp"

namespace muster::dlpack_test {
namespace {

using test::expect_refused;
using testing::ElementsAre;

// A library that exports six floats, and counts how often they were given back.
class Dlpack : public testing::Test {
protected:
  Dlpack() {
    managed_.dl_tensor.data = values_.data();
    managed_.dl_tensor.ndim = 2;
    managed_.dl_tensor.dtype = {.code = 2, .bits = 32, .lanes = 1};
    managed_.dl_tensor.shape = shape_.data();
    managed_.manager_ctx = this;
    managed_.deleter = [](dlpack_managed_tensor* left) { ++static_cast<Dlpack*>(left->manager_ctx)->given_back_; };
  }

  template <class... Parts>
  void expect_import_refused(const Parts&... parts) {
    expect_refused([&] { static_cast<void>(from_dlpack(&managed_)); }, parts...);
    EXPECT_EQ(given_back_, 0);
  }

  std::array<float, 6> values_ = {1, 2, 3, 4, 5, 6};
  std::array<std::int64_t, 2> shape_ = {2, 3};
  std::array<std::int64_t, 2> strides_ = {1, 2};
  dlpack_managed_tensor managed_;
  int given_back_ = 0;
};

TEST_F(Dlpack, AnImportedTensorIsTheSameMemoryAndIsGivenBackOnce) {
  {
    const auto made = from_dlpack(&managed_);
    EXPECT_EQ(made.shape(), (tensor_shape{2, 3}));
    EXPECT_TRUE(made.is_contiguous());
    EXPECT_EQ(made.data<float>(), values_.data());
    const auto part = made.slice(1, 2, 1);
    EXPECT_THAT(part.to_vector<float>(), ElementsAre(2, 5));
    EXPECT_EQ(given_back_, 0);
  }
  EXPECT_EQ(given_back_, 1);
}

TEST_F(Dlpack, StridesAndByteOffsetAreHeeded) {
  managed_.dl_tensor.strides = strides_.data();
  EXPECT_THAT(from_dlpack(&managed_).to_vector<float>(), ElementsAre(1, 3, 5, 2, 4, 6));
  strides_ = {-3, -1};
  managed_.dl_tensor.byte_offset = 5 * sizeof(float);
  EXPECT_THAT(from_dlpack(&managed_).to_vector<float>(), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_EQ(given_back_, 2);
}

TEST_F(Dlpack, AnEmptyOrSingleTensorIsImported) {
  managed_.dl_tensor.ndim = 0;
  managed_.dl_tensor.shape = nullptr;
  EXPECT_EQ(from_dlpack(&managed_).item<float>(), 1.0F);
  managed_.dl_tensor.ndim = 2;
  managed_.dl_tensor.shape = shape_.data();
  managed_.dl_tensor.data = nullptr;
  shape_ = {0, 3};
  EXPECT_EQ(from_dlpack(&managed_).shape(), (tensor_shape{0, 3}));
  EXPECT_EQ(given_back_, 2);
}

TEST_F(Dlpack, AnotherDeviceIsRefused) {
  managed_.dl_tensor.device.device_type = 10;  // ROCm
  expect_import_refused("device of type 10", "CPU");
}

TEST_F(Dlpack, UnknownElementsAreRefused) {
  managed_.dl_tensor.dtype = {.code = 2, .bits = 32, .lanes = 4};
  expect_import_refused("4 lanes");
  managed_.dl_tensor.dtype = {.code = 2, .bits = 128, .lanes = 1};
  expect_import_refused("code 2", "128 bits");
  managed_.dl_tensor.dtype = {.code = 3, .bits = 64, .lanes = 1};
  expect_import_refused("code 3");
}

TEST_F(Dlpack, AnImpossibleShapeIsRefused) {
  shape_ = {-1, 3};
  expect_import_refused("size of -1");
  shape_ = {INT64_MAX, 3};
  expect_import_refused("must fit");
  shape_ = {2, 3};
  strides_ = {INT64_MAX, INT64_MIN};
  managed_.dl_tensor.strides = strides_.data();
  expect_import_refused("strides");
  managed_.dl_tensor.ndim = 9;
  expect_import_refused("9 dimensions");
  managed_.dl_tensor.ndim = -1;
  expect_import_refused("-1 dimensions");
}

TEST_F(Dlpack, NoMemoryAndUnalignedMemoryAreRefused) {
  managed_.dl_tensor.byte_offset = 2;
  expect_import_refused("multiples of 4");
  managed_.dl_tensor.data = nullptr;
  expect_import_refused("must be in memory");
}

TEST_F(Dlpack, AHandleThatIsRefusedIsDeleted) {
  managed_.dl_tensor.device.device_type = 2;
  EXPECT_THROW(static_cast<void>(from_dlpack(dlpack_handle(&managed_))), error);
  EXPECT_EQ(given_back_, 1);
}

// The same by a library of version 1.
class VersionedDlpack : public testing::Test {
protected:
  VersionedDlpack() {
    managed_.dl_tensor.data = values_.data();
    managed_.dl_tensor.ndim = 1;
    managed_.dl_tensor.dtype = {.code = 2, .bits = 32, .lanes = 1};
    managed_.dl_tensor.shape = &length_;
    managed_.manager_ctx = &given_back_;
    managed_.deleter = [](dlpack_versioned_tensor* left) { ++*static_cast<int*>(left->manager_ctx); };
  }

  template <class... Parts>
  void expect_import_refused(const Parts&... parts) {
    expect_refused([&] { static_cast<void>(from_dlpack(&managed_)); }, parts...);
    EXPECT_EQ(given_back_, 0);
  }

  std::array<float, 3> values_ = {1, 2, 3};
  std::int64_t length_ = 3;
  int given_back_ = 0;
  dlpack_versioned_tensor managed_;
};

TEST_F(VersionedDlpack, AnImportedTensorIsTheSameMemoryAndIsGivenBackOnce) {
  managed_.version.minor = 7;  // adds what is not needed
  managed_.flags = dlpack_versioned_tensor::is_copy;
  {
    const auto made = from_dlpack(dlpack_versioned_handle(&managed_));
    EXPECT_EQ(made.data<float>(), values_.data());
    EXPECT_EQ(given_back_, 0);
  }
  EXPECT_EQ(given_back_, 1);
}

TEST_F(VersionedDlpack, AnotherMajorVersionIsRefused) {
  managed_.version = {.major = 2, .minor = 1};
  expect_import_refused("DLPack 2.1", "version 1");
}

TEST_F(VersionedDlpack, WhatIsReadOnlyStaysSoAndIsGivenBackOnce) {
  managed_.flags = dlpack_versioned_tensor::read_only;
  {
    const auto made = from_dlpack(dlpack_versioned_handle(&managed_));
    EXPECT_TRUE(made.is_read_only());
    EXPECT_EQ(made.data<const float>(), values_.data());
    EXPECT_THROW(made.fill(0.0F), error);
    EXPECT_EQ(given_back_, 0);
  }
  EXPECT_EQ(given_back_, 1);
}

TEST_F(VersionedDlpack, WhatIsExportedSaysItsVersionAndComesBack) {
  const auto made = tensor::arange<std::int32_t>(24).reshape({4, 6}).slice(1, 3, 1);
  auto exported = to_dlpack_versioned(made);
  EXPECT_EQ(exported->version.major, 1U);
  EXPECT_EQ(exported->flags, 0U);
  const auto back = from_dlpack(std::move(exported));
  EXPECT_EQ(back.data(), made.data());
  EXPECT_TRUE(equal(back, made));
}

TEST(ToDlpack, KeepsTheMemoryUntilItIsDeleted) {
  auto made = tensor::arange<std::int32_t>(24).reshape({4, 6}).slice(1, 3, 1);
  const std::weak_ptr<const storage> memory_of_it = made.storage();
  auto exported = to_dlpack(made);
  made = tensor();
  const auto& seen = exported->dl_tensor;
  EXPECT_EQ(static_cast<const std::int32_t*>(seen.data)[seen.byte_offset], 1);
  EXPECT_EQ(seen.ndim, 2);
  EXPECT_THAT(std::span(seen.shape, 2), ElementsAre(4, 2));
  EXPECT_THAT(std::span(seen.strides, 2), ElementsAre(6, 1));
  EXPECT_FALSE(memory_of_it.expired());
  exported.reset();
  EXPECT_TRUE(memory_of_it.expired());
}

TEST(ToDlpack, EveryDtypeComesBack) {
  for (std::size_t number = 0; number < dtype_count; ++number) {
    const auto made = tensor::zeros(static_cast<dtype>(number), {2, 0, 3, 1});
    EXPECT_TRUE(equal(from_dlpack(to_dlpack(made)), made)) << made;
    const auto ones = tensor::zeros(static_cast<dtype>(number), {3});
    ones.fill(1);
    const auto back = from_dlpack(to_dlpack(ones));
    EXPECT_EQ(back.data(), ones.data());
    EXPECT_TRUE(equal(back, ones));
  }
}

}  // namespace
}  // namespace muster::dlpack_test
