// SPDX-License-Identifier: BSL-1.0
#pragma once

// A model's tensors, under names, in one block.
//
//     muster::state_dict model({{"w", weights}, {"b", bias}});   // copies
//     model.at("w").fill(0.0F);                                  // where it lies
//     model.load(newer);                                         // copies, if names, dtypes and shapes are the same

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <muster/device/dtype.hpp>
#include <muster/device/tensor.hpp>
#include <muster/device/tensor_shape.hpp>

namespace muster {

/// Tensors under names, in an order, in one block of shared memory: one message, and one copy, whatever they are. It
/// has a version, which servers set.
///
/// Thread safety: distinct objects: safe, also copies of one another. Shared objects: safe while nobody assigns.
/// Lifetime: a handle, as a tensor is: copies refer to the same elements. clone() copies those.
class state_dict {
public:
  /// No tensors.
  state_dict() = default;
  /// Copies tensors, in that order. Throws errc::invalid_argument for a name that is given twice;
  /// errc::out_of_memory.
  ///@{
  explicit state_dict(const std::vector<std::pair<std::string, tensor>>& tensors);
  state_dict(std::initializer_list<std::pair<std::string, tensor>> tensors);
  ///@}

  /// Returns how many tensors there are.
  [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
  /// Returns their names, in their order.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Returns whether there is one of that name.
  [[nodiscard]] bool contains(std::string_view name) const noexcept;
  /// Returns the tensor of that name, where it lies. Throws errc::invalid_argument, with the names that there are.
  [[nodiscard]] tensor at(std::string_view name) const;
  /// Returns how many bytes their elements take.
  [[nodiscard]] std::size_t nbytes() const;

  /// Returns whether both have the same names, dtypes and shapes, in the same order.
  [[nodiscard]] bool is_like(const state_dict& other) const noexcept;
  /// Copies elements and version of another one into this one, where they lie. Throws errc::invalid_argument, with the
  /// first difference, unless is_like().
  void load(const state_dict& other);
  /// Returns a copy, with elements of its own.
  [[nodiscard]] state_dict clone() const;
  /// Returns one with elements on that device: itself where they lie there already, else a copy, of the same version.
  /// Throws as tensor::to.
  [[nodiscard]] state_dict to(device where) const;
  /// Returns one that is like it, of zeros, of version 0.
  [[nodiscard]] state_dict zeros_like() const;

  /// Which version it is; 0: of no server.
  ///@{
  [[nodiscard]] std::int64_t version() const noexcept { return version_; }
  void set_version(std::int64_t version) noexcept { version_ = version; }
  ///@}

  /// For cereal.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(places_, bytes_, version_);
    require();
  }

private:
  struct place {
    std::string name;
    dtype type = dtype::f32;
    std::vector<std::size_t> shape;
    std::size_t offset = 0;  // in bytes

    template <class Archive>
    void serialize(Archive& archive) {
      archive(name, type, shape, offset);
    }
    friend bool operator==(const place&, const place&) = default;
  };

  void make(const std::vector<std::pair<std::string, tensor>>& tensors);
  void require() const;
  [[nodiscard]] std::size_t begin() const;
  [[nodiscard]] tensor over(const place& which) const;

  std::vector<place> places_;
  tensor bytes_;  // u8
  std::int64_t version_ = 0;
};

}  // namespace muster
