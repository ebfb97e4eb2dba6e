// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/device.hpp>
#include <muster/memory/domain.hpp>
#include <muster/queue/board.hpp>
#include <muster/serialize/detail/function_token.hpp>
#include <muster/serialize/error_info.hpp>

namespace muster {

namespace detail {
class conversation;
}

/// What a worker process is given for its life. The crew's entry function gets it and returns when the worker is to
/// exit.
///
/// Thread safety: an object belongs to the worker's main thread.
class worker_environment {
public:
  /// What the parent wrote into the welcome.
  struct identity {
    std::string crew_name;
    std::size_t index = 0;           ///< of the worker in its crew
    std::uint32_t incarnation = 0;   ///< 1 for the first process with that index
    bool stands_by = false;          ///< its predecessor is still at work
    muster::device device{};         ///< that it is pinned to, as the program names it; the host where it is not
    std::vector<std::byte> payload;  ///< crew_options::payload
  };

  /// Eventfds on which the parent may sleep.
  struct bells {
    known_descriptor supervisor{};
    known_descriptor loop{};
  };

  /// Lifetime: borrows all.
  worker_environment(identity who, domain& shared, board& tasks, token_decoder& functions, bells parents,
                     detail::conversation& control) noexcept
      : identity_(std::move(who)),
        domain_(shared),
        board_(tasks),
        functions_(functions),
        bells_(parents),
        control_(control) {}
  worker_environment(const worker_environment&) = delete;
  worker_environment& operator=(const worker_environment&) = delete;

  [[nodiscard]] const identity& who() const noexcept { return identity_; }
  [[nodiscard]] domain& shared() noexcept { return domain_; }
  [[nodiscard]] board& tasks() noexcept { return board_; }
  [[nodiscard]] token_decoder& functions() noexcept { return functions_; }
  [[nodiscard]] bells parents_bells() const noexcept { return bells_; }

  /// Tells the parent that this worker takes tasks from now on; who stands by waits for its turn. False when that will
  /// not come: the worker is to exit.
  /// Unblocked by: the end of the predecessor; the parent's end, or its decision that nobody is needed.
  [[nodiscard]] bool report_ready();
  /// Tells the parent that this worker cannot work; it must exit then.
  void report_failure(const error_info& why);
  /// Tells the parent that this worker has too much memory: it is told to leave once a successor is ready.
  void report_memory();
  /// Tells the parent that this worker will leave by itself before long.
  void report_soon();
  /// Tells the parent that this worker leaves by itself now, or, if it is at one, after its task, and why. If it sleeps
  /// it is woken for that. May be called by any thread.
  void report_unfit(std::string_view why);

private:
  identity identity_;
  domain& domain_;
  board& board_;
  token_decoder& functions_;
  bells bells_;
  detail::conversation& control_;
};

/// What a crew's entry token names. The result is the worker's exit code.
using worker_entry = int(worker_environment&);

}  // namespace muster
