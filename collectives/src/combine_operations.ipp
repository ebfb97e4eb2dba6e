// SPDX-License-Identifier: BSL-1.0
// What packs are joined by. Part of combine_kernels.ipp, which says what may be used here.

namespace muster::detail {
namespace {

/// What most have in common: nothing is left to do at the end.
struct operation {
  static constexpr bool finishes = false;
  template <class Wide, class Wides>
  static Wides finish(Wides each, std::size_t) {
    return each;
  }
};

struct addition : operation {
  template <class Wides>
  static Wides join(Wides a, Wides b) {
    return a + b;
  }
};

struct average : addition {
  static constexpr bool finishes = true;
  template <class Wide, class Wides>
  static Wides finish(Wides each, std::size_t inputs) {
    return each / static_cast<Wide>(inputs);
  }
};

struct product : operation {
  template <class Wides>
  static Wides join(Wides a, Wides b) {
    return a * b;
  }
  template <class T>
  static complex_number<T> join(complex_number<T> a, complex_number<T> b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
};

// A NaN compares false: the first of two stays, a second one that is alone is taken.
struct least : operation {
  template <class Wides>
  static Wides join(Wides a, Wides b) {
    return ((a <= b) | is_nan(a)) ? a : b;
  }
};

struct greatest : operation {
  template <class Wides>
  static Wides join(Wides a, Wides b) {
    return ((a >= b) | is_nan(a)) ? a : b;
  }
};

struct bit_and : operation {
  template <class Wides>
  static Wides join(Wides a, Wides b) {
    return a & b;
  }
};

struct bit_or : operation {
  template <class Wides>
  static Wides join(Wides a, Wides b) {
    return a | b;
  }
};

struct bit_xor : operation {
  template <class Wides>
  static Wides join(Wides a, Wides b) {
    return a ^ b;
  }
};

}  // namespace
}  // namespace muster::detail
