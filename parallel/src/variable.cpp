// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/variable.hpp>

#include <utility>

#include <muster/parallel/detail/world_core.hpp>

namespace muster::detail {

variable_handle::variable_handle(std::shared_ptr<world_core> of, std::uint32_t which, std::string called,
                                 muster::dtype elements, bool scattered)
    : world(std::move(of)), number(which), name(std::move(called)), type(elements), is_scattered(scattered) {}

variable_handle::~variable_handle() { world->remove_variable(number); }

}  // namespace muster::detail
