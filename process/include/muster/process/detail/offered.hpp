// SPDX-License-Identifier: BSL-1.0
#pragma once

// Values that one program offers to others by name: encoded, and with the blocks that belong to them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <muster/base/detail/demangle.hpp>
#include <muster/memory/detail/arena.hpp>
#include <muster/memory/detail/shared_block.hpp>
#include <muster/serialize/detail/codec.hpp>

namespace muster::detail {

/// What the host keeps of an offer.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct offered_value {
  std::string type;  ///< as written in the source
  std::vector<std::byte> frame;
  std::vector<shared_block> blocks;  ///< by the numbers that the frame has for them
};

/// What a joined program gets of it. The blocks are the host's: to be kept before it withdraws the offer.
struct found_value {
  std::vector<std::byte> frame;
  std::vector<std::uint64_t> blocks;  ///< names

  template <class Archive>
  void serialize(Archive& archive) {
    archive(frame, blocks);
  }
};

/// Keeps the blocks of an offer.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class offer_sink final : public attachment_sink {
public:
  explicit offer_sink(std::vector<shared_block>& kept) noexcept : kept_(kept) {}
  std::uint64_t attach(const shared_block& what) override {
    kept_.push_back(what);
    return kept_.size() - 1;
  }

private:
  std::vector<shared_block>& kept_;
};

/// Makes holds on the blocks of what was found.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class found_source final : public attachment_source {
public:
  found_source(arena& memory, std::span<const std::uint64_t> names) noexcept : memory_(memory), names_(names) {}
  /// Throws errc::corrupted when there is no such block (any more).
  shared_block take(std::uint64_t number) override;

private:
  arena& memory_;
  std::span<const std::uint64_t> names_;
};

template <class T>
[[nodiscard]] offered_value offer_of(const T& value) {
  offered_value made{.type = name_of(typeid(T)), .frame = {}, .blocks = {}};
  if constexpr (std::is_same_v<T, shared_block>) {
    made.blocks.push_back(value);
  } else {
    require_transportable<T>();
    offer_sink sink(made.blocks);
    made.frame.resize(codec<T>::size_with(value).bytes);
    codec<T>::encode_with(made.frame, &sink, value);
  }
  return made;
}

template <class T>
[[nodiscard]] T value_of(arena& memory, const found_value& found) {
  found_source source(memory, found.blocks);
  if constexpr (std::is_same_v<T, shared_block>) {
    return source.take(0);
  } else {
    require_transportable<T>();
    return codec<T>::decode_value(found.frame, &source);
  }
}

}  // namespace muster::detail
