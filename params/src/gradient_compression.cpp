// SPDX-License-Identifier: BSL-1.0
#include <muster/params/gradient_compression.hpp>

#include <array>
#include <cmath>
#include <span>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/device/tensor.hpp>

namespace muster {

namespace {

[[noreturn]] void refuse_compression(const std::string& why) {
  throw error(errc::invalid_argument, text("gradients cannot be compressed so: ", why));
}

unsigned width_of(gradient_compression::bits kind) {
  switch (kind) {
    case gradient_compression::bits::one: return 1;
    case gradient_compression::bits::two: return 2;
    case gradient_compression::bits::all: break;
  }
  refuse_compression("all bits are kept");
}

// What is sent, and what it stands for. NaN is sent as what is not above anything.
struct coded {
  unsigned code;
  float value;
};

coded code_one_bit(float number, float threshold) { return number > threshold ? coded{1, 1.0F} : coded{0, -1.0F}; }

coded code_two_bits(float number, float threshold) {
  if (number >= threshold) return {0b11, threshold};
  if (number <= -threshold) return {0b10, -threshold};
  return {0, 0};
}

void require_numbers(const tensor& gradient, const tensor& residual) {
  if (gradient.dtype() == dtype::f32 && residual.dtype() == dtype::f32 && gradient.shape() == residual.shape()) return;
  refuse_compression(text("it takes f32 and a residual of the same shape, and got ", gradient.dtype(), " of shape ",
                          gradient.shape(), " and ", residual.dtype(), " of shape ", residual.shape()));
}

}  // namespace

gradient_compression gradient_compression::of(std::string_view name, double threshold) {
  gradient_compression made{.threshold = threshold};
  if (name == "1bit") {
    made.kind = bits::one;
  } else if (name == "2bit") {
    made.kind = bits::two;
  } else if (name != "none") {
    refuse_compression(text("there are 1bit, 2bit and none, and '", name, "' is not there"));
  }
  made.require();
  return made;
}

void gradient_compression::require() const {
  const auto number = static_cast<float>(threshold);
  if (!std::isfinite(number)) refuse_compression(text("the threshold ", threshold, " is not finite, as f32"));
  if (kind == bits::two && !(number > 0))
    refuse_compression(text("of two bits the threshold is above 0, not ", threshold));
}

std::size_t gradient_compression::bytes_of(std::size_t numbers) const {
  const std::size_t in_word = 32 / width_of(kind);
  return (numbers + in_word - 1) / in_word * 4;
}

tensor gradient_compression::compress(const tensor& gradient, const tensor& residual) const {
  require();
  require_numbers(gradient, residual);
  const auto width = width_of(kind);
  const auto limit = static_cast<float>(threshold);
  const auto from = gradient.contiguous();
  const auto numbers = from.span<const float>();
  const auto rest = residual.span<float>();
  const auto made = tensor::zeros(dtype::u8, {bytes_of(numbers.size())});
  const auto bytes = made.span<std::uint8_t>();
  const std::size_t in_byte = 8 / width;
  for (std::size_t each = 0; each < numbers.size(); ++each) {
    const float sum = rest[each] + numbers[each];
    const auto found = kind == bits::one ? code_one_bit(sum, limit) : code_two_bits(sum, limit);
    const float lost = sum - found.value;
    rest[each] = std::isfinite(lost) ? lost : 0;  // else it would be lost for good
    const auto shift = 8 - width * static_cast<unsigned>(each % in_byte + 1);
    bytes[each / in_byte] = static_cast<std::uint8_t>(bytes[each / in_byte] | found.code << shift);
  }
  return made;
}

tensor gradient_compression::expand(const tensor& bytes, const tensor_shape& shape) const {
  require();
  const auto width = width_of(kind);
  const auto limit = static_cast<float>(threshold);
  const auto made = tensor::empty(dtype::f32, shape);
  if (bytes.dtype() != dtype::u8 || bytes.size() != bytes_of(made.size())) {
    refuse_compression(text(bytes.size(), " bytes of ", bytes.dtype(), " are not the ", bytes_of(made.size()),
                            " of a tensor of shape ", shape));
  }
  const auto from = bytes.contiguous();
  const auto codes = from.span<const std::uint8_t>();
  const auto numbers = made.span<float>();
  const std::array<float, 4> of_two{0, 0, -limit, limit};
  const std::size_t in_byte = 8 / width;
  const unsigned mask = (1U << width) - 1;
  for (std::size_t each = 0; each < numbers.size(); ++each) {
    const auto shift = 8 - width * static_cast<unsigned>(each % in_byte + 1);
    const auto code = static_cast<unsigned>(codes[each / in_byte]) >> shift & mask;
    numbers[each] = kind == bits::two ? of_two[code] : code != 0 ? 1.0F : -1.0F;
  }
  return made;
}

}  // namespace muster
