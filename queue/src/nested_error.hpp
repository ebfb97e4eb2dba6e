// SPDX-License-Identifier: BSL-1.0
#pragma once

// An error on its way from the parent to a task that has called another: unlike a worker's own it says where it was.

#include <cstddef>
#include <span>
#include <string>

#include <muster/serialize/archive.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

template <class Archive>
void serialize_nested_error(Archive& archive, error_info& error, task_place& place) {
  archive(error, place.task, place.attempt, place.worker, place.pid, place.device);
}

[[nodiscard]] inline error_info read_nested_error(std::span<const std::byte> bytes) {
  try {
    error_info found;
    task_place place;
    input_archive in(bytes);
    serialize_nested_error(in, found, place);
    found.set_place(std::move(place));
    return found;
  } catch (const std::exception& failure) {
    return {errc::corrupted, std::string("the error of a nested call cannot be read: ") + failure.what()};
  }
}

}  // namespace muster
