// SPDX-License-Identifier: BSL-1.0
#include <muster/process/join.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include <muster/base/detail/fork_count.hpp>
#include <muster/base/detail/known_descriptor.hpp>
#include <muster/base/detail/mutex.hpp>
#include <muster/base/error.hpp>
#include <muster/base/pidfd.hpp>
#include <muster/base/system_call.hpp>
#include <muster/base/text.hpp>

#include "conversation.hpp"
#include "join_messages.hpp"
#include "remote_exchange.hpp"
#include "unix_socket.hpp"

namespace muster {

/// The domain and the connection to its host, which ends after it.
///
/// Thread safety: distinct objects: safe. Shared objects: safe.
class joined_domain::connection {
public:
  connection(const std::filesystem::path& path, const join_options& options)
      : timeout_(options.timeout), socket_(detail::connect_to(path, options.timeout)) {
    const auto host = detail::credentials_of_peer(socket_.get());
    if (host.user == ::geteuid()) {
      require_host(path);
      return;
    }
    throw error(errc::invalid_argument, text("the process ", host.pid, " that listens at '", path.native(),
                                             "' is of user ", host.user, ", and this one of user ", ::geteuid()));
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() {
    if (!made_in_.is_here()) return;
    shared_.reset();  // from here on nothing of the domain is used: the host may give it to others
    try {
      host_->say(detail::message_kind::leave);
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): there is no host any more
    }
  }

  void join() {
    const detail::join_message greeting{.build = detail::build_stamp::of_process()};
    auto answer = ask(detail::message_kind::join, detail::body_of(greeting), detail::message_kind::joined);
    if (answer.descriptors.size() != 2) throw error(errc::corrupted, "the host sent no files");
    const auto welcome = answer.read<detail::joined_message>();
    shared_.emplace(
        domain_files{.control = std::move(answer.descriptors[0]), .arena = std::move(answer.descriptors[1])},
        static_cast<participant_id>(welcome.participant));
    shared_->outlives(process_.get());
    shared_->exchange_by(std::make_unique<detail::remote_exchange>(*shared_, host_, timeout_));
  }
  [[nodiscard]] domain& shared() noexcept { return *shared_; }

  /// One question and its answer. Throws what the host has against it, errc::timed_out, ECONNRESET.
  [[nodiscard]] detail::message ask(detail::message_kind what, std::span<const std::byte> body,
                                    detail::message_kind wanted) MUSTER_EXCLUDES(asking_) {
    const scoped_lock lock(asking_);
    say(what, body);
    auto answer = hear_answer();
    if (!answer) {
      ++late_;
      throw error(errc::timed_out, text("the host did not answer within ", timeout_.count(), " ns"));
    }
    if (answer->kind == detail::message_kind::closed) {
      throw error(std::error_code(ECONNRESET, std::system_category()), "the host of a joined domain has gone");
    }
    if (answer->kind == detail::message_kind::refusal) answer->read<error_info>().raise();
    if (answer->kind == wanted) return std::move(*answer);
    throw error(errc::corrupted,
                text("the host answered by a message of kind ", static_cast<std::uint32_t>(answer->kind),
                     " instead of ", static_cast<std::uint32_t>(wanted)));
  }

  [[nodiscard]] bool has_host() const {
    return known_socket_.is_same() && !detail::is_hung_up(socket_.get()) && !has_ended(process_.get());
  }

private:
  // None if the host has ended already.
  static unique_fd process_of_host(int socket) {
    try {
      return detail::process_of_peer(socket);
    } catch (const error& failure) {
      if (failure.code() == std::errc::no_such_process) return {};
      throw;
    }
  }
  // A child of a host that was killed may hold the socket that listens: nobody would answer.
  void require_host(const std::filesystem::path& path) const {
    if (process_ && !has_ended(process_.get())) return;
    throw error(std::error_code(ECONNREFUSED, std::system_category()),
                text("the process that listened at '", path.native(), "' has ended"));
  }

  // The answer to the latest question: the host answers one after the other, and what comes too late comes before.
  [[nodiscard]] std::optional<detail::message> hear_answer() MUSTER_REQUIRES(asking_) {
    const auto until = deadline::after(timeout_);
    auto heard = host_->hear_word(until);
    for (; heard && heard->kind != detail::message_kind::closed && late_ != 0; --late_) heard = host_->hear_word(until);
    return heard;
  }

  // A host that has hung up may have said why.
  void say(detail::message_kind what, std::span<const std::byte> body) MUSTER_REQUIRES(asking_) {
    try {
      host_->say(what, body);
    } catch (const error& failure) {
      const bool has_hung_up =
          failure.code() == std::errc::broken_pipe || failure.code() == std::errc::connection_reset;
      if (!has_hung_up) throw;
      const auto last = hear_answer();
      if (last && last->kind == detail::message_kind::refusal) last->read<error_info>().raise();
      throw;
    }
  }

  const process_mark made_in_;
  const std::chrono::nanoseconds timeout_;
  mutex asking_;
  std::size_t late_ MUSTER_GUARDED_BY(asking_) = 0;  // answers that nobody waits for any more
  unique_fd socket_;
  const known_descriptor known_socket_{socket_.get()};
  const unique_fd process_ = process_of_host(socket_.get());
  const std::shared_ptr<detail::conversation> host_ =
      std::make_shared<detail::conversation>(socket_.get(), process_.get());
  std::optional<domain> shared_;
};

// Owned, not aliased: else blocks would not find the domain that they are to keep (domain::of). The connection goes
// with the last owner: the deleter itself stays until nobody looks for the domain any more either, as that does for
// itself.
joined_domain::joined_domain(std::shared_ptr<connection> made)
    : connection_(std::move(made)),
      shared_(&connection_->shared(), [keeper = connection_](domain*) mutable { keeper.reset(); }) {}

detail::found_value joined_domain::find(const std::string& name, const std::string& type) const {
  return connection_
      ->ask(detail::message_kind::ask, detail::body_of(detail::ask_message{.name = name, .type = type}),
            detail::message_kind::found)
      .read<detail::found_value>();
}

std::vector<std::string> joined_domain::names() const {
  std::vector<std::string> all;
  detail::list_message rest;
  for (bool has_more = true; has_more;) {
    auto page = connection_->ask(detail::message_kind::list, detail::body_of(rest), detail::message_kind::names)
                    .read<detail::names_message>();
    std::move(page.names.begin(), page.names.end(), std::back_inserter(all));
    has_more = page.has_more;
    rest.from = std::move(page.next);
  }
  return all;
}

bool joined_domain::is_hosted() const { return connection_->has_host(); }

joined_domain join(const std::filesystem::path& path, const join_options& options) {
  if (domain::entered()) {
    throw error(errc::invalid_argument,
                "this process takes part in another program's domain already: a worker in that of its pool, or it has "
                "joined one and still has things that lie in it");
  }
  auto made = std::make_shared<joined_domain::connection>(path, options);
  made->join();
  joined_domain joined(std::move(made));
  domain::enter(joined.shared());
  return joined;
}

}  // namespace muster
