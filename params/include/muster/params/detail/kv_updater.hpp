// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <functional>

#include <muster/params/store_key.hpp>

namespace muster {

class tensor;
template <class T>
class remote_ref;

namespace detail {

/// What makes the next value of a push: `stored` is a copy of the one before, which becomes the next.
using kv_updater = std::function<void(const store_key& key, const tensor& input, tensor& stored)>;

class kv_owner;

/// Gives an owner an updater, which is that one of the store's.
using kv_updater_setter = std::function<void(const remote_ref<kv_owner>& to, std::uint64_t mark)>;

}  // namespace detail
}  // namespace muster
