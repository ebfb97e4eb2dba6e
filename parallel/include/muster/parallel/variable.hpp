// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <muster/device/dtype.hpp>

namespace muster {

namespace detail {

class world_core;

/// Keeps a variable of a world.
struct variable_handle {
  std::shared_ptr<world_core> world;
  std::uint32_t number = 0;
  std::string name;
  muster::dtype type = muster::dtype::f32;
  bool is_scattered = false;

  variable_handle(std::shared_ptr<world_core> of, std::uint32_t which, std::string called, muster::dtype elements,
                  bool scattered);
  variable_handle(const variable_handle&) = delete;
  variable_handle& operator=(const variable_handle&) = delete;
  ~variable_handle();
};

}  // namespace detail

/// A variable of a world: a tensor in each rank, a replica or a share of its own. What can be done with it is said in
/// world.hpp. Copies of it are the same variable, which is there as long as one of them is, or a function that uses it.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Process safety: for the process that has the world.
/// Lifetime: keeps the world's memory, not its ranks.
class variable {
public:
  /// Returns the name that it was made with, for messages.
  [[nodiscard]] const std::string& name() const noexcept { return handle_->name; }
  /// Returns the type of the elements, which is the same in all ranks.
  [[nodiscard]] muster::dtype dtype() const noexcept { return handle_->type; }
  /// Whether each rank has rows of its own; else each has a replica.
  [[nodiscard]] bool is_scattered() const noexcept { return handle_->is_scattered; }

  [[nodiscard]] friend bool operator==(const variable&, const variable&) noexcept = default;

  /// For the world.
  ///@{
  explicit variable(std::shared_ptr<const detail::variable_handle> handle) noexcept : handle_(std::move(handle)) {}
  [[nodiscard]] const detail::variable_handle& handle() const noexcept { return *handle_; }
  ///@}

private:
  std::shared_ptr<const detail::variable_handle> handle_;
};

}  // namespace muster
