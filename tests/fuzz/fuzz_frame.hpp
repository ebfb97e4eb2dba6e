// SPDX-License-Identifier: BSL-1.0
#pragma once

// What decoders are fed with, and what must be so when a value comes out.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <tuple>

#include <muster/serialize/detail/codec.hpp>

namespace muster::fuzz {

/// Decodes an input: returns or throws.
using decoder = void (*)(std::span<const std::byte>);

/// Bytes of their own, so that a sanitizer sees every step beyond. operator new aligns them to frame_alignment.
class frame {
public:
  explicit frame(std::size_t size) : bytes_(new std::byte[size]), size_(size) {}
  explicit frame(std::span<const std::byte> content) : frame(content.size()) {
    std::ranges::copy(content, bytes().begin());
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {bytes_.get(), size_}; }

private:
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= frame_alignment);
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_;
};

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// Twice encoded is the same; compared as bytes, because not all types have an ==.
template <class... Ts>
void check_round_trip(const std::tuple<Ts...>& values) {
  using codec = codec<Ts...>;
  const auto encode = [](const std::tuple<Ts...>& from) {
    return std::apply(
        [](const Ts&... each) {
          frame made(codec::size(each...));
          codec::encode(made.bytes(), each...);
          return made;
        },
        from);
  };
  const auto once = encode(values);
  const auto again = encode(codec::decode(once.bytes()));
  require(std::ranges::equal(once.bytes(), again.bytes()));
}

}  // namespace muster::fuzz
