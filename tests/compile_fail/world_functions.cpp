// SPDX-License-Identifier: BSL-1.0
// What does not fit a function of a world, all in one source, because world.hpp takes long to read: Clang's -verify
// wants each of the errors that are expected here, each a static_assert of ours.
#include <string>
#include <tuple>

#include <muster/parallel/world.hpp>

using namespace muster;

float mean(const tensor& x);
std::tuple<float, tensor> mean_and_gradient(const tensor& x, const tensor& w);
std::string word(const tensor& x);
bool truth(const tensor& x);
float of_number(float x);

void cases(world& w, const variable& v, const tensor& x) {
  // expected-error@*:* 1+ {{muster: rows() may be given once}}
  (void)w.function(mean_and_gradient, rows("x"), rows("w"), outputs(avg("a"), avg("b")));
  // expected-error@*:* 1+ {{muster: whole() may be given once}}
  (void)w.function(mean_and_gradient, whole("x"), whole("w"), outputs(avg("a"), avg("b")));
  // expected-error@*:* 1+ {{muster: updates() may be given once}}
  (void)w.function(mean_and_gradient, rows("x"), replicas(v), updates(assign(v)), updates(assign(v)));
  // expected-error@*:* 1+ {{muster: the callable must take a const rank_context&}}
  (void)w.function(mean, rows("x", "y"), outputs(avg("a")));
  // expected-error@*:* 1+ {{muster: the callable must return a value}}
  (void)w.function(mean, rows("x"), outputs(avg("a"), avg("b")));
  // expected-error@*:* 1+ {{muster: the callable's arguments for rows() are tensors}}
  (void)w.function(of_number, rows("x"), outputs(avg("a")));
  // expected-error@*:* 1+ {{muster: the callable's arguments must be known: not auto, no overloads}}
  (void)w.function([](auto given) { return given; }, rows("x"), outputs(avg("a")));
  // expected-error@*:* 1+ {{muster: only numbers and tensors can be joined}}
  (void)w.function(word, rows("x"), outputs(avg("a")));
  // expected-error@*:* 1+ {{muster: gather joins the rows of tensors; for other values write none()}}
  (void)w.function(mean, rows("x"), outputs(gather("a")));
  // expected-error@*:* 1+ {{muster: a bool cannot be joined: write count_true(), which says how many are}}
  (void)w.function(truth, rows("x"), outputs(avg("a")));
  // expected-error@*:* 1+ {{muster: this callable cannot be sent to a worker process. A lambda must not capture}}
  (void)w.function([x](const tensor& given) { return given.rows() + x.rows(); }, rows("x"), outputs(sum("a")));

  const auto f = w.function(mean, rows("x"), outputs(avg("a")));
  // expected-error@*:* 1+ {{muster: a function is called with its inputs: those of rows(), then those of whole()}}
  (void)f(x, x);
  // expected-error@*:* 1+ {{muster: the function has no output with that index}}
  (void)f.only<1>()(x);
  // expected-error@*:* 1+ {{muster: build_inputs takes a value for each of rows()}}
  (void)f.build_inputs(x, x);
  // expected-error@*:* 0+ {{}}
  // expected-note@*:* 0+ {{}}
}
