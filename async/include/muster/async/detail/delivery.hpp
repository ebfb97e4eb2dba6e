// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>
#include <utility>

#include <muster/async/detail/owning_list.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

/// An asynchronous operation that has ended: what calls its handler. Each function uses `self` up.
///
/// Thread safety: distinct objects: safe.
class delivery : public list_link<delivery> {
public:
  delivery() = default;
  delivery(const delivery&) = delete;
  delivery& operator=(const delivery&) = delete;
  virtual ~delivery() = default;

  /// As boost::asio::post on the handler's executor.
  static void send(std::unique_ptr<delivery> self) noexcept { self.release()->send(); }
  /// The handler may run, and throw, inside this call if its executor is that of `loop`; else as send().
  /// Requires: this thread runs `loop`.
  static void deliver(std::unique_ptr<delivery> self, boost::asio::io_context& loop) { self.release()->deliver(loop); }

private:
  // These delete the object, before the handler is called: its next operation can be made in the same memory.
  virtual void send() noexcept = 0;
  virtual void deliver(boost::asio::io_context& loop) = 0;
};

using delivery_list = owning_list<delivery>;

/// While one exists, what ends on this thread is put aside in it, to be delivered by the loop that the thread runs:
/// nothing has to be posted to that loop then.
///
/// Thread safety: an object belongs to one thread.
class delivery_scope {
public:
  explicit delivery_scope(delivery_list& into) noexcept : before_(std::exchange(current(), &into)) {}
  delivery_scope(const delivery_scope&) = delete;
  delivery_scope& operator=(const delivery_scope&) = delete;
  ~delivery_scope() { current() = before_; }

  /// Sends it where the thread has none.
  static void put_aside_or_send(std::unique_ptr<delivery> what) noexcept {
    if (auto* const here = current(); here != nullptr) {
      here->push_back(std::move(what));
    } else {
      delivery::send(std::move(what));
    }
  }

private:
  static delivery_list*& current() noexcept;

  delivery_list* const before_;
};

}  // namespace muster::detail
