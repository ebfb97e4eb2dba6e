// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <muster/params/state_dict.hpp>

namespace muster {

/// A value with the version that its pusher has given it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
template <class T>
struct ordered_value {
  T value;                   ///< as it was pushed
  std::int64_t version = 0;  ///< as it was said
};

/// What model and gradient servers keep models in: ordered_server, or a class of the program's, which keeps them in
/// files, say.
///
/// Thread safety: as the class says; those of the library: safe.
class versioned_store {
public:
  versioned_store() = default;
  versioned_store(const versioned_store&) = default;
  versioned_store& operator=(const versioned_store&) = default;
  virtual ~versioned_store() = default;

  /// Keeps a copy of the value as that version, if `previous` is the version of the newest one, or there is none.
  /// Returns whether it did.
  virtual bool push(const std::string& key, const state_dict& value, std::int64_t version,
                    std::optional<std::int64_t> previous) = 0;
  /// Returns the newest value, or nothing where there is none.
  [[nodiscard]] virtual std::optional<ordered_value<state_dict>> pull(const std::string& key) = 0;
};

}  // namespace muster
