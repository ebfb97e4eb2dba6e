// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a joining program and its host say to each other. Layout: docs/formats/join.md.

#include <cstdint>
#include <string>
#include <vector>

#include "build_stamp.hpp"
#include "channel.hpp"

namespace muster::detail {

/// The version of the messages below. That of the shared memory is in the domain's header.
inline constexpr std::uint32_t join_version = 3;

/// The version comes first in what a joining program says, whatever it is, and in what the host answers. Of another
/// version nothing more is understood.
struct join_message {
  std::uint32_t version = join_version;
  build_stamp build = {};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(version);
    if (version == join_version) archive(build);
  }
};

/// Comes with control file and arena file.
struct joined_message {
  std::uint32_t version = join_version;
  std::uint16_t participant = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(version, participant);
  }
};

struct ask_message {
  std::string name;
  std::string type;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, type);
  }
};

/// message_kind::list: for the names from that one on, in alphabetical order.
struct list_message {
  std::string from;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(from);
  }
};

/// As many as one message has room for.
struct names_message {
  std::vector<std::string> names;
  bool has_more = false;
  std::string next;  // the first of those

  template <class Archive>
  void serialize(Archive& archive) {
    archive(names, has_more, next);
  }
};

}  // namespace muster::detail
