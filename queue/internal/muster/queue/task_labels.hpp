// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <boost/smart_ptr/intrusive_ptr.hpp>

namespace muster {

/// The text of a label, kept once for all tasks that have it.
///
/// Thread safety: the text is constant; the count of its users is atomic.
class label_text {
public:
  explicit label_text(std::string_view text) : text_(text) {}
  label_text(const label_text&) = delete;
  label_text& operator=(const label_text&) = delete;
  ~label_text() = default;

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Whether who asks holds the only reference.
  [[nodiscard]] bool is_only_here() const noexcept { return users_.load(std::memory_order_acquire) == 1; }

private:
  friend void intrusive_ptr_add_ref(const label_text* which) noexcept {
    which->users_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(const label_text* which) noexcept {
    if (which->users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete which;  // NOLINT(*-owning-memory)
  }

  const std::string text_;
  mutable std::atomic<std::uint32_t> users_ = 0;
};

/// The label of a task, or of what is told of it; null: it has none. One word.
using label_ref = boost::intrusive_ptr<const label_text>;

/// Empty for a task without label.
[[nodiscard]] inline std::string text_of(const label_ref& label) { return label ? label->text() : std::string(); }

/// The labels of tasks. Few in most programs, and then to label a task allocates nothing; a program that gives each
/// task a label of its own has no more of them here than twice those in use.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe; labels that were handed out may be copied and dropped
/// by any thread at any time.
/// Lifetime: labels outlive this object.
class task_labels {
public:
  /// Cost: a search by text; amortized over new labels, a look at each that is kept.
  [[nodiscard]] label_ref find_or_add(std::string_view text) {
    if (text.empty()) return {};
    const auto found = labels_.find(text);
    if (found != labels_.end()) return *found;
    if (labels_.size() >= limit_) forget_unused();
    return *labels_.insert(label_ref(new label_text(text))).first;
  }

  /// How many are kept.
  [[nodiscard]] std::size_t size() const noexcept { return labels_.size(); }

private:
  struct by_text {
    using is_transparent = void;
    static std::string_view key(const label_ref& label) noexcept { return label->text(); }
    static std::string_view key(std::string_view text) noexcept { return text; }
    bool operator()(const auto& left, const auto& right) const noexcept { return key(left) < key(right); }
  };

  // Those that only this set holds nobody else can get at meanwhile.
  void forget_unused() {
    std::erase_if(labels_, [](const auto& each) { return each->is_only_here(); });
    limit_ = std::max(least_limit, 2 * labels_.size());
  }

  static constexpr std::size_t least_limit = 256;
  std::set<label_ref, by_text> labels_;
  std::size_t limit_ = least_limit;
};

}  // namespace muster
