// SPDX-License-Identifier: BSL-1.0
#pragma once

// In which order steps are taken: starts as early, waits as late as what they need allows. A pure function on numbers.
//
// From theano/gof/sched.py and theano/tensor/io.py (M. Rocklin, 2012), which sorts by three wishes: what is needed
// comes first; starts before work before waits; lower tags before higher ones; a wish that contradicts an earlier one
// is dropped, and what is still open is left to chance. Here nothing is, and no wait is chosen that could not end.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace muster::detail {

enum class order_class : std::uint8_t { start, work, wait, last };

/// A step, named by its index. Where nothing else decides, lower indices are first.
struct order_item {
  order_class what = order_class::work;
  std::size_t rank = 0;                // ranks are counted without gaps
  int tag = 0;                         // of starts and waits
  std::vector<std::size_t> after;      // steps of the same rank
  std::optional<std::size_t> started;  // a wait for a message: the start at its other end, if that is known
};

/// Either all steps in order, or some that need each other: each needs the next one, the last the first.
struct order_result {
  std::vector<std::size_t> sequence;
  std::vector<std::size_t> circle;
};

/// Works as follows. All ranks go in rounds. In a round, each rank takes every start that it can, lowest tag first, and
/// when there is none one piece of work, until there is nothing that it could do without waiting. Work that a start
/// needs goes first: of the starts that need no further wait the one with the least work before it, then the one with
/// the lowest tag. Then each rank takes one set of waits: that of the work, or start, which lacks waits only, all of
/// them for messages whose start has been taken, and of several the one whose highest tag is the lowest. A rank that
/// has neither starts nor work left takes the rest of its waits by tag, and then what comes last.
///
/// So a wait stands right before the first step that needs it, unless others of the same step stand between; and every
/// message that somebody's progress depends on has begun before it is waited for: ranks that take their steps one after
/// the other never wait in a circle.
/// Cost: at worst starts · steps², once per graph.
[[nodiscard]] order_result order_of(std::span<const order_item> items);

}  // namespace muster::detail
