// SPDX-License-Identifier: BSL-1.0
#pragma once

// One update of a Kalman filter on two ranks, split as in M. Rocklin's gist 3750410 (2012), in plain loops; and the
// same by one rank in double.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include <muster/collectives/graph.hpp>

namespace muster::test {

/// A matrix of n columns, row by row.
template <class T>
struct matrix_view {
  T* first = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  T& operator()(std::size_t row, std::size_t column) const { return first[row * columns + column]; }
};

inline matrix_view<float> view_of(const tensor& what) { return {what.data<float>(), what.shape()[0], what.shape()[1]}; }

template <class T>
struct matrix {
  matrix(std::size_t rows, std::size_t columns) : elements(rows * columns), view{elements.data(), rows, columns} {}
  matrix(const matrix& other) : elements(other.elements), view{elements.data(), other.view.rows, other.view.columns} {}
  matrix& operator=(const matrix& other) {
    elements = other.elements;
    view = {elements.data(), other.view.rows, other.view.columns};
    return *this;
  }
  std::vector<T> elements;
  matrix_view<T> view;
};

/// out = a b, or a bᵀ.
template <class T>
void multiply(matrix_view<T> out, matrix_view<T> a, matrix_view<T> b, bool transposed = false) {
  for (std::size_t row = 0; row < out.rows; ++row) {
    for (std::size_t column = 0; column < out.columns; ++column) {
      T sum = 0;
      for (std::size_t at = 0; at < a.columns; ++at) sum += a(row, at) * (transposed ? b(column, at) : b(at, column));
      out(row, column) = sum;
    }
  }
}

/// out = a⁻¹ b, by elimination with pivots; `work` holds a copy of a.
template <class T>
void solve(matrix_view<T> out, matrix_view<T> a, matrix_view<T> b, std::vector<T>& work) {
  work.assign(a.first, a.first + a.rows * a.columns);
  const matrix_view<T> left{work.data(), a.rows, a.columns};
  std::copy(b.first, b.first + b.rows * b.columns, out.first);
  for (std::size_t at = 0; at < a.rows; ++at) {
    std::size_t pivot = at;
    for (std::size_t row = at + 1; row < a.rows; ++row) {
      if (std::abs(left(row, at)) > std::abs(left(pivot, at))) pivot = row;
    }
    if (pivot != at) {
      std::swap_ranges(&left(at, 0), &left(at, 0) + a.columns, &left(pivot, 0));
      std::swap_ranges(&out(at, 0), &out(at, 0) + out.columns, &out(pivot, 0));
    }
    for (std::size_t row = at + 1; row < a.rows; ++row) {
      const T factor = left(row, at) / left(at, at);
      for (std::size_t column = at; column < a.columns; ++column) left(row, column) -= factor * left(at, column);
      for (std::size_t column = 0; column < out.columns; ++column) out(row, column) -= factor * out(at, column);
    }
  }
  for (std::size_t at = a.rows; at-- > 0;) {
    for (std::size_t column = 0; column < out.columns; ++column) {
      T sum = out(at, column);
      for (std::size_t row = at + 1; row < a.rows; ++row) sum -= left(at, row) * out(row, column);
      out(at, column) = sum / left(at, at);
    }
  }
}

/// What the filter begins with, well conditioned: Sigma and R are G Gᵀ / n + I, H is G / √n.
struct kalman_inputs {
  explicit kalman_inputs(std::size_t n, unsigned seed = 1)
      : sigma(n, n), h(n, n), r(n, n), mu(n, 1), data(n, 1), random(seed) {
    make_positive(sigma);
    make_positive(r);
    for (auto& each : h.elements) each = normal(random) / std::sqrt(static_cast<double>(n));
    for (auto& each : mu.elements) each = normal(random);
    measure();
    for (auto* each : {&sigma, &h, &r, &mu}) round(*each);
  }

  void measure() {
    for (auto& each : data.elements) each = static_cast<float>(normal(random));
  }

  matrix<double> sigma, h, r, mu, data;

private:
  void make_positive(matrix<double>& out) {
    auto g = out;
    for (auto& each : g.elements) each = normal(random);
    multiply(out.view, g.view, g.view, true);
    for (auto& each : out.elements) each /= static_cast<double>(out.view.rows);
    for (std::size_t at = 0; at < out.view.rows; ++at) out.view(at, at) += 1;
  }
  // To what a float holds, so that both filters begin with the same.
  static void round(matrix<double>& what) {
    for (auto& each : what.elements) each = static_cast<float>(each);
  }

  std::mt19937 random;
  std::normal_distribution<double> normal;
};

inline tensor tensor_of(const matrix<double>& what) {
  const std::vector<float> values(what.elements.begin(), what.elements.end());
  return tensor::from(values, {what.view.rows, what.view.columns});
}

/// The filter by one rank, in double.
struct serial_kalman {
  explicit serial_kalman(const kalman_inputs& in)
      : sigma(in.sigma), mu(in.mu), a(in.sigma), b(in.sigma), s(in.sigma), d(in.sigma), e(in.mu), f(in.mu) {}

