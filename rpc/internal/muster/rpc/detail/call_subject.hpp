// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <string>

#include <muster/pool/task_options.hpp>
#include <muster/rpc/detail/rpc_heads.hpp>

namespace muster::detail {

/// What a call calls, as errors name it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct call_subject {
  request_kind kind = request_kind::function;
  std::shared_ptr<const std::string> service{};  ///< its name; of other kinds null
  task_label label{};

  /// "score" of a service; else what kind of call it is: "a function".
  [[nodiscard]] std::string name() const;
  /// The same in a sentence: "'resize', a call of the service 'score'".
  [[nodiscard]] std::string in_words() const;
};

}  // namespace muster::detail
