// SPDX-License-Identifier: BSL-1.0
#include <muster/parallel/detail/apply_rule.hpp>

#include <algorithm>
#include <functional>
#include <string>

#include <muster/base/error.hpp>
#include <muster/base/text.hpp>
#include <muster/parallel/detail/rule_kernels.hpp>

namespace muster {

namespace {

template <class... Why>
[[noreturn]] void refuse(const update_rule& rule, const Why&... why) {
  throw error(errc::invalid_argument, text("the rule ", rule.name(), " cannot be applied: ", why...));
}

void require_states(const update_rule& rule, std::size_t given) {
  if (given == rule.state_count()) return;
  refuse(rule, given, " states were given, but it has ", rule.state_count(), ": make_states() makes them");
}

void require_whole(const update_rule& rule, const char* what, const tensor& which) {
  if (which.is_contiguous()) return;
  refuse(rule, what, " of shape ", which.shape(), " is not contiguous: give a whole tensor, or a clone()");
}

void require_alike(const update_rule& rule, const char* what, const tensor& which, dtype type,
                   const tensor_shape& shape) {
  if (which.dtype() == type && which.shape() == shape) return;
  refuse(rule, what, " is of ", which.dtype(), ' ', which.shape(), ": it must be of ", type, ' ', shape);
}

// Variable and states, each of which is written.
void require_apart(const update_rule& rule, std::span<const std::span<std::byte>> written) {
  const std::less<> before;
  for (auto one = written.begin(); one != written.end(); ++one) {
    for (auto other = one + 1; other != written.end(); ++other) {
      const auto from = std::min(one->data(), other->data(), before);
      const bool overlap =
          before(one->data(), other->data() + other->size()) && before(other->data(), one->data() + one->size());
      if (!overlap) continue;
      const auto name = [&](auto which) {
        return which == written.begin() ? std::string("the variable") : text("state ", which - written.begin() - 1);
      };
      const auto range = [&](auto which) {
        return text(which->data() - from, " to ", which->data() + which->size() - from);
      };
      refuse(rule, name(one), " lies at bytes ", range(one), ", and ", name(other), " at bytes ", range(other),
             " of the same memory: each must have memory of its own");
    }
  }
}

// Where the gradient overlaps the variable or a state otherwise than being the variable it is read as it was before.
class gradient_bytes {
public:
  gradient_bytes(std::span<const std::byte> gradient, std::span<const std::span<std::byte>> written)
      : bytes_(gradient) {
    const std::less<> before;
    for (const auto& each : written) {
      const bool overlap =
          before(each.data(), gradient.data() + gradient.size()) && before(gradient.data(), each.data() + each.size());
      const bool is_variable = &each == &written.front() && each.data() == gradient.data();
      if (overlap && !is_variable) copy_.assign(gradient.begin(), gradient.end());
    }
    if (!copy_.empty()) bytes_ = copy_;
  }
  gradient_bytes(const gradient_bytes&) = delete;
  gradient_bytes& operator=(const gradient_bytes&) = delete;

  [[nodiscard]] const std::byte* data() const noexcept { return bytes_.data(); }

private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

std::span<std::byte> bytes_of(const tensor& which) { return {which.data(), which.nbytes()}; }
std::span<const std::byte> bytes_to_read(const tensor& which) { return {which.const_data(), which.nbytes()}; }

}  // namespace

std::vector<tensor> make_states(const update_rule& rule, const tensor& value, memory where) {
  rule.require(value.dtype(), reduction_op::sum);
  std::vector<tensor> made;
  made.reserve(rule.state_count());
  for (std::size_t each = 0; each < rule.state_count(); ++each) {
    made.push_back(tensor::zeros(update_rule::state_type(value.dtype()), value.shape(), where));
  }
  return made;
}

void apply(const update_rule& rule, const tensor& value, const tensor& gradient, std::span<const tensor> states,
           std::uint64_t step) {
  rule.require(value.dtype(), reduction_op::sum);
  require_states(rule, states.size());
  require_alike(rule, "the gradient", gradient, value.dtype(), value.shape());
  require_whole(rule, "the variable", value);
  detail::state_spans bytes;
  for (const auto& each : states) {
    require_alike(rule, "a state", each, update_rule::state_type(value.dtype()), value.shape());
    require_whole(rule, "a state", each);
    bytes.add(bytes_of(each));
  }
  detail::apply_to_elements(rule, value.dtype(), bytes_of(value), bytes_to_read(gradient.contiguous()), bytes, step);
}

void detail::apply_to_elements(const update_rule& rule, dtype type, std::span<std::byte> value,
                               std::span<const std::byte> gradient, const state_spans& states, std::uint64_t step) {
  rule.require(type, reduction_op::sum);
  require_states(rule, states.count);
  const auto count = value.size() / dtype_size(type);
  if (step == 0) refuse(rule, "step 0 was given: the first is 1");
  if (gradient.size() != value.size()) {
    refuse(rule, "the gradient has ", gradient.size() / dtype_size(type), " elements, and the variable ", count);
  }
  std::array<const std::byte*, update_rule::most_states> before{};
  std::array<std::byte*, update_rule::most_states> after{};
  const auto state_size = dtype_size(update_rule::state_type(type));
  for (std::size_t index = 0; index < states.count; ++index) {
    const auto& state = states.each[index];
    if (state.size() != count * state_size) {
      refuse(rule, "state ", index, " has ", state.size() / state_size, " elements, and the variable ", count);
    }
    before[index] = after[index] = state.data();
  }
  std::array<std::span<std::byte>, update_rule::most_states + 1> written{value};
  std::ranges::copy(std::span(states.each).first(states.count), written.begin() + 1);
  const auto all = std::span<const std::span<std::byte>>(written).first(states.count + 1);
  require_apart(rule, all);
  const gradient_bytes source(gradient, all);
  const auto* const from = source.data();
  auto* const to = value.data();
  constexpr double whole = 1;
  apply(rule, rule_pass{.type = type,
                        .op = reduction_op::sum,
                        .gradients = std::span(&from, 1),
                        .weights = std::span(&whole, 1),
                        .value = to,
                        .new_values = std::span(&to, 1),
                        .old_states = std::span(before).first(states.count),
                        .new_states = std::span(after).first(states.count),
                        .step = step,
                        .count = count});
}

}  // namespace muster
