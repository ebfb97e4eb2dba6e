// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <boost/intrusive/slist.hpp>

namespace boost::asio {
class io_context;
}

namespace muster::detail {

/// An asynchronous operation that has ended: what calls its handler. Each function uses `self` up.
///
/// Thread safety: distinct objects: safe.
class delivery : public boost::intrusive::slist_base_hook<> {
public:
  delivery() = default;
  delivery(const delivery&) = delete;
  delivery& operator=(const delivery&) = delete;
  virtual ~delivery() = default;

  /// As boost::asio::post on the handler's executor.
  static void send(std::unique_ptr<delivery> self) noexcept { self.release()->send(); }
  /// As boost::asio::dispatch there: the handler may run, and throw, inside this call.
  /// Requires: this thread runs `loop`.
  static void deliver(std::unique_ptr<delivery> self, boost::asio::io_context& loop) { self.release()->deliver(loop); }

private:
  // These delete the object, before the handler is called: its next operation can be made in the same memory.
  virtual void send() noexcept = 0;
  virtual void deliver(boost::asio::io_context& loop) = 0;
};

/// Deliveries that it owns, first in, first out. Adding and removing one allocates nothing.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class delivery_list {
public:
  delivery_list() = default;
  delivery_list(const delivery_list&) = delete;
  delivery_list& operator=(const delivery_list&) = delete;
  ~delivery_list() {
    while (pop_front() != nullptr) continue;
  }

  void push_back(std::unique_ptr<delivery> each) noexcept {
    all_.push_back(*each.release());
    ++size_;
  }
  /// Null when it is empty.
  [[nodiscard]] std::unique_ptr<delivery> pop_front() noexcept {
    if (all_.empty()) return nullptr;
    std::unique_ptr<delivery> first(&all_.front());
    all_.pop_front();
    --size_;
    return first;
  }
  /// Moves all of `other` behind its own.
  void take(delivery_list& other) noexcept {
    all_.splice_after(all_.empty() ? all_.before_begin() : all_.last(), other.all_);
    size_ += std::exchange(other.size_, 0);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
  boost::intrusive::slist<delivery, boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>>
      all_;
  std::size_t size_ = 0;
};

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
