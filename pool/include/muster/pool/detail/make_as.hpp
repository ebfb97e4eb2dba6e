// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster::detail {

/// A `T` that is only ever used as a `Base`, of which it is a class. Where there is a `T` for each callable of a
/// program, this spares the compiler a std::unique_ptr<T>, or std::shared_ptr<T>, for each.
template <class Base, class T, class... Args>
[[nodiscard]] std::unique_ptr<Base> make_as(Args&&... args) {
  return std::unique_ptr<Base>(new T(std::forward<Args>(args)...));
}

}  // namespace muster::detail
