// SPDX-License-Identifier: BSL-1.0
#include "filter.hpp"

#include <Eigen/LU>

namespace kalman {

namespace {

using muster::graph_form;
using muster::tensor;

struct forms {
  explicit forms(std::size_t n) : square{muster::dtype::f32, {n, n}}, column{muster::dtype::f32, {n, 1}} {}
  graph_form square;
  graph_form column;
};

// Keeps the memory of its factors from call to call.
class solver {
public:
  void operator()(const tensor& out, const tensor& left, const tensor& right) {
    factors_.compute(map_of(left));
    map_of(out) = factors_.solve(map_of(right));
  }

private:
  Eigen::PartialPivLU<Eigen::MatrixXf> factors_;
};

void multiply(const tensor& out, const tensor& left, const tensor& right) {
  map_of(out).noalias() = map_of(left) * map_of(right);
}

// ---- what rank 0 does

void find_a(const tensor& a, const tensor& sigma, const tensor& h) {
  map_of(a).noalias() = map_of(sigma) * map_of(h).transpose();
}

void find_b(const tensor& b, const tensor& r, const tensor& h, const tensor& a) {
  map_of(b) = map_of(r);
  map_of(b).noalias() += map_of(h) * map_of(a);
}

void find_residual(const tensor& residual, const tensor& data, const tensor& h, const tensor& mu) {
  map_of(residual) = -map_of(data);
  map_of(residual).noalias() += map_of(h) * map_of(mu);
}

void find_mu(const tensor& next, const tensor& mu, const tensor& a, const tensor& weight) {
  map_of(next) = map_of(mu);
  map_of(next).noalias() -= map_of(a) * map_of(weight);
}

void add_mu(muster::graph_rank here, const forms& form) {
  const auto mu = here.state("mu", form.column);
  const auto sigma = here.state("Sigma", form.square);
  const auto h = here.input("H", form.square);
  const auto r = here.input("R", form.square);
  const auto data = here.input("data", form.column);
  const auto a = here.compute("A", form.square, {sigma, h}, find_a);
  const auto b = here.compute("B", form.square, {r, h, a}, find_b);
  const auto residual = here.compute("H mu - data", form.column, {data, h, mu}, find_residual);
  const auto weight = here.compute("solve(B, H mu - data)", form.column, {b, residual}, solver());
  here.update(mu, here.compute("new mu", form.column, {mu, a, weight}, find_mu));
  here.send(h, {.to = 1, .tag = 1});
  here.send(b, {.to = 1, .tag = 2});
  here.send(sigma, {.to = 1, .tag = 3});
  here.send(a, {.to = 1, .tag = 4});
  here.update(sigma, here.recv("new Sigma", {.from = 1, .tag = 5}));
}

// ---- what rank 1 does

void subtract_from(const tensor& out, const tensor& whole) { map_of(out) = map_of(whole) - map_of(out); }

void add_sigma(muster::graph_rank there, const forms& form) {
  const auto h = there.recv("H", {.from = 0, .tag = 1});
  const auto b = there.recv("B", {.from = 0, .tag = 2});
  const auto sigma = there.recv("Sigma", {.from = 0, .tag = 3});
  const auto a = there.recv("A", {.from = 0, .tag = 4});
  const auto solved = there.compute("solve(B, H)", form.square, {b, h}, solver());
  const auto gain = there.compute("A solve(B, H)", form.square, {a, solved}, multiply);
  const auto loss = there.compute("A solve(B, H) Sigma", form.square, {gain, sigma}, multiply);
  const auto next = there.compute_in_place("new Sigma", loss, {sigma}, subtract_from);
  there.send(next, {.to = 0, .tag = 5});
}

}  // namespace

tensor tensor_of(const Eigen::MatrixXd& exact) {
  const auto rows = static_cast<std::size_t>(exact.rows());
  auto made = tensor::empty<float>({rows, static_cast<std::size_t>(exact.cols())});
  map_of(made) = exact.cast<float>();
  return made;
}

muster::graph make_filter(std::size_t n) {
  const forms form(n);
  muster::graph made;
  add_mu(made.on(0), form);
  add_sigma(made.on(1), form);
  return made;
}

}  // namespace kalman
