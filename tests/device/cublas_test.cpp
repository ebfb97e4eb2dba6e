// SPDX-License-Identifier: BSL-1.0
// What is asked of cuBLAS, and what is made of its answers: the functions of it that are called are played here.
#include <muster/cuda/cublas.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include <muster/base/error.hpp>
#include <muster/base/exit_status.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/device/tensor.hpp>

#include "device_support.hpp"
#include "gpu_fixture.hpp"
#include "processes.hpp"

namespace muster::cublas_test {
namespace {

struct product_asked {
  std::array<std::int64_t, 3> sizes{};    // rows and columns there, and what is summed over
  std::array<std::int64_t, 3> leading{};  // of both factors, and the product
};

product_asked last_asked;
cublasStatus_t answer_to_create = CUBLAS_STATUS_SUCCESS;
int destroyed = 0;

}  // namespace
}  // namespace muster::cublas_test

extern "C" {

cublasStatus_t CUBLASWINAPI cublasCreate_v2(cublasHandle_t* handle) {
  *handle = nullptr;
  return muster::cublas_test::answer_to_create;
}
cublasStatus_t CUBLASWINAPI cublasDestroy_v2(cublasHandle_t /*handle*/) {
  ++muster::cublas_test::destroyed;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t CUBLASWINAPI cublasSetStream_v2(cublasHandle_t /*handle*/, cudaStream_t /*stream*/) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* CUBLASWINAPI cublasGetStatusString(cublasStatus_t /*status*/) { return "as it was told to"; }
cublasStatus_t CUBLASWINAPI cublasGemmEx_64(cublasHandle_t /*handle*/, cublasOperation_t /*form_a*/,
                                            cublasOperation_t /*form_b*/, std::int64_t m, std::int64_t n,
                                            std::int64_t k, const void* /*scale*/, const void* /*a*/,
                                            cudaDataType /*type_a*/, std::int64_t leading_a, const void* /*b*/,
                                            cudaDataType /*type_b*/, std::int64_t leading_b, const void* /*keep*/,
                                            void* /*c*/, cudaDataType /*type_c*/, std::int64_t leading_c,
                                            cublasComputeType_t /*compute*/, cublasGemmAlgo_t /*how*/) {
  muster::cublas_test::last_asked = {.sizes = {m, n, k}, .leading = {leading_a, leading_b, leading_c}};
  return CUBLAS_STATUS_SUCCESS;
}
}

namespace muster::cublas_test {
namespace {

using sizes = std::array<std::int64_t, 3>;

constexpr auto where = device::cuda(0);

class Cublas : public test::gpu_test {
protected:
  void SetUp() override {
    test::gpu_test::SetUp();
    answer_to_create = CUBLAS_STATUS_SUCCESS;
    last_asked = {};
    destroyed = 0;
  }
};

tensor matrix(std::size_t rows, std::size_t columns) { return tensor::zeros<float>({rows, columns}, where); }

TEST_F(Cublas, RowsAreColumnsThere) {
  const auto gpu = cuda_device::open(where);
  const cuda_device::scope current(*gpu);
  multiply(gpu->part<cublas>(), matrix(2, 3), matrix(3, 5), matrix(2, 5));
  EXPECT_EQ(last_asked.sizes, sizes({5, 2, 3}));
  EXPECT_EQ(last_asked.leading, sizes({5, 3, 5}));
}

TEST_F(Cublas, AProductOverNoElementsIsAskedForWithRowsThatItTakes) {
  const auto gpu = cuda_device::open(where);
  const cuda_device::scope current(*gpu);
  auto& by = gpu->part<cublas>();
  multiply(by, matrix(2, 0), matrix(0, 5), matrix(2, 5));
  EXPECT_EQ(last_asked.sizes, sizes({5, 2, 0}));
  EXPECT_EQ(last_asked.leading, sizes({5, 1, 5}));
  multiply(by, matrix(2, 0), transposed(matrix(5, 0)), matrix(2, 5));
  EXPECT_EQ(last_asked.leading, sizes({1, 1, 5}));
}

TEST_F(Cublas, AHandleIsDestroyedWhereItWasMadeAndInNoForkedChild) {
  auto by = std::make_optional<cublas>(*cuda_device::open(where));
  const auto children = test::spawn(1, [&](std::size_t) {
    by.reset();
    return destroyed;
  });
  EXPECT_EQ(children->wait(0), exit_status::exited(0));
  by.reset();
  EXPECT_EQ(destroyed, 1);
}

TEST_F(Cublas, AHandleThatAFullDeviceHasNoRoomForIsNoMemory) {
  const auto gpu = cuda_device::open(where);
  answer_to_create = CUBLAS_STATUS_NOT_INITIALIZED;
  test::expect_error(errc::out_of_memory, [&] { const cublas by(*gpu); }, "cublasCreate failed");
  answer_to_create = CUBLAS_STATUS_ARCH_MISMATCH;
  test::expect_error(errc::invalid_argument, [&] { const cublas by(*gpu); }, "cublasCreate failed");
}

}  // namespace
}  // namespace muster::cublas_test
