// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <muster/collectives/group_error.hpp>
#include <muster/collectives/work.hpp>
#include <muster/device/overlap.hpp>

namespace muster::detail {

class mailbox;

/// A message that is being sent or received.
///
/// Thread safety: safe.
class transfer final : public work_state {
public:
  static constexpr std::size_t any_source = SIZE_MAX;
  enum class direction : std::uint8_t { send, receive };

  transfer(std::shared_ptr<mailbox> box, direction where, std::size_t peer, std::uint64_t tag, const tensor* what);

  void require_here() const override;
  bool test() override;
  bool test_or_fail() override;
  bool wait(deadline until) override;
  bool wait_for_any(std::span<work_state* const> all, deadline until) override;
  bool cancel() override;
  void then(std::function<void(std::exception_ptr)> what) override;
  [[nodiscard]] std::exception_ptr failure() const override { return failure_; }
  [[nodiscard]] std::uint64_t sequence() const noexcept override { return 0; }
  [[nodiscard]] std::size_t source() const override;
  [[nodiscard]] tensor result() const override { return tensor_; }
  [[nodiscard]] std::shared_ptr<work_home> home() override;

  [[nodiscard]] bool sends() const noexcept { return direction_ == direction::send; }
  [[nodiscard]] bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  /// "receive with tag 3 from rank 1".
  [[nodiscard]] std::string describe() const;
  /// What it is called in errors (group_error::operation).
  [[nodiscard]] const char* name() const noexcept { return sends() ? "send" : "receive"; }
  /// The other rank, if it is one that was asked for, and is not known to be gone.
  [[nodiscard]] std::vector<group_member> missing() const;

private:
  friend class mailbox;
  friend class transfer_queue;

  const std::shared_ptr<mailbox> box_;
  const direction direction_;
  const std::size_t asked_;
  std::size_t peer_;  // of a receive from anybody: whose it is, when it has ended
  const std::uint64_t tag_;
  const bool takes_any_shape_;
  tensor tensor_;        // where it is received; or what is sent, as the receiver reads it, until that has ended
  address_range range_;  // that tensor's
  // What follows is the mailbox's until it has ended.
  std::uint64_t block_name_ = 0;
  std::uint64_t ack_ = 0;
  std::size_t ack_index_ = 0;
  std::exception_ptr failure_;
  bool is_lost_ = false;  // since its sender is gone, as is known now or soon
  std::vector<std::function<void(std::exception_ptr)>> callbacks_;
  std::atomic<bool> ended_ = false;
  std::atomic<unsigned> tests_ = 0;  // in vain, of a send
  std::shared_ptr<transfer> next_;   // the queue's that it is in
};

/// Transfers in the order in which they came. Each is in one queue at a time, which is linked through them: none takes
/// any memory.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
class transfer_queue {
public:
  transfer_queue() noexcept = default;
  transfer_queue(transfer_queue&& other) noexcept { swap(other); }
  transfer_queue& operator=(transfer_queue&& other) noexcept {
    transfer_queue(std::move(other)).swap(*this);
    return *this;
  }
  // One after the other: many, each of which ends the next, would take as many frames.
  ~transfer_queue() {
    while (take_first() != nullptr) {
    }
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// Requires: not empty.
  [[nodiscard]] transfer& front() const noexcept { return *first_; }

  void push_back(std::shared_ptr<transfer> what) noexcept {
    auto* const added = what.get();
    (last_ != nullptr ? last_->next_ : first_) = std::move(what);
    last_ = added;
  }
  /// nullptr where there is none.
  std::shared_ptr<transfer> take_first() noexcept {
    return take_first_that([](const transfer&) { return true; });
  }
  template <class Fits>
  std::shared_ptr<transfer> take_first_that(Fits fits) {
    transfer* before = nullptr;
    for (auto* each = first_.get(); each != nullptr; each = each->next_.get()) {
      if (fits(*each)) return take_after(before);
      before = each;
    }
    return nullptr;
  }
  template <class Use>
  void for_each(Use use) const {
    for (auto* each = first_.get(); each != nullptr; each = each->next_.get()) use(*each);
  }
  /// Calls `use` with each that fits, in order, and none of them is in the queue any more then.
  template <class Fits, class Use>
  void take_all_that(Fits fits, Use use) {
    transfer* before = nullptr;
    while (auto* const each = (before != nullptr ? before->next_ : first_).get()) {
      if (fits(*each)) {
        use(take_after(before));
      } else {
        before = each;
      }
    }
  }

private:
  // Of the first where `before` is nullptr. Requires: there is one.
  std::shared_ptr<transfer> take_after(transfer* before) noexcept {
    auto& link = before != nullptr ? before->next_ : first_;
    auto taken = std::move(link);
    link = std::move(taken->next_);
    if (last_ == taken.get()) last_ = before;
    return taken;
  }
  void swap(transfer_queue& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
  }

  std::shared_ptr<transfer> first_;
  transfer* last_ = nullptr;
};

}  // namespace muster::detail
