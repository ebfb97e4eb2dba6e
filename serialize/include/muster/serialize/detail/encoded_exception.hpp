// SPDX-License-Identifier: BSL-1.0
#pragma once

// The encoded state of an exception that is thrown again in another process.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <muster/serialize/detail/object_token.hpp>

namespace muster {

/// The encoded state of an exception, in up to two parts: that of its registered type, and that of its standard base
/// (text, code, paths). Either may be missing. Layout: docs/formats/frame.md.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct encoded_exception {
  object_token local_type{};  ///< tells the type from others of its name; none where the name does
  object_token saved_type{};  ///< the registered type that has saved `state`: the exception's own, or its nearest base
  std::string state{};
  std::uint8_t standard_type = 0;  ///< the nearest standard base; 0: none but std::exception
  std::string standard_state{};
  std::string save_failure{};  ///< why the exception could not be saved or restored; empty where it could

  // A byte says which parts there are, so that short errors stay short: they must fit into a slot's line.
  template <class Archive>
  void serialize(Archive& archive) {
    auto has = parts();
    archive(has);
    if ((has & 1U) != 0) archive(standard_type, standard_state);
    if ((has & 2U) != 0) archive(saved_type, state);
    if ((has & 4U) != 0) archive(local_type);
    if ((has & 8U) != 0) archive(save_failure);
  }

private:
  [[nodiscard]] std::uint8_t parts() const noexcept {
    return static_cast<std::uint8_t>((standard_type != 0 ? 1U : 0U) | (saved_type != object_token::none ? 2U : 0U) |
                                     (local_type != object_token::none ? 4U : 0U) | (!save_failure.empty() ? 8U : 0U));
  }
};

/// Shared by copies of an error, because it is long and never changes. Null: no exception.
using encoded_exception_ptr = std::shared_ptr<const encoded_exception>;

namespace detail {

template <class Archive>
void save_exception(Archive& archive, const encoded_exception_ptr& exception) {
  archive(exception != nullptr);
  if (exception != nullptr) archive(*exception);
}

template <class Archive>
void load_exception(Archive& archive, encoded_exception_ptr& exception) {
  bool is_there = false;
  archive(is_there);
  if (!is_there) return exception.reset();
  auto loaded = std::make_shared<encoded_exception>();
  archive(*loaded);
  exception = std::move(loaded);
}

}  // namespace detail

}  // namespace muster
