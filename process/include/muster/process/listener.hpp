// SPDX-License-Identifier: BSL-1.0
#pragma once

// Lets programs that were started independently join this program's domain.
//
//     muster::listener door("/run/user/1000/images.socket");      // the host
//     door.offer("ready", ready);
//
//     auto host = muster::join("/run/user/1000/images.socket");   // another program: join.hpp
//     host.get<muster::event>("ready").wait();

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/base/log.hpp>
#include <muster/process/detail/offered.hpp>
#include <muster/process/detail/supervisor.hpp>

namespace muster {

/// What a listener is made with.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct listener_options {
  /// How long a program that has connected may take to say what it wants; the first of more than 64 that say nothing
  /// has no longer than until the next one connects.
  std::chrono::nanoseconds hello_timeout = std::chrono::seconds(10);
  /// Receives the messages about programs that join.
  log_sink log = log_to_stderr;
};

/// A program that has joined.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct guest_info {
  pid_t pid = 0;                                      ///< its process
  participant_id participant = participant_id::none;  ///< its number in the domain
};

/// A unix socket at which other programs join the domain of this one, and what it offers them by name.
///
/// A program that joins takes part in the domain like a worker does, but is nobody's child, need not be the same
/// program, and lives on when the host ends. It must be of the same user, and linked with the same build of muster:
/// libraries made of the same sources for the same standard library, or what lies in shared memory would not be the
/// same to both. Another build is refused with errc::module_mismatch, and the tables of modules of both. When it
/// leaves, or dies at whatever instruction, the host drops all that it held and frees its number.
///
/// Thread safety: distinct objects: safe. Shared objects: safe, except the destructor.
/// Process safety: belongs to the process that made it; in a forked child its destructor does nothing.
/// Lifetime: programs that have joined are looked after as long as the supervisor lives, also when this is gone: it is
/// kept by listeners, pools and processes.
class listener {
public:
  /// Listens at `path`, for this program's domain. The file is for the user alone (mode 0600). One that a dead listener
  /// has left behind is replaced.
  /// Throws errc::invalid_argument when the path is too long for a socket, a living process listens there, or something
  /// is there that is no socket; what the file system says (EACCES, ENOENT, …); EMFILE.
  explicit listener(const std::filesystem::path& path, const listener_options& options = {});
  /// The same for the domain of that supervisor.
  listener(std::shared_ptr<supervisor> watcher, const std::filesystem::path& path,
           const listener_options& options = {});
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  /// Removes the socket, and lets go of what was offered. Programs that have joined stay; asking for a name is an error
  /// for them from now on.
  ~listener();

  /// Offers a value to whoever asks for `name`: anything that can be an argument of a task, events and tensors by
  /// reference; a shared_block. It takes the place of what was offered under that name before.
  /// Throws errc::invalid_argument for blocks of another domain, for a name of more than 1000 characters, and for more
  /// than 64 KiB of encoded value or more than 1000 blocks: put large things into shared memory, and offer that; and
  /// what serialize functions throw.
  template <class T>
  void offer(const std::string& name, const T& value) {
    add(name, detail::offer_of(value));
  }
  /// Takes it back; false when there was nothing. Who has it keeps it.
  bool withdraw(const std::string& name);

  /// Returns the programs that have joined through this listener and have neither left nor died, in the order in which
  /// they joined.
  [[nodiscard]] std::vector<guest_info> guests() const;
  /// Returns the supervisor that looks after the programs that have joined.
  [[nodiscard]] const std::shared_ptr<supervisor>& watcher() const noexcept { return supervisor_; }

  class impl;

private:
  void add(const std::string& name, detail::offered_value what);

  std::shared_ptr<supervisor> supervisor_;  // outlives impl_ and its handlers
  std::shared_ptr<impl> impl_;
};

}  // namespace muster
