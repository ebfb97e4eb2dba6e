// SPDX-License-Identifier: BSL-1.0
#pragma once

// Gradients as one or two bits for each number, with what that loses kept for the next one.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <muster/base/requirements.hpp>
#include <muster/device/tensor_shape.hpp>

namespace muster {

class tensor;

/// How gradients are made smaller. F. Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014; N. Strom,
/// "Scalable Distributed DNN Training Using Commodity GPU Cloud Computing", Interspeech 2015; bits as MXNet's.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct gradient_compression {
  /// Into how many bits.
  enum class bits : std::uint8_t {
    all,  ///< none is lost
    one,  ///< above the threshold +1, else -1
    two   ///< from the threshold on +threshold, down from its negative -threshold, else 0
  };

  bits kind = bits::all;  ///< into how many bits
  double threshold = 0;   ///< of two bits above 0; finite

  /// Of MXNet's names: 1bit, 2bit, and none. Throws errc::invalid_argument for another, and for a threshold that does
  /// not fit.
  [[nodiscard]] static gradient_compression of(std::string_view name, double threshold);
  /// Returns how many bytes so many numbers become: a multiple of 4.
  [[nodiscard]] std::size_t bytes_of(std::size_t numbers) const;
  /// Compresses `gradient` + `residual`, both f32 and of one shape, and leaves in `residual` what is lost. Returns u8:
  /// of each byte the highest bits are the first number's. Throws errc::invalid_argument for other tensors.
  [[nodiscard]] tensor compress(const tensor& gradient, const tensor& residual) const;
  /// Returns what such bytes stand for. Throws errc::invalid_argument when they are not as many as the shape needs.
  [[nodiscard]] tensor expand(const tensor& bytes, const tensor_shape& shape) const;
  /// Throws errc::invalid_argument for a threshold that does not fit.
  void require() const;

  /// For cereal.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(kind, threshold);
  }
  friend bool operator==(const gradient_compression&, const gradient_compression&) = default;
};

}  // namespace muster
