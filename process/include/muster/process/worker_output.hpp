// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include <muster/base/requirements.hpp>

namespace muster {

/// Which of its two streams a worker wrote to.
enum class output_stream : std::uint8_t { out, err };

/// What becomes of what a crew's workers write to stdout and stderr.
enum class output_capture : std::uint8_t {
  none,   ///< it goes where the program's goes
  last,   ///< it is read, and the last lines are kept for the error of a death
  lines,  ///< so, and the client is told each line
};

/// How long a line may be, without its line feed, that is passed on in one piece.
inline constexpr std::size_t longest_output_line = 4096;

/// One line that a worker wrote, or a piece of one.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct worker_output {
  std::size_t worker = 0;                     ///< index in its pool
  std::uint32_t incarnation = 0;              ///< 1 for the first process with that index
  pid_t pid = 0;                              ///< of the process that wrote it
  output_stream stream = output_stream::out;  ///< which of its streams it wrote to
  std::string text;                           ///< without the line feed; any bytes, at most longest_output_line
  bool ends_line = true;   ///< a line feed was there; false for all but the last piece of an over-long line, and for an
                           ///< unfinished last line
  std::string function{};  ///< of a world's rank: the one that it was called with last when the line was read
  std::size_t dropped = 0;  ///< how many further lines of the pool were dropped behind this one
};

}  // namespace muster
