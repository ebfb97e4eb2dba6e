// SPDX-License-Identifier: BSL-1.0
#pragma once

// Takes part in the domain of another program: see listener.hpp.

#include <filesystem>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include <muster/base/detail/duration.hpp>
#include <muster/memory/domain.hpp>
#include <muster/process/detail/offered.hpp>

namespace muster {

/// How to join.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct join_options {
  /// How long the host may take to answer: now, and each time it is asked for a name.
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
};

/// A domain that this program has joined. Copies of it are the same.
///
/// As long as it is joined it is the program's domain: events and tensors are made in it. Pools of this program have a
/// domain of their own, so that what lies in the joined one goes to their workers by copy or not at all.
///
/// Thread safety: distinct objects: safe. Shared objects: safe while nobody assigns.
/// Process safety: belongs to the process that made it. A forked child must not use it, nor what lies in the domain.
/// Lifetime: the program has left when this and everything that lies in the domain are gone: events, tensors and the
/// like keep it.
class joined_domain {
public:
  /// Returns the domain that was joined. A copy of the pointer keeps the program in it.
  [[nodiscard]] const std::shared_ptr<domain>& shared() const noexcept { return shared_; }

  /// What the host offers under that name; from now on this program holds it too.
  /// Throws errc::invalid_argument when there is none, with the names that there are (of very many the first), or when
  /// it is no `T`; errc::timed_out when the host does not answer, after which it may be asked again; ECONNRESET when it
  /// is gone; errc::corrupted when it has withdrawn the offer meanwhile; errc::out_of_memory where the system has no
  /// messages that are long enough (net.core.wmem_default was made small).
  template <class T>
  [[nodiscard]] T get(const std::string& name) const {
    return detail::value_of<T>(shared_->blocks(), find(name, name_of(typeid(T))));
  }

  /// All names, in alphabetical order; of what is offered or withdrawn meanwhile some may be there, and some not.
  /// Throws as get.
  [[nodiscard]] std::vector<std::string> names() const;

  /// Whether the host is there: its process lives, and neither side has closed the connection. When it is not, what
  /// lies in the domain can still be used, but nobody recovers what the dead had, nobody wakes who slept on them, and
  /// nobody else can join: waits should have a deadline, after which this is asked.
  [[nodiscard]] bool is_hosted() const;

private:
  friend joined_domain join(const std::filesystem::path& path, const join_options& options);
  class connection;

  explicit joined_domain(std::shared_ptr<connection> made);
  [[nodiscard]] detail::found_value find(const std::string& name, const std::string& type) const;

  std::shared_ptr<connection> connection_;
  std::shared_ptr<domain> shared_;  // a part of the connection
};

/// Joins the domain of the program that listens at `path`, and makes it this program's.
/// Throws ENOENT and ECONNREFUSED when nobody listens there; errc::module_mismatch when the host is linked with another
/// build of muster, with the modules (paths and build-ids) of both programs; errc::invalid_argument when the host is of
/// another user, is this very process, or this program has joined a domain already (a worker has that of its pool);
/// errc::out_of_memory when the domain has no more numbers, or the address space no room; errc::timed_out; and what the
/// host has against it.
[[nodiscard]] joined_domain join(const std::filesystem::path& path, const join_options& options = {});

}  // namespace muster
