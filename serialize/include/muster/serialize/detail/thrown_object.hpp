// SPDX-License-Identifier: BSL-1.0
#pragma once

// Throwing an exception of any type together with its origin.
//
// The thrown object is a T, and the origin lies behind it in the memory of the exception. A class derived from T would
// be another type, and would construct T's virtual bases anew. A table leads from the object to its origin.

#include <cstddef>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <boost/intrusive/set_hook.hpp>

#include <muster/serialize/error_info.hpp>
#include <muster/serialize/exceptions.hpp>

namespace muster::detail {

/// The origin of one thrown object, which it lists from its construction to its destruction.
///
/// Thread safety: safe.
class thrown_origin : public boost::intrusive::set_base_hook<> {
public:
  thrown_origin(const void* object, std::size_t bytes, const error_info& info);
  thrown_origin(const thrown_origin&) = delete;
  thrown_origin& operator=(const thrown_origin&) = delete;
  ~thrown_origin();

  /// Returns the origin of the thrown object that `part` is, or is a part of; nullptr where there is none.
  /// Lifetime: as the thrown object.
  [[nodiscard]] static const error_info* find(const void* part) noexcept;

  [[nodiscard]] const char* begin() const noexcept { return begin_; }
  [[nodiscard]] const char* end() const noexcept { return begin_ + bytes_; }
  [[nodiscard]] const error_info& info() const noexcept { return info_; }

  friend bool operator<(const thrown_origin& a, const thrown_origin& b) noexcept { return a.begin_ < b.begin_; }

private:
  const char* begin_;
  std::size_t bytes_;
  error_info info_;
};

/// The content of an exception's memory. `exception` is the first member, so that both have one address.
template <class T>
struct thrown_object {
  thrown_object(T&& thrown, const error_info& info)
      : exception(std::move(thrown)), origin(&exception, sizeof exception, info) {}

  T exception;
  thrown_origin origin;
};

/// The memory of an exception that is not thrown yet.
class thrown_memory {
public:
  explicit thrown_memory(std::size_t bytes) noexcept;  ///< terminates without memory, as `throw` does
  thrown_memory(const thrown_memory&) = delete;
  thrown_memory& operator=(const thrown_memory&) = delete;
  ~thrown_memory();

  [[nodiscard]] void* get() const noexcept { return memory_; }
  /// Throws the object that was constructed in the memory, which is of `type`. `destroy` is called once.
  [[noreturn]] void raise(const std::type_info& type, void (*destroy)(void*));

private:
  void* memory_;
};

/// Throws `exception` itself; remote_info() finds `info`, except of types whose alignment is more than that of
/// std::max_align_t.
template <class T>
[[noreturn]] void throw_with_origin(T&& exception, const error_info& info) {
  using thrown = thrown_object<T>;
  static_assert(!std::is_reference_v<T>);
  if constexpr (alignof(thrown) > alignof(std::max_align_t) || std::is_base_of_v<task_error, T>) {
    throw T(std::forward<T>(exception));  // a task_error has its origin with it
  } else {
    thrown_memory memory(sizeof(thrown));
    ::new (memory.get()) thrown(std::forward<T>(exception), info);
    memory.raise(typeid(T), [](void* object) { static_cast<thrown*>(object)->~thrown(); });
  }
}

}  // namespace muster::detail
