// SPDX-License-Identifier: BSL-1.0
#pragma once

// Code over a `Word` policy, one operation at a time.
//
// It works as follows. A *process* is a sequence of *bodies*, functions from one checkpoint to the next. Every
// operation of a body on shared words is a step at which any other process may come in between. A state holds the
// words, the private data, and for each process where it is: the values that its local variables had at the last
// checkpoint, and the results of the operations since. To make a process take one more step its body is run again from
// the checkpoint with those results, up to the next operation that others may want to precede; then it is left by
// longjmp. So the very source that runs in the product runs here, and a state is a plain value that can be compared
// and kept.
//
// Bodies therefore have no objects with destructors, and depend on nothing but locals, results and (while they hold the
// lock) private data. Memory is sequentially consistent here.

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace muster::model {

inline constexpr std::size_t most_steps = 14;  // operations of one body
inline constexpr std::uint8_t nobody = 0xff;
inline constexpr std::uint64_t sum_tag = std::uint64_t{0x5a} << 56U;  // of a result that stands for several

/// What an operation depends on and changes: sets of resources, which are words, bits of words, or other things.
struct access {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;

  [[nodiscard]] constexpr bool conflicts_with(const access& other) const {
    return ((reads | writes) & other.writes) != 0 || (writes & other.reads) != 0;
  }
  [[nodiscard]] static constexpr access to_both(std::uint64_t what) { return {.reads = what, .writes = what}; }
};

/// Where one process is.
template <class Locals>
struct process_state {
  Locals locals{};
  std::array<std::uint64_t, most_steps> results{};  // of the operations since the checkpoint
  std::array<std::uint8_t, most_steps> origins{};   // of these: the word's index
  std::uint8_t steps = 0;
  std::uint8_t asleep_on = nobody;  // which word
  std::uint8_t gone = 0;            // killed, or none
};

/// How much a value that was read matters.
enum class weight : std::uint8_t {
  matters,
  settled,  ///< whatever it may change to comes to the same, or is noticed later
  nothing   ///< the same, and for all values of this kind: 0 stands for them
};

/// The operations of the process that is being run.
class execution {
public:
  /// Whether an operation may follow the first one within the same step.
  using follows = bool (*)(const void* context, const access& what);
  using weigher = weight (*)(std::uint64_t value, std::uint64_t context);

  /// Runs one operation, or gives its result from before.
  template <class F>
  std::uint64_t perform(const access& what, F operation, std::size_t origin = nobody) {
    if (position_ < recorded_) return results_[position_++];
    const bool joined = std::exchange(joined_, false);
    if (taken_ > 0 && !joined && (joins_next_ || !may_follow_(context_, what))) std::longjmp(out_, left);
    if (position_ == most_steps) std::longjmp(out_, overflow);
    if (taken_ == 0 || joined) first_ = {.reads = first_.reads | what.reads, .writes = first_.writes | what.writes};
    const auto result = static_cast<std::uint64_t>(operation());
    if (blocked_) std::longjmp(out_, left);
    origins_[position_] = static_cast<std::uint8_t>(origin);
    results_[position_++] = result;
    ++taken_;
    return result;
  }
  /// To be called inside an operation: it cannot be done now.
  void block() { blocked_ = true; }
  /// Runs an operation as the first of a step to which the one after it belongs as well, whatever that is.
  template <class F>
  std::uint64_t perform_with_next(const access& what, F operation) {
    joins_next_ = may_join_;
    const auto result = perform(what, operation);
    joins_next_ = false;
    joined_ = may_join_;
    return result;
  }

  /// Operations of which only the sum matters to what comes later.
  template <class F>
  std::uint64_t summarise(F operations, std::size_t origin = nobody) {
    if (position_ < recorded_ && (results_[position_] & sum_tag) == sum_tag) return results_[position_++] & ~sum_tag;
    const auto first = position_;
    const std::uint64_t sum = operations();
    rewind(first);
    origins_[position_] = static_cast<std::uint8_t>(origin);
    results_[position_++] = sum | sum_tag;
    recorded_ = std::min(recorded_, position_);
    return sum;
  }
  /// Forgets the latest operations: the source does them again.
  void rewind(std::size_t to) {
    for (auto each = to; each < position_; ++each) results_[each] = 0;
    position_ = to;
    recorded_ = std::min(recorded_, to);
  }

  static constexpr int left = 1;
  static constexpr int overflow = 2;

  std::jmp_buf out_;
  std::uint64_t* words_ = nullptr;
  std::uint64_t* results_ = nullptr;
  std::uint8_t* origins_ = nullptr;
  std::size_t recorded_ = 0;
  std::size_t position_ = 0;
  std::size_t taken_ = 0;  // in this step
  bool blocked_ = false;
  bool may_join_ = false;
  bool joins_next_ = false;
  bool joined_ = false;
  bool reads_lane_ = false;  // it has read the lane's head, and found ticket_
  std::uint64_t ticket_ = 0;
  std::uint64_t own_bit_ = 0;  // that no other process sets
  follows may_follow_ = nullptr;
  const void* context_ = nullptr;
  access first_;             // what the first operation of this step depends on
  weigher weigh_ = nullptr;  // what the present operations find in a slot
  std::uint64_t weigh_context_ = 0;

  static execution*& current() {
    static execution* running = nullptr;  // one at a time: the checker is single-threaded
    return running;
  }
};

/// How a word is used, which tells what operations on it depend on. Why: docs/design/model.md.
enum class word_kind : std::uint8_t {
  plain,
  unread,  ///< by others; or they come to the same either way
  where,   ///< a task is; changed under the lock alone
  parked,  ///< read by its owner alone, who looks again before it sleeps
  flag,    ///< that is looked at before it is exchanged
  set,     ///< bits that are resources of their own; changes tell about the changed bits only
  slot,    ///< see execution::weigh_
  head,    ///< of a lane
  entry    ///< of a lane
};

/// What stands for std::atomic<std::uint64_t>: each operation is one step. Orders are taken as sequentially consistent.
class word {
public:
  constexpr word() = default;
  constexpr word(std::size_t index, std::uint64_t resource, word_kind kind = word_kind::plain, std::uint64_t lap = 0)
      : index_(index), resource_(resource), lap_(lap), kind_(kind) {}

  [[nodiscard]] std::size_t index() const { return index_; }
  [[nodiscard]] std::uint64_t resource() const { return resource_; }

  std::uint64_t load(std::memory_order) const;
  void store(std::uint64_t desired, std::memory_order);
  std::uint64_t exchange(std::uint64_t desired, std::memory_order) {
    return change(resource_, [&](std::uint64_t) { return desired; });
  }
  std::uint64_t fetch_or(std::uint64_t bits, std::memory_order) {
    return change(part(bits), [&](std::uint64_t before) { return before | bits; }, seen(bits));
  }
  std::uint64_t fetch_and(std::uint64_t bits, std::memory_order) {
    return change(part(~bits), [&](std::uint64_t before) { return before & bits; }, seen(~bits));
  }
  bool compare_exchange_strong(std::uint64_t& expected, std::uint64_t desired, std::memory_order, std::memory_order) {
    const auto wanted = expected;
    expected = exchange_if(wanted, desired);
    return expected == wanted;
  }
  bool compare_exchange_weak(std::uint64_t& expected, std::uint64_t desired, std::memory_order a, std::memory_order b) {
    return compare_exchange_strong(expected, desired, a, b);
  }

private:
  static execution& now() { return *execution::current(); }
  [[nodiscard]] std::uint64_t& value() const { return now().words_[index_]; }
  [[nodiscard]] std::uint64_t load_head() const;
  [[nodiscard]] weight weigh() const {
    return kind_ == word_kind::slot && now().weigh_ != nullptr ? now().weigh_(value(), now().weigh_context_)
                                                               : weight::matters;
  }
  [[nodiscard]] std::uint64_t exchange_if(std::uint64_t wanted, std::uint64_t desired);
  [[nodiscard]] std::uint64_t part(std::uint64_t bits) const {
    const bool some = kind_ == word_kind::set && (bits & set_bits) != 0;
    return some ? (resource_ & -resource_) * (bits & set_bits) : resource_;
  }
  [[nodiscard]] std::uint64_t seen(std::uint64_t bits) const {
    return kind_ == word_kind::set && (bits & set_bits) != 0 ? bits : ~std::uint64_t{0};
  }
  template <class F>
  std::uint64_t change(std::uint64_t resource, F how, std::uint64_t mask = ~std::uint64_t{0}) {
    const bool changes = how(value()) != value();
    const bool is_full = kind_ == word_kind::set && mask == ~std::uint64_t{0} && value() == set_bits;
    const bool alone = !changes && kind_ == word_kind::set && (is_full || (mask & set_bits) == now().own_bit_);
    const access what{.reads = alone ? 0 : resource, .writes = changes ? resource : 0};
    const auto operation = [&] {
      const auto before = value();
      value() = how(before);
      return before & mask;
    };
    return now().perform(what, operation, index_);
  }

  static constexpr std::uint64_t set_bits = 3;  // two workers

  std::size_t index_ = 0;
  std::uint64_t resource_ = 0;
  std::uint64_t lap_ = 0;
  word_kind kind_ = word_kind::plain;
};

}  // namespace muster::model
