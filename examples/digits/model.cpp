// SPDX-License-Identifier: BSL-1.0
#include "model.hpp"

#include <cmath>
#include <random>

#include <muster/device/eigen.hpp>

#include "data.hpp"

namespace digits {

namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Index label_of(const tensor& labels, Eigen::Index row) {
  return labels.span<std::int32_t>()[static_cast<std::size_t>(row)];
}

matrix layer(const matrix& x, const tensor& w, const tensor& b) {
  matrix made = x * as_matrix<float>(w);
  made.rowwise() += as_vector<float>(b).transpose();
  return made;
}

// What comes out of the last layer, less the largest of each row; and what is made of it.
class verdict {
public:
  explicit verdict(matrix scores) : scores_(std::move(scores)) {
    scores_.colwise() -= scores_.rowwise().maxCoeff().eval();
  }

  [[nodiscard]] Eigen::Index guess(Eigen::Index row) const {
    Eigen::Index most = 0;
    scores_.row(row).maxCoeff(&most);
    return most;
  }

  [[nodiscard]] double loss(const tensor& labels) const {
    double total = 0;
    for (Eigen::Index row = 0; row < scores_.rows(); ++row) total += loss_of(row, label_of(labels, row));
    return total / static_cast<double>(scores_.rows());
  }

  [[nodiscard]] std::int64_t right(const tensor& labels) const {
    std::int64_t count = 0;
    for (Eigen::Index row = 0; row < scores_.rows(); ++row) count += guess(row) == label_of(labels, row) ? 1 : 0;
    return count;
  }

  [[nodiscard]] tensor guesses() const {
    auto made = tensor::empty<std::int32_t>({static_cast<std::size_t>(scores_.rows())});
    Eigen::Index row = 0;
    for (auto& each : made.span<std::int32_t>()) each = static_cast<std::int32_t>(guess(row++));
    return made;
  }

  /// Of the loss, by what came out of the last layer: (p - [1 at the label]) / n.
  [[nodiscard]] matrix gradient(const tensor& labels) const {
    matrix made = scores_.array().exp().matrix();
    made.array().colwise() /= made.rowwise().sum().array().eval();
    for (Eigen::Index row = 0; row < made.rows(); ++row) made(row, label_of(labels, row)) -= 1;
    return made / static_cast<float>(made.rows());
  }

private:
  // -log p[label] = log(sum of all exp) - score of the label, of which the largest is exp(0). Exact also where it is
  // almost 0, as it is after a while.
  [[nodiscard]] double loss_of(Eigen::Index row, Eigen::Index label) const {
    const auto most = guess(row);
    double others = 0;
    for (Eigen::Index kind = 0; kind < scores_.cols(); ++kind) {
      if (kind != most) others += std::exp(static_cast<double>(scores_(row, kind)));
    }
    return std::log1p(others) - static_cast<double>(scores_(row, label));
  }

  matrix scores_;
};

tensor gradient_of_w(const matrix& x, const matrix& gradient) {
  auto made = tensor::empty<float>({static_cast<std::size_t>(x.cols()), static_cast<std::size_t>(gradient.cols())});
  as_matrix<float>(made).noalias() = x.transpose() * gradient;
  return made;
}
tensor gradient_of_b(const matrix& gradient) {
  auto made = tensor::empty<float>({static_cast<std::size_t>(gradient.cols())});
  as_vector<float>(made) = gradient.colwise().sum();
  return made;
}

matrix hidden_layer(const matrix& x, const tensor& w1, const tensor& b1) { return layer(x, w1, b1).cwiseMax(0.0F); }

// As K. He et al. do it for rectifiers: "Delving Deep into Rectifiers", ICCV 2015.
tensor random_weights(std::size_t rows, std::size_t columns, std::mt19937_64& random) {
  std::normal_distribution<float> value(0.0F, std::sqrt(2.0F / static_cast<float>(rows)));
  auto made = tensor::empty<float>({rows, columns});
  for (auto& each : made.span<float>()) each = value(random);
  return made;
}

}  // namespace

std::tuple<double, std::int64_t, tensor, tensor> softmax_gradients(const tensor& images, const tensor& labels,
                                                                   const tensor& w, const tensor& b) {
  const matrix x = as_matrix<float>(images);
  const verdict found(layer(x, w, b));
  const auto gradient = found.gradient(labels);
  return {found.loss(labels), found.right(labels), gradient_of_w(x, gradient), gradient_of_b(gradient)};
}

std::tuple<double, std::int64_t, tensor, tensor, tensor, tensor> network_gradients(const tensor& images,
                                                                                   const tensor& labels,
                                                                                   const tensor& w1, const tensor& b1,
                                                                                   const tensor& w2, const tensor& b2) {
  const matrix x = as_matrix<float>(images);
  const auto hidden = hidden_layer(x, w1, b1);
  const verdict found(layer(hidden, w2, b2));
  const auto gradient = found.gradient(labels);
  const matrix back = (gradient * as_matrix<float>(w2).transpose()).array() * (hidden.array() > 0).cast<float>();
  return {found.loss(labels),
          found.right(labels),
          gradient_of_w(x, back),
          gradient_of_b(back),
          gradient_of_w(hidden, gradient),
          gradient_of_b(gradient)};
}

std::tuple<double, tensor> softmax_guesses(const tensor& images, const tensor& labels, const tensor& w,
                                           const tensor& b) {
  const verdict found(layer(as_matrix<float>(images), w, b));
  return {found.loss(labels), found.guesses()};
}

std::tuple<double, tensor> network_guesses(const tensor& images, const tensor& labels, const tensor& w1,
                                           const tensor& b1, const tensor& w2, const tensor& b2) {
  const verdict found(layer(hidden_layer(as_matrix<float>(images), w1, b1), w2, b2));
  return {found.loss(labels), found.guesses()};
}

std::vector<tensor> softmax_weights() { return {tensor::zeros<float>({pixels, kinds}), tensor::zeros<float>({kinds})}; }

std::vector<tensor> network_weights(std::size_t hidden, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto w1 = random_weights(pixels, hidden, random);
  auto w2 = random_weights(hidden, kinds, random);
  return {std::move(w1), tensor::zeros<float>({hidden}), std::move(w2), tensor::zeros<float>({kinds})};
}

}  // namespace digits