  void step(const kalman_inputs& in) {
    multiply(a.view, sigma.view, in.h.view, true);
    multiply(b.view, in.h.view, a.view);
    for (std::size_t at = 0; at < b.elements.size(); ++at) b.elements[at] += in.r.elements[at];
    multiply(e.view, in.h.view, mu.view);
    for (std::size_t at = 0; at < e.elements.size(); ++at) e.elements[at] -= in.data.elements[at];
    solve(f.view, b.view, e.view, work);
    multiply(e.view, a.view, f.view);
    for (std::size_t at = 0; at < e.elements.size(); ++at) mu.elements[at] -= e.elements[at];
    solve(s.view, b.view, in.h.view, work);
    multiply(d.view, a.view, s.view);
    multiply(s.view, d.view, sigma.view);
    for (std::size_t at = 0; at < s.elements.size(); ++at) sigma.elements[at] -= s.elements[at];
  }

  matrix<double> sigma, mu, a, b, s, d, e, f;
  std::vector<double> work;
};

/// The gist's graph. `keeps`: mu and Sigma are states that every run updates; otherwise they are inputs, as there.
inline graph kalman_graph(std::size_t n, bool keeps) {
  const graph_form square{dtype::f32, {n, n}};
  const graph_form column{dtype::f32, {n, 1}};
  graph g;
  auto here = g.on(0);
  const auto mu = keeps ? here.state("mu", column) : here.input("mu", column);
  const auto sigma = keeps ? here.state("Sigma", square) : here.input("Sigma", square);
  const auto h = here.input("H", square);
  const auto r = here.input("R", square);
  const auto data = here.input("data", column);
  const auto ht = here.compute("H.T", square, {h}, [](const tensor& out, const tensor& in) {
    const auto to = view_of(out);
    const auto from = view_of(in);
    for (std::size_t row = 0; row < to.rows; ++row) {
      for (std::size_t column_ = 0; column_ < to.columns; ++column_) to(row, column_) = from(column_, row);
    }
  });
  const auto product = [](const tensor& out, const tensor& a, const tensor& b) {
    multiply(view_of(out), view_of(a), view_of(b));
  };
  const auto a = here.compute("A", square, {sigma, ht}, product);
  const auto b =
      here.compute("B", square, {r, h, a}, [](const tensor& out, const tensor& r_, const tensor& h_, const tensor& a_) {
        multiply(view_of(out), view_of(h_), view_of(a_));
        for (std::size_t at = 0; at < out.size(); ++at) out.data<float>()[at] += r_.data<float>()[at];
      });
  const auto residual = here.compute("H mu - data", column, {data, h, mu},
                                     [](const tensor& out, const tensor& data_, const tensor& h_, const tensor& mu_) {
                                       multiply(view_of(out), view_of(h_), view_of(mu_));
                                       for (std::size_t at = 0; at < out.size(); ++at)
                                         out.data<float>()[at] -= data_.data<float>()[at];
                                     });
  const auto solution = [work = std::vector<float>()](const tensor& out, const tensor& b_,
                                                      const tensor& right) mutable {
    solve(view_of(out), view_of(b_), view_of(right), work);
  };
  const auto weight = here.compute("solve(B, H mu - data)", column, {b, residual}, solution);
  const auto new_mu = here.compute("updated_mu", column, {mu, a, weight},
                                   [](const tensor& out, const tensor& mu_, const tensor& a_, const tensor& weight_) {
                                     multiply(view_of(out), view_of(a_), view_of(weight_));
                                     for (std::size_t at = 0; at < out.size(); ++at)
                                       out.data<float>()[at] = mu_.data<float>()[at] - out.data<float>()[at];
                                   });
  here.send(h, {.to = 1, .tag = 1});
  here.send(b, {.to = 1, .tag = 2});
  here.send(sigma, {.to = 1, .tag = 3});
  here.send(a, {.to = 1, .tag = 4});
  const auto new_sigma = here.recv("updated_Sigma", square, {.from = 1, .tag = 5});
  if (keeps) {
    here.update(mu, new_mu);
    here.update(sigma, new_sigma);
  }

  auto there = g.on(1);
  const auto h1 = there.recv("H", {.from = 0, .tag = 1});
  const auto b1 = there.recv("B", {.from = 0, .tag = 2});
  const auto sigma1 = there.recv("Sigma", square, {.from = 0, .tag = 3});
  const auto a1 = there.recv("A", {.from = 0, .tag = 4});
  const auto s1 = there.compute("solve(B, H)", square, {b1, h1}, solution);
  const auto gain = there.compute("A solve(B, H)", square, {a1, s1}, product);
  const auto loss = there.compute("A solve(B, H) Sigma", square, {gain, sigma1}, product);
  const auto updated =
      there.compute_in_place("updated_Sigma", loss, {sigma1}, [](const tensor& out, const tensor& sigma_) {
        for (std::size_t at = 0; at < out.size(); ++at)
          out.data<float>()[at] = sigma_.data<float>()[at] - out.data<float>()[at];
      });
  there.send(updated, {.to = 0, .tag = 5});
  return g;
}

}  // namespace muster::test
