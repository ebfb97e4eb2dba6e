// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <functional>

#include <muster/params/store_key.hpp>

namespace muster {

class tensor;

namespace detail {

/// What makes the next value of a push: `stored` is a copy of the one before, which becomes the next.
using kv_updater = std::function<void(const store_key& key, const tensor& input, tensor& stored)>;

}  // namespace detail
}  // namespace muster
