// SPDX-License-Identifier: BSL-1.0
#pragma once

// How owning pointers are written and read: std::unique_ptr as a byte and the object, std::shared_ptr and std::weak_ptr
// by numbers that the archive gives to objects, so that one object stays one. Each function does so with one value.
//
// Thread safety: as the archive.

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <muster/base/requirements.hpp>

namespace muster::detail {

template <class Archive, class Owner>
void write_unique(Archive& archive, const Owner& owner) {
  const std::uint8_t is_there = owner == nullptr ? 0 : 1;
  archive.write(&is_there, sizeof is_there);
  if (owner != nullptr) archive(*owner);
}
template <class Archive, class Owner>
void read_unique(Archive& archive, Owner& owner) {
  using object = std::remove_cv_t<typename Owner::element_type>;
  std::uint8_t is_there = 0;
  archive.read(&is_there, sizeof is_there);
  owner.reset();
  if (is_there == 0) return;
  std::unique_ptr<object> read(Archive::template make<object>());
  archive(*read);
  owner = std::move(read);
}

template <class Archive, class Owner>
void write_shared(Archive& archive, const Owner& owner) {
  const std::uint32_t id = archive.registerSharedPointer(owner);
  archive.write(&id, sizeof id);
  if (Archive::is_first_sight(id)) archive(*owner);
}
template <class Archive, class Owner>
void read_shared(Archive& archive, Owner& owner) {
  using element = typename Owner::element_type;
  using object = std::remove_cv_t<element>;
  std::uint32_t id = 0;
  archive.read(&id, sizeof id);
  if (!Archive::is_first_sight(id)) {
    owner = std::static_pointer_cast<element>(archive.getSharedPointer(id));
    return;
  }
  std::shared_ptr<object> read(Archive::template make<object>());
  archive.registerSharedPointer(id, read);
  archive(*read);
  owner = std::move(read);
}

}  // namespace muster::detail
