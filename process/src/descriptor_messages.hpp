// SPDX-License-Identifier: BSL-1.0
#pragma once

// What participants and the host say to each other about descriptors. Layout: docs/formats/descriptors.md.

#include <cstdint>
#include <string>

#include <muster/base/error.hpp>
#include <muster/memory/detail/descriptor_name.hpp>

#include "channel.hpp"

namespace muster::detail {

/// What is asked has a number of the asker's, which the answer has too. 0: it is not answered.
using request_number = std::uint64_t;

/// message_kind::deposit, with the descriptor; fetch, withdraw and let_go; forget, with the number of the fetch and
/// without a name.
struct descriptor_request {
  request_number number = 0;
  std::uint64_t name = 0;    // a descriptor_name
  std::uint64_t anchor = 0;  // of a deposit: the name of the block, which the asker holds until it is answered; 0: none

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, name, anchor);
  }
};

/// message_kind::answer: to a deposit when it is made, and to a fetch, with the descriptor if there is one, or at the
/// latest when it is forgotten. Each has one.
struct descriptor_answer {
  request_number number = 0;
  bool has_descriptor = false;  // sent along; it may be lost on the way, where the receiver has no room
  std::uint32_t failure = 0;    // an errc; 0: none
  std::string why;              // of a failure

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, has_descriptor, failure, why);
  }
};

}  // namespace muster::detail
