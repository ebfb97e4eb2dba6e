// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a function of a world is, besides its code.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <muster/device/dtype.hpp>
#include <muster/parallel/output_op.hpp>
#include <muster/parallel/rules.hpp>

namespace muster::detail {

/// What becomes of an update's value.
enum class update_kind : std::uint8_t {
  assign,        ///< it is the variable's, in each rank its own
  increment,     ///< it is added to the variable, in each rank its own
  reduced_into,  ///< it is joined over all ranks, and a rule makes the variable's value of it: the same in all ranks
};

/// What an input of rows must be, as far as it is said.
struct input_form {
  std::optional<dtype> type = {};
  std::optional<std::size_t> dimensions = {};
};

struct output_spec {
  std::string name;
  output_op op = output_op::avg;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, op);
  }
};

struct variable_use {
  std::uint32_t variable = 0;  ///< its number in the world
  bool is_sliceable = false;   ///< its rows are dealt out to slices, and batch_s selects among them

  template <class Archive>
  void serialize(Archive& archive) {
    archive(variable, is_sliceable);
  }
};

struct update_spec {
  std::uint32_t variable = 0;
  update_kind kind = update_kind::assign;
  output_op op = output_op::avg;
  update_rule rule{};
  std::vector<std::uint32_t> states{};  ///< variables that hold what the rule remembers

  template <class Archive>
  void serialize(Archive& archive) {
    archive(variable, kind, op, rule, states);
  }
};

/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct function_spec {
  std::string name;
  std::vector<std::string> rows;    ///< inputs that are dealt out
  std::vector<input_form> forms;    ///< of these; not sent, since the caller checks them
  std::vector<std::string> wholes;  ///< inputs that every rank gets
  std::vector<variable_use> variables;
  std::vector<output_spec> outputs;
  std::vector<update_spec> updates;

  /// Whether there is anything that a rank's share has rows of.
  [[nodiscard]] bool has_rows() const noexcept;
  [[nodiscard]] bool has_sliceable() const noexcept;
  [[nodiscard]] bool is_reduced() const noexcept;  ///< whether ranks read one another's update values

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, rows, wholes, variables, outputs, updates);
  }
};

}  // namespace muster::detail
