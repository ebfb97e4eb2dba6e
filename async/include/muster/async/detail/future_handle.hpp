// SPDX-License-Identifier: BSL-1.0
#pragma once

// What a future holds, whatever its type and wherever its value comes from.

#include <functional>
#include <memory>
#include <utility>

#include <muster/async/cancellation.hpp>
#include <muster/async/detail/encoded_end.hpp>
#include <muster/async/detail/end_notice.hpp>
#include <muster/async/detail/future_home.hpp>
#include <muster/base/clock.hpp>

namespace muster::detail {

/// Where a value comes from, and what keeps it.
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct held_source {
  std::shared_ptr<future_home> home;  ///< null for what belongs to no pool, and has ended already
  std::shared_ptr<void> what;         ///< what the functions know; not always owned
};

/// What a future can ask of its source: one table for each kind, as a class without objects. So the task of a worker
/// process, which has a record anyway, needs no object of its own.
struct source_functions {
  /// False when `until` passed first.
  bool (*wait)(const held_source& which, deadline until);
  bool (*is_done)(const held_source& which);
  /// As future::cancel.
  bool (*cancel)(const held_source& which, cancellation how);
  /// Tells `notice` once it is done, at once if it is already, on the thread that observes the end. A notice of before
  /// is dropped. Called by the holder of the future. Allocates nothing. `which` may be gone when it returns.
  void (*notify)(const held_source& which, std::unique_ptr<end_notice> notice);
  /// The future is dropped, and its value with it. Not called where the value was taken.
  void (*drop)(const held_source& which) noexcept;
  /// Whether the calling thread is inside of it: to wait for it would be to wait for itself.
  bool (*runs_here)(const held_source& which) noexcept;
  /// As cancel, and as wait, also when the future is used up: callable by any thread, at any time. The second gives
  /// nothing where no thread of this process can run what it waits for.
  std::function<void(cancellation)> (*canceller)(const held_source& which);
  std::function<void(deadline)> (*waiter)(const held_source& which);
  /// Shows `reader` how it ended, once; null where the value is not encoded.
  void (*read)(const held_source& which, const end_reader& reader);
};

/// What the functions are found by: the base of a table that knows the value's type (typed_source.hpp).
///
/// Thread safety: a value; distinct objects: safe. Shared objects: safe while nobody assigns.
struct source_table {
  const source_functions* functions;
};

/// A future without the type of its value.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class future_handle {
public:
  /// Refers to nothing.
  future_handle() noexcept = default;
  future_handle(held_source which, const source_table& table) noexcept : which_(std::move(which)), table_(&table) {}
  future_handle(future_handle&& other) noexcept
      : which_(std::move(other.which_)), table_(std::exchange(other.table_, nullptr)) {}
  future_handle& operator=(future_handle&& other) noexcept {
    future_handle moved(std::move(other));
    moved.swap(*this);
    return *this;
  }
  /// In a forked child it leaves what it holds to the parent.
  ~future_handle() {
    if (table_ != nullptr) drop();
  }

  [[nodiscard]] bool valid() const noexcept { return table_ != nullptr; }
  /// Throws errc::invalid_argument when it refers to nothing, errc::forked in a forked child.
  void require_valid() const;
  /// Throws errc::invalid_argument also where ends are noticed only by a thread that waits for them with muster.
  void require_noticed() const;
  // These require valid().
  bool wait(deadline until) const { return functions().wait(which_, until); }
  [[nodiscard]] bool is_done() const { return functions().is_done(which_); }
  bool cancel(cancellation how) const { return functions().cancel(which_, how); }
  [[nodiscard]] bool runs_here() const noexcept { return functions().runs_here(which_); }
  void notify(std::unique_ptr<end_notice> notice) const;
  [[nodiscard]] std::function<void(cancellation)> canceller() const { return functions().canceller(which_); }
  [[nodiscard]] std::function<void(deadline)> waiter() const { return functions().waiter(which_); }
  [[nodiscard]] const source_table& table() const noexcept { return *table_; }
  [[nodiscard]] const std::shared_ptr<future_home>& home() const noexcept { return which_.home; }

  /// What it held, for the caller to take the value of, or to drop. It refers to nothing then.
  [[nodiscard]] held_source release() noexcept {
    table_ = nullptr;
    return std::move(which_);
  }
  void swap(future_handle& other) noexcept {
    std::swap(which_, other.which_);
    std::swap(table_, other.table_);
  }

private:
  [[nodiscard]] const source_functions& functions() const noexcept { return *table_->functions; }
  void drop() noexcept;

  held_source which_;
  const source_table* table_ = nullptr;
};

}  // namespace muster::detail
