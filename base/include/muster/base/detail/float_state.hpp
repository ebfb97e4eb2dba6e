// SPDX-License-Identifier: BSL-1.0
#pragma once

// How a thread computes with floating-point numbers is a state of the thread, which the program may have set: another
// rounding, numbers below the least normal one taken for 0 (flush to zero, denormals are zero), exceptions that trap.
// Threads inherit it from their makers. What muster computes must not depend on it, nor on the thread that computes it:
//
//     in_fixed_float_state([&] { for (auto& each : values) each *= factor; });
//
// The program's functions run in the program's state, so none is called in there. Arithmetic stands in the function
// that is called, its operands too (conversions are arithmetic): a plain object around it would not keep it there.
//
// Cost: some nanoseconds where the state is the fixed one already; some tens otherwise. Once a pass, not an element.

#include <cfenv>
#include <cstdint>
#include <type_traits>

#include <muster/base/requirements.hpp>

namespace muster {

/// How a thread computes, and which exceptions there have been (the flags). On x86-64 it is MXCSR alone: long double is
/// computed by another unit, which in_fixed_long_double_state is for.
///
/// Thread safety: a value; of_thread and set are about the calling thread.
class float_state {
public:
  [[nodiscard]] static float_state of_thread() noexcept;

  /// Rounds to nearest, ties to even, keeps numbers below the least normal one, and traps nothing; with these flags.
  [[nodiscard]] float_state fixed() const noexcept;

  /// The thread has it from now on.
  void set() const noexcept;

  friend bool operator==(const float_state& a, const float_state& b) noexcept { return a.is(b); }

private:
  [[nodiscard]] bool is(const float_state& other) const noexcept;

#if defined(__x86_64__)
  std::uint32_t word_ = 0;
#elif defined(__aarch64__)
  std::uint64_t control_ = 0;
  std::uint64_t flags_ = 0;
#else
  std::fenv_t environment_{};
#endif
};

/// The thread computes as `within` says until this ends, and then again as `before`, flags included.
///
/// Thread safety: an object belongs to its thread. Requires: `before` is the thread's state.
class float_state_scope {
public:
  float_state_scope(const float_state& before, const float_state& within) noexcept : before_(before) {
    if (!(within == before)) within.set();
  }
  float_state_scope(const float_state_scope&) = delete;
  float_state_scope& operator=(const float_state_scope&) = delete;
  ~float_state_scope() {
    if (!(float_state::of_thread() == before_)) before_.set();
  }

private:
  const float_state before_;
};

namespace detail {

template <class F>
std::invoke_result_t<const F&> invoke_seen(const F& what) {
  return what();
}

/// Compilers move arithmetic over what sets the state, which they do not know. Of a function that they do not know
/// either they can move none.
template <class F>
std::invoke_result_t<const F&> invoke_unseen(const F& what) {
  auto* function = &invoke_seen<F>;
  asm("" : "+r"(function));
  return function(what);
}

}  // namespace detail

/// Returns what `what` does, which runs in the fixed state. The thread's state is the same afterwards, whether it
/// returns or throws.
///
/// Thread safety: as `what`.
template <class F>
std::invoke_result_t<const F&> in_fixed_float_state(const F& what) {
  const auto before = float_state::of_thread();
  const float_state_scope scope(before, before.fixed());
  return detail::invoke_unseen(what);
}

/// The same in the state of another thread, or of another time.
///
/// Thread safety: as `what`.
template <class F>
std::invoke_result_t<const F&> in_float_state(const float_state& state, const F& what) {
  const float_state_scope scope(float_state::of_thread(), state);
  return detail::invoke_unseen(what);
}

/// As in_fixed_float_state, also where long double is computed by a unit of its own, which has its own rounding.
///
/// Thread safety: as `what`. Cost: some tenths of a microsecond.
template <class F>
std::invoke_result_t<const F&> in_fixed_long_double_state(const F& what) {
  class scope {
  public:
    scope() noexcept {
      std::fegetenv(&before_);
      std::fesetenv(FE_DFL_ENV);
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() { std::fesetenv(&before_); }

  private:
    std::fenv_t before_{};
  };
  const scope everything;
  return in_fixed_float_state(what);  // not every C library's default has the bits that flush
}

// ---- by processor

#if defined(__x86_64__)

inline float_state float_state::of_thread() noexcept {
  float_state found;
  found.word_ = __builtin_ia32_stmxcsr();
  return found;
}

inline float_state float_state::fixed() const noexcept {
  constexpr std::uint32_t flags = 0x3f;
  constexpr std::uint32_t all_masked = 0x1f80;
  float_state made;
  made.word_ = (word_ & flags) | all_masked;
  return made;
}

inline void float_state::set() const noexcept { __builtin_ia32_ldmxcsr(word_); }

inline bool float_state::is(const float_state& other) const noexcept { return word_ == other.word_; }

#elif defined(__aarch64__)

inline float_state float_state::of_thread() noexcept {
  float_state found;
  asm volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(found.control_), "=r"(found.flags_)::"memory");
  return found;
}

inline float_state float_state::fixed() const noexcept {
  float_state made;
  made.flags_ = flags_;
  return made;
}

inline void float_state::set() const noexcept {
  asm volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(control_), "r"(flags_) : "memory");
}

inline bool float_state::is(const float_state& other) const noexcept {
  return control_ == other.control_ && flags_ == other.flags_;
}

#else

inline float_state float_state::of_thread() noexcept {
  float_state found;
  std::fegetenv(&found.environment_);
  return found;
}

inline float_state float_state::fixed() const noexcept {
  float_state made;
  const float_state_scope scope(of_thread(), *this);
  std::fesetenv(FE_DFL_ENV);
  std::fegetenv(&made.environment_);
  return made;
}

inline void float_state::set() const noexcept { std::fesetenv(&environment_); }

// Not to be compared: it is set once too often.
inline bool float_state::is(const float_state&) const noexcept { return false; }

#endif

}  // namespace muster
