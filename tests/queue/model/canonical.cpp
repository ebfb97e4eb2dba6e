// SPDX-License-Identifier: BSL-1.0
// What tells states apart. Generations and tickets are only ever compared with the present ones: so of each only that
// counts, whether it is the present one.
#include <cstring>

#include <muster/queue/detail/slot_word.hpp>

#include "task_step.hpp"

namespace muster::model {

namespace {

class canonical {
public:
  explicit canonical(const state& of) : of_(of) {}

  fingerprint name() {
    add_slots();
    add_queues();
    add_other_words();
    add_parent();
    for (std::size_t who = 0; who < processes; ++who) add_process(who);
    add(of_.crashes_left != 0 ? of_.deaths : decltype(of_.deaths){});
    add(of_.died_by_kill);
    add(std::array{of_.crashes_left, of_.timeouts_left});
    return fingerprint_of(bytes_.data(), size_);
  }

private:
  template <class T>
  void add(const T& value) {
    static_assert(std::has_unique_object_representations_v<T>);
    std::memcpy(bytes_.data() + size_, &value, sizeof value);
    size_ += sizeof value;
  }

  [[nodiscard]] std::uint64_t present(std::size_t slot, std::uint64_t generation) const {
    return slot < slots && of_.parent.generations[slot] == generation ? 1 : 0;
  }
  [[nodiscard]] std::uint64_t as_slot_word(std::size_t slot, std::uint64_t value) const {
    constexpr std::uint64_t generation_bits = ((std::uint64_t{1} << 34U) - 1) << 22U;  // a sum's tag lies above
    return (value & ~generation_bits) | present(slot, (value & generation_bits) >> 22U) << 22U;
  }
  [[nodiscard]] std::uint64_t as_hint(std::uint64_t value) const {
    const auto slot = value & 0xffffU;
    return 1 | slot << 8U | present(slot, value >> 16U & 0xffffffffU) << 16U;
  }
  [[nodiscard]] std::uint64_t as_current(std::uint64_t value) const {
    if (value == 0) return 0;
    const auto slot = value >> 32U & 0xffffU;
    return 1 | slot << 8U | present(slot, value & 0xffffffffU) << 16U;
  }
  [[nodiscard]] std::uint64_t as_where(std::uint64_t value) const {
    const auto slot = value >> 8U & 0xffU;
    if (static_cast<phase>(value & 0xffU) == phase::settled) return value & 0xffU;
    return (value & 0xffffU) | present(slot, value >> 16U) << 16U;
  }

  void add_slots() {
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const slot_word word(of_.memory[at::slot + slot]);
      add(as_slot_word(slot, word.bits()));
      const bool taken = word.state() == slot_state::claimed || word.state() == slot_state::done;
      add(taken ? of_.memory[at::reply + slot] : 0);
      add(word.state() != slot_state::free ? of_.memory[at::argument + slot] : 0);
    }
  }

  void add_queues() {
    const auto head = of_.memory[at::lane_head];
    add(of_.parent.lane_tail - head);
    for (auto ticket = head; ticket < of_.parent.lane_tail; ++ticket) {
      add(as_hint(of_.memory[at::lane_entries + ticket % entries] & 0xffffffffffffU));
    }
    for (std::size_t worker = 0; worker < most_model_workers; ++worker) {
      const auto tail = of_.memory[at::ring_tail + worker];
      add(tail - of_.parent.ring_head[worker]);
      for (std::uint64_t position = of_.parent.ring_head[worker]; position < tail; ++position) {
        add(as_hint(of_.memory[at::ring_entries + worker * entries + position % entries]));
      }
    }
  }

  void add_other_words() {
    for (std::size_t worker = 0; worker < most_model_workers; ++worker) {
      const bool gone = of_.each[first_worker + worker].gone != 0;
      add(gone ? 0 : of_.memory[at::parked + worker]);  // nobody looks at a dead worker's
      add(as_current(of_.memory[at::current + worker]));
    }
    for (std::size_t task = 0; task < tasks; ++task) {
      add(as_where(of_.memory[at::where + task]));
      add(of_.memory[at::sleeper + task]);
      add(of_.parent.all[task].how == outcome::none ? of_.memory[at::executed + task] : 0);
    }
    add(std::array{of_.memory[at::sleeping], of_.memory[at::armed], of_.memory[at::bell], of_.memory[at::lock],
                   of_.memory[at::dead], of_.memory[at::killed]});
  }

  void add_parent() {
    for (const auto& each : of_.parent.all) {
      auto record = each;
      record.generation = present(record.slot, record.generation);
      if (record.where != phase::posted && record.where != phase::waiting) {
        record.generation = 0;
        record.slot = 0;
        record.retries = 0;
        record.overdue = 0;
      }
      add(record);
    }
    add(of_.parent.in_slot);
    add(of_.parent.doomed_for);
  }

  void add_process(std::size_t who) {
    const auto& process = of_.each[who];
    add(locals_of(who));
    add(std::array{process.steps, process.asleep_on, process.gone});
    std::uint64_t ticket = 0;
    for (std::size_t each = 0; each < process.steps; ++each) {
      const std::size_t origin = process.origins[each];
      const auto value = process.results[each];
      if (origin == at::lane_head) ticket = value;
      add(as_result(origin, value, ticket));
    }
  }

  [[nodiscard]] local_values locals_of(std::size_t who) const {
    auto locals = of_.each[who].locals;
    if (who >= first_worker) locals.word = as_slot_word(locals.slot, locals.word);
    if (who < supervisor) locals.word = as_where(locals.word);
    if (who == supervisor) {
      if (locals.tail != 0) {
        locals.tail = static_cast<std::uint8_t>(locals.tail - of_.parent.ring_head[locals.index] + 1);
      }
    }
    return locals;
  }

  [[nodiscard]] std::uint64_t as_result(std::size_t origin, std::uint64_t value, std::uint64_t ticket) const {
    if (origin < at::slot + slots) return as_slot_word(origin - at::slot, value);
    if (origin == at::lane_head) return value == of_.memory[at::lane_head] ? 1 : 0;
    if (origin >= at::lane_entries && origin < at::lane_entries + entries) {
      return value >> 48U == ticket / entries + 1 ? as_hint(value & 0xffffffffffffU) : 0;
    }
    if (origin >= at::where && origin < at::where + tasks) return as_where(value);
    if (origin >= at::ring_tail && origin < at::ring_tail + most_model_workers) {
      return value - of_.parent.ring_head[origin - at::ring_tail];
    }
    if (origin >= at::ring_entries && origin < at::armed) return as_hint(value);
    return value;
  }

  const state& of_;
  std::array<std::byte, 2 * sizeof(state)> bytes_;
  std::size_t size_ = 0;
};

}  // namespace

fingerprint name_of(const state& of) { return canonical(of).name(); }

}  // namespace muster::model
