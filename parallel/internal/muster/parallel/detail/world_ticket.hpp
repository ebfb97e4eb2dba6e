// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <utility>

#include <muster/memory/detail/shared_block.hpp>
#include <muster/serialize/archive.hpp>

namespace muster::detail {

/// A world's memory, as the argument of the task that makes a worker one of its ranks.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct world_ticket {
  shared_block memory;

  void save(output_archive& archive) const { archive.attach(memory); }
  void load(input_archive& archive) { memory = archive.take_attachment(); }
};

}  // namespace muster::detail
