// SPDX-License-Identifier: BSL-1.0
#include "model.hpp"

#include <cmath>
#include <random>

#include <muster/device/eigen.hpp>

#include "data.hpp"

namespace digits {

namespace {

// What is computed on the way is in tensors, too: of the arena's memory as much is kept as the next step needs, where
// the heap gives an array of that size back to the system, and each step would fault it in again, page by page.
tensor room_for(Eigen::Index rows, Eigen::Index columns) {
  return tensor::empty<float>({static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)});
}

Eigen::Index label_of(const tensor& labels, Eigen::Index row) {
  return labels.span<const std::int32_t>()[static_cast<std::size_t>(row)];
}

tensor layer(const tensor& x, const tensor& w, const tensor& b) {
  const auto from = as_matrix<const float>(x);
  const auto by = as_matrix<const float>(w);
  auto made = room_for(from.rows(), by.cols());
  auto to = as_matrix<float>(made);
  to.noalias() = from * by;
  to.rowwise() += as_vector<const float>(b).transpose();
  return made;
}

// What comes out of the last layer, less the largest of each row; and what is made of it.
class verdict {
public:
  explicit verdict(tensor scores) : memory_(std::move(scores)), scores_(as_matrix<float>(memory_)) {
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
  [[nodiscard]] tensor gradient(const tensor& labels) const {
    auto made = room_for(scores_.rows(), scores_.cols());
    auto to = as_matrix<float>(made);
    to = scores_.array().exp().matrix();
    to.array().colwise() /= to.rowwise().sum().array().eval();
    for (Eigen::Index row = 0; row < to.rows(); ++row) to(row, label_of(labels, row)) -= 1;
    to /= static_cast<float>(to.rows());
    return made;
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

  tensor memory_;
  muster::matrix_map<float> scores_;
};

tensor gradient_of_w(const tensor& x, const tensor& gradient) {
  const auto from = as_matrix<const float>(x);
  const auto by = as_matrix<const float>(gradient);
  auto made = room_for(from.cols(), by.cols());
  as_matrix<float>(made).noalias() = from.transpose() * by;
  return made;
}
tensor gradient_of_b(const tensor& gradient) {
  const auto from = as_matrix<const float>(gradient);
  auto made = tensor::empty<float>({static_cast<std::size_t>(from.cols())});
  as_vector<float>(made) = from.colwise().sum();
  return made;
}

tensor hidden_layer(const tensor& x, const tensor& w1, const tensor& b1) {
  auto made = layer(x, w1, b1);
  auto all = as_matrix<float>(made);
  all = all.cwiseMax(0.0F);
  return made;
}

// By what went into the hidden layer's rectifiers.
tensor gradient_back(const tensor& gradient, const tensor& w2, const tensor& hidden) {
  const auto after = as_matrix<const float>(hidden);
  auto made = room_for(after.rows(), after.cols());
  auto to = as_matrix<float>(made);
  to.noalias() = as_matrix<const float>(gradient) * as_matrix<const float>(w2).transpose();
  to.array() *= (after.array() > 0).cast<float>();
  return made;
}

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
  const verdict found(layer(images, w, b));
  const auto gradient = found.gradient(labels);
  return {found.loss(labels), found.right(labels), gradient_of_w(images, gradient), gradient_of_b(gradient)};
}

std::tuple<double, std::int64_t, tensor, tensor, tensor, tensor> network_gradients(const tensor& images,
                                                                                   const tensor& labels,
                                                                                   const tensor& w1, const tensor& b1,
                                                                                   const tensor& w2, const tensor& b2) {
  const auto hidden = hidden_layer(images, w1, b1);
  const verdict found(layer(hidden, w2, b2));
  const auto gradient = found.gradient(labels);
  const auto back = gradient_back(gradient, w2, hidden);
  return {found.loss(labels),
          found.right(labels),
          gradient_of_w(images, back),
          gradient_of_b(back),
          gradient_of_w(hidden, gradient),
          gradient_of_b(gradient)};
}

std::tuple<double, tensor> softmax_guesses(const tensor& images, const tensor& labels, const tensor& w,
                                           const tensor& b) {
  const verdict found(layer(images, w, b));
  return {found.loss(labels), found.guesses()};
}

std::tuple<double, tensor> network_guesses(const tensor& images, const tensor& labels, const tensor& w1,
                                           const tensor& b1, const tensor& w2, const tensor& b2) {
  const verdict found(layer(hidden_layer(images, w1, b1), w2, b2));
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
