// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster {

class input_archive;
class output_archive;

namespace detail {

class rpc_core;
class remote_state;

/// A remote_ref without the type of its value.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
class remote_handle {
public:
  remote_handle() noexcept = default;
  explicit remote_handle(std::shared_ptr<remote_state> state) noexcept : state_(std::move(state)) {}

  [[nodiscard]] bool valid() const noexcept { return state_ != nullptr; }
  /// Throws errc::invalid_argument for one that refers to nothing; the same of all below.
  [[nodiscard]] remote_state& state() const;
  [[nodiscard]] const std::shared_ptr<remote_state>& shared_state() const noexcept { return state_; }
  [[nodiscard]] std::string owner() const;
  /// Of its owner; of an actor, its own now.
  [[nodiscard]] std::uint32_t incarnation() const;
  [[nodiscard]] bool is_local() const;
  /// Where the value is. Throws errc::invalid_argument where it is another member's.
  [[nodiscard]] void* local() const;
  /// Whether both refer to one value.
  [[nodiscard]] bool is_same(const remote_handle& other) const noexcept;
  /// Whether the owner has made the value; waits for nothing. Throws why there is none.
  [[nodiscard]] bool is_confirmed() const;

  void save(output_archive& out) const;
  /// Throws errc::invalid_argument outside of calls of the group.
  void load(input_archive& in);

private:
  std::shared_ptr<remote_state> state_;
};

}  // namespace detail
}  // namespace muster
