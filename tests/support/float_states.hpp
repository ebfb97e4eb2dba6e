// SPDX-License-Identifier: BSL-1.0
#pragma once

// Floating-point states that a program may have set in a thread.

#include <bit>
#include <cfenv>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <muster/base/detail/float_state.hpp>

namespace muster::test {

enum class floats {
  usual,
  flushing,  ///< numbers below the least normal one are 0, as operands and as results
  upward,
  trapping,  ///< what is invalid, or too large, ends the process
};
inline constexpr floats all_floats[] = {floats::usual, floats::flushing, floats::upward, floats::trapping};

inline std::string name_of(floats which) {
  switch (which) {
    case floats::usual: return "Usual";
    case floats::flushing: return "Flushing";
    case floats::upward: return "Upward";
    case floats::trapping: break;
  }
  return "Trapping";
}
inline std::ostream& operator<<(std::ostream& out, floats which) { return out << name_of(which); }

/// Those that this processor can be set to.
inline std::vector<floats> floats_here() {
#if defined(__x86_64__) || defined(__aarch64__)
  return {std::begin(all_floats), std::end(all_floats)};
#else
  return {floats::usual, floats::upward};
#endif
}

inline void set_flushing() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040U);
#elif defined(__aarch64__)
  unsigned long control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | 1UL << 24U));
#endif
}

inline void set_floats(floats which) {
  switch (which) {
    case floats::usual: break;
    case floats::flushing: set_flushing(); break;
    case floats::upward: std::fesetround(FE_UPWARD); break;
    case floats::trapping:
      std::feclearexcept(FE_ALL_EXCEPT);  // which would trap
      ::feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
      break;
  }
}

/// The bits of what the thread makes of numbers now: others in every state but the usual and the trapping one. (Numbers
/// cannot tell: where they are flushed, one that would be is equal to 0.)
inline std::vector<std::uint64_t> signs_of_state() {
  volatile double third = 1.0;
  third = third / 3.0;
  volatile double tiny = 3e-310;
  tiny = tiny + 4e-310;
  return {std::bit_cast<std::uint64_t>(double{third}), std::bit_cast<std::uint64_t>(double{tiny})};
}

/// The thread has that state, without any flags, until its end.
class floats_scope {
public:
  explicit floats_scope(floats which) {
    std::fegetenv(&before_);
    set_floats(which);
    rounding_ = std::fegetround();
    trapped_ = ::fegetexcept();
    signs_ = signs_of_state();
    std::feclearexcept(FE_ALL_EXCEPT);
    state_ = float_state::of_thread();
  }
  floats_scope(const floats_scope&) = delete;
  floats_scope& operator=(const floats_scope&) = delete;
  ~floats_scope() { std::fesetenv(&before_); }

  /// Whether the thread still has it, flags included.
  [[nodiscard]] bool is_unchanged() const {
    return float_state::of_thread() == state_ && std::fegetround() == rounding_;
  }
  /// The same but for the flags, which whatever computes sets.
  [[nodiscard]] bool computes_as_before() const {
    return std::fegetround() == rounding_ && ::fegetexcept() == trapped_ && signs_of_state() == signs_;
  }

private:
  std::fenv_t before_{};
  float_state state_ = float_state::of_thread();
  int rounding_ = FE_TONEAREST;
  int trapped_ = 0;
  std::vector<std::uint64_t> signs_;
};

}  // namespace muster::test
