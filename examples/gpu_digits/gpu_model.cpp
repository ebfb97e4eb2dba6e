// SPDX-License-Identifier: BSL-1.0
#include "gpu_model.hpp"

#include <muster/cuda/cublas.hpp>
#include <muster/cuda/cuda_device.hpp>
#include <muster/cuda/module.hpp>

#include "kernel_image.hpp"

namespace gpu_digits {

namespace {

using muster::cublas;
using muster::cuda_device;
using muster::cuda_kernel;
using muster::cuda_module;
using muster::multiply;
using muster::transposed;

struct network_kernels {
  explicit network_kernels(const cuda_device& on) : module(on, kernel_image()) {}

  cuda_module module;
  cuda_kernel add_and_rectify = module.kernel("add_and_rectify");
  cuda_kernel judge = module.kernel("judge");
  cuda_kernel rectify_back = module.kernel("rectify_back");
  cuda_kernel sum_columns = module.kernel("sum_columns");
};

// The sizes of a matrix, as kernels take them.
long long rows_of(const tensor& matrix) { return static_cast<long long>(matrix.shape()[0]); }
long long columns_of(const tensor& matrix) { return static_cast<long long>(matrix.shape()[1]); }

/// One pass of the network, forwards and back.
class pass {
public:
  explicit pass(muster::device where)
      : gpu_(cuda_device::open(where)),
        where_(where),
        scope_(*gpu_),
        blas_(gpu_->part<cublas>()),
        kernels_(gpu_->part<network_kernels>()) {}

  [[nodiscard]] tensor product(const muster::factor& a, const muster::factor& b) const {
    auto made = tensor::empty<float>({a.rows(), b.columns()}, where_);
    multiply(blas_, a, b, made);
    return made;
  }
  [[nodiscard]] tensor hidden_layer(const tensor& x, const tensor& w, const tensor& b) const {
    auto made = product(x, w);
    kernels_.add_and_rectify.launch(made.size(), made.device_data<float>(), b.device_data<float>(), rows_of(made),
                                    columns_of(made));
    return made;
  }
  [[nodiscard]] tensor column_sums(const tensor& of) const {
    auto made = tensor::empty<float>({of.shape()[1]}, where_);
    kernels_.sum_columns.launch(made.size(), of.device_data<float>(), made.device_data<float>(), rows_of(of),
                                columns_of(of));
    return made;
  }
  void rectify_back(const tensor& gradient, const tensor& rectified) const {
    kernels_.rectify_back.launch(gradient.size(), gradient.device_data<float>(), rectified.device_data<float>(),
                                 static_cast<long long>(gradient.size()));
  }

  /// Scores become the gradient by them.
  struct verdict {
    tensor losses;
    tensor guesses;
  };
  [[nodiscard]] verdict judge(const tensor& scores, const tensor& b, const tensor& labels) const {
    verdict made{.losses = tensor::empty<double>({scores.shape()[0]}, where_),
                 .guesses = tensor::empty<std::int32_t>({scores.shape()[0]}, where_)};
    kernels_.judge.launch(scores.shape()[0], scores.device_data<float>(), b.device_data<float>(),
                          labels.device_data<std::int32_t>(), made.losses.device_data<double>(),
                          made.guesses.device_data<std::int32_t>(), rows_of(scores), columns_of(scores));
    return made;
  }

private:
  const std::shared_ptr<cuda_device> gpu_;
  const muster::device where_;
  const cuda_device::scope scope_;
  cublas& blas_;
  network_kernels& kernels_;
};

double mean(const tensor& losses) {
  double sum = 0;
  for (const auto each : losses.to_vector<double>()) sum += each;
  return sum / static_cast<double>(losses.size());
}

std::int64_t count_right(const tensor& guesses, const tensor& labels) {
  const auto found = guesses.to_vector<std::int32_t>();
  const auto expected = labels.to_vector<std::int32_t>();
  std::int64_t count = 0;
  for (std::size_t row = 0; row < found.size(); ++row) count += found[row] == expected[row] ? 1 : 0;
  return count;
}

}  // namespace

std::tuple<double, std::int64_t, tensor, tensor, tensor, tensor> network_gradients(const muster::rank_context& context,
                                                                                   const tensor& images,
                                                                                   const tensor& labels,
                                                                                   const tensor& w1, const tensor& b1,
                                                                                   const tensor& w2, const tensor& b2) {
  const pass network(context.device);
  const auto hidden = network.hidden_layer(images, w1, b1);
  const auto gradient = network.product(hidden, w2);
  const auto found = network.judge(gradient, b2, labels);
  const auto back = network.product(gradient, transposed(w2));
  network.rectify_back(back, hidden);
  auto by_w1 = network.product(transposed(images), back);
  auto by_w2 = network.product(transposed(hidden), gradient);
  auto by_b1 = network.column_sums(back);
  auto by_b2 = network.column_sums(gradient);
  return {mean(found.losses), count_right(found.guesses, labels), std::move(by_w1), std::move(by_b1), std::move(by_w2),
          std::move(by_b2)};
}

}  // namespace gpu_digits
